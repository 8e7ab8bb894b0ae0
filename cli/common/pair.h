/*
 * What the decoder of an encoder-decoder reads: a target that is given, or what the model itself
 * writes; and the names of the attentions that such a model has. `look`, `heads` and `map` share
 * it.
 */
#ifndef QKV_CLI_COMMON_PAIR_H
#define QKV_CLI_COMMON_PAIR_H

#include "common/job.h"
#include "common/lines.h"
#include "common/session.h"
#include "common/what_if.h"
#include <qkv/generate.h>
#include <qkv/heads.h>

/* Which attention of a run is looked at: its queries look, its keys are looked at. */
struct attention_view {
    qkv_attention_kind which;
    int64_t n_layers, n_heads;
    qkv_token_list queries, keys;
    bool causal; /* queries see keys up to their own place */
};

/* ---- Options: --target, --cross, --decoder --------------------------------------------------- */

struct pair_options {
    const char *target;
    bool cross, decoder;
};

/* Rows of a table of options (args.h) whose struct has a pair_options `member`. */
#define PAIR_TABLE(member)                                                                         \
    OPTION_TEXT("--target", "TEXT", member.target), OPTION_FLAG("--cross", member.cross),          \
        OPTION_FLAG("--decoder", member.decoder)

/* In a table of conflicts: `options` look at a decoder, and messages call them `names`. */
#define PAIR_RULES(options, names)                                                                 \
    { .these = "--target", .without = options, .message = "%s goes with " names }, {               \
        .these = "--cross", .with = "--decoder"                                                    \
    }

qkv_attention_kind pair_which(const struct pair_options *options);

/* ---- Targets --------------------------------------------------------------------------------- */

/* What the decoder was given, and what it should have written. Zeros: of a text alone. */
struct pair {
    char *target;       /* the text */
    qkv_encoding *next; /* it: row i predicts next->ids[i] */
    qkv_encoding
        inputs; /* of as many tokens: the start token, then those of next but for the last */
    char **names, **input_names; /* [n] "input -> next", "input" */
};

/*
 * target: text, or bytes NULL for what the model writes, by the search of generation_config.json.
 */
qkv_status pair_make(const struct session *session, const qkv_encoding *source, struct text target,
                     struct pair *pair, qkv_error *error);
void pair_free(struct pair *pair);

/* Room for n tokens, in one block: free(encoding->begin). And a token of another encoding in it. */
bool encoding_room(qkv_encoding *encoding, int64_t n);
void encoding_copy(qkv_encoding *to, int64_t i, const qkv_encoding *from, int64_t j);

/* Of a text (pair may be NULL), or of a pair's: which attention, its sizes, its tokens. */
struct attention_view pair_view(const struct session *session, const qkv_encoding *source,
                                const struct pair *pair, qkv_attention_kind which);
/* Its heads on input b of a run, with their numbers. */
qkv_status pair_heads(const struct session *session, const struct attention_view *view,
                      const qkv_run *run, int64_t b, qkv_heads **heads, qkv_error *error);

/* Runs the model on n texts: pairs, if they have targets, whose decoders' inputs are asked for. */
qkv_status pair_model_run(const struct session *session, int64_t n,
                          const qkv_encoding *const *sources, const struct pair *pairs,
                          uint32_t flags, const qkv_run_options *what_if, qkv_run **run,
                          qkv_error *error);

/* --what-if causal of queries that are causal as they are is refused. */
qkv_status pair_check_causal(const struct what_if *what_if, const struct attention_view *view,
                             qkv_error *error);

/* ---- Names ----------------------------------------------------------------------------------- */

/* "encoder", "decoder", "cross" of an encoder-decoder; NULL: the only attention that there is. */
const char *attention_key(const struct session *session, qkv_attention_kind which);
/*
 * "the encoder, ", "the decoder's attention to the source, ", …; "" for the only one; in captions.
 */
const char *attention_words(const struct session *session, qkv_attention_kind which);
/* " of the encoder", " of cross-attention", …; "". */
const char *attention_heads(const struct session *session, qkv_attention_kind which);

/* Adds what the decoder read, and what it predicts from each token of it. */
void pair_json(const struct session *session, const struct pair *pair, json_t *object);

enum { HEAD_NAME = 80 };
/* "Layer 1, head 2", "Cross-attention, layer 1, head 2" … */
void attention_head(const struct session *session, qkv_attention_kind which, int64_t layer,
                    int64_t head, char name[HEAD_NAME]);

#endif
