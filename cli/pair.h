/*
 * What the decoder of an encoder-decoder reads: a target that is given, or what the model itself writes;
 * and the names of the attentions that such a model has. `look`, `heads` and `map` share it.
 */
#ifndef QKV_CLI_PAIR_H
#define QKV_CLI_PAIR_H

#include "choose.h"
#include "input.h"
#include "lines.h"
#include "what_if.h"
#include <qkv/generate.h>

/* ---- Options: --target, --cross, --decoder ------------------------------------------------------- */

struct pair_options {
    const char *target;
    bool cross, decoder;
};

/* In a table of options whose struct has a pair_options `member`. */
#define PAIR_TABLE(type, member)                                                                   \
    { .name = "--target",                                                                          \
      .argument = "TEXT",                                                                          \
      .help = "what the decoder of an encoder-decoder should write (default: what it does write)", \
      .kind = ARG_TEXT,                                                                            \
      .offset = offsetof(type, member.target) },                                                   \
        { .name = "--cross",                                                                       \
          .help = "the decoder's attention to the text: queries are the tokens that it read, "     \
                  "with those that they predict, keys the tokens of the text",                     \
          .kind = ARG_FLAG,                                                                        \
          .offset = offsetof(type, member.cross) },                                                \
    {                                                                                              \
        .name = "--decoder", .help = "the decoder's attention to what it has written",             \
        .kind = ARG_FLAG, .offset = offsetof(type, member.decoder)                                 \
    }

qkv_attention_of pair_which(const struct pair_options *options);
/* "--cross", "--decoder"; NULL: neither. */
const char *pair_option(const struct pair_options *options);
/*
 * EXIT_USAGE, having said so: --target without any of the options (`these`) that look at a decoder, of which
 * `option` was given; both of them; or `other`, which goes with none. NULL: not given.
 */
int pair_check(const struct cli_command *command, const struct pair_options *options,
               const char *option, const char *these, const char *other);

/* ---- Targets --------------------------------------------------------------------------------- */

/* What the decoder was given, and what it should have written. Zeros: of a text alone. */
struct pair {
    char *target;       /* the text */
    qkv_encoding *next; /* it: row i predicts next->ids[i] */
    qkv_encoding
        inputs; /* of as many tokens: the start token, then those of next but for the last */
    char **names, **input_names; /* [n] "input -> next", "input" */
};

/* target: text, or bytes NULL for what the model writes, by the search of generation_config.json. */
qkv_status pair_make(const struct session *session, const qkv_encoding *source, struct text target,
                     struct pair *pair, qkv_error *error);
void pair_free(struct pair *pair);

/* Of a text, or of a pair's: which attention, its sizes, its tokens. */
struct attention_view pair_view(const struct session *session, const qkv_encoding *source,
                                const struct pair *pair, qkv_attention_of which);

/* Runs the model on n texts: pairs, if they have targets, whose decoders' inputs are asked for. */
qkv_status pair_model_run(const struct session *session, int64_t n,
                          const qkv_encoding *const *sources, const struct pair *pairs,
                          uint32_t flags, const qkv_what_if *what_if, qkv_run **run,
                          qkv_error *error);

/* --what-if causal of queries that are causal as they are is refused. */
qkv_status pair_check_causal(const struct what_if *what_if, const struct attention_view *view,
                             qkv_error *error);

/* ---- Names ----------------------------------------------------------------------------------- */

/* "encoder", "decoder", "cross" of an encoder-decoder; NULL: the only attention that there is. */
const char *attention_key(const struct session *session, qkv_attention_of which);
/* "the encoder, ", "the decoder's attention to the source, ", …; "" for the only one; in captions. */
const char *attention_words(const struct session *session, qkv_attention_of which);
/* " of the encoder", " of cross-attention", …; "". */
const char *attention_heads(const struct session *session, qkv_attention_of which);

/* Adds what the decoder read, and what it predicts from each token of it. */
void pair_json(const struct session *session, const struct pair *pair, json_t *object);

enum { HEAD_NAME = 80 };
/* "Layer 1, head 2", "Cross-attention, layer 1, head 2" … */
void attention_head(const struct session *session, qkv_attention_of which, int64_t layer,
                    int64_t head, char name[HEAD_NAME]);

#endif
