/*
 * Source and target of an encoder-decoder, for `look`, `heads` and `map`: the target is given, or
 * written by the model itself. Also the names of the three attentions of such a model.
 */
#ifndef QKV_CLI_COMMON_PAIR_H
#define QKV_CLI_COMMON_PAIR_H

#include "common/job.h"
#include "common/lines.h"
#include "common/session.h"
#include "common/what_if.h"
#include <qkv/generate.h>
#include <qkv/heads.h>

/* The attention of a run that is shown: its sizes, and the tokens of its queries and its keys. */
struct attention_view {
    qkv_attention_kind which;
    int64_t n_layers, n_heads;
    qkv_token_list queries, keys;
    bool causal; /* query i sees keys 0 … i */
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

/*
 * Rows of a table of conflicts (conflicts.h): --target needs one of `options`, which messages call
 * `names`; --cross and --decoder exclude each other.
 */
#define PAIR_RULES(options, names)                                                                 \
    { .these = "--target", .without = options, .message = "%s goes with " names }, {               \
        .these = "--cross", .with = "--decoder"                                                    \
    }

qkv_attention_kind pair_which(const struct pair_options *options);

/* ---- Targets --------------------------------------------------------------------------------- */

/* What the decoder reads, and what it should predict. All zeros: there is no target. */
struct pair {
    char *target;        /* the text */
    qkv_encoding *next;  /* its n tokens: row i of the decoder predicts next->ids[i] */
    qkv_encoding inputs; /* n tokens that it reads: the start token, then next[0 … n - 2] */
    char **names, **input_names; /* labels [n]: "input -> next", and "input" */
};

/*
 * Makes a pair. target.bytes NULL: the target is what the model generates from the source, with the
 * options of its generation_config.json.
 */
qkv_status pair_make(const struct session *session, const qkv_encoding *source, struct text target,
                     struct pair *pair, qkv_error *error);
void pair_free(struct pair *pair);

/* Allocates arrays of n tokens in one block, which free(encoding->begin) frees. */
bool encoding_room(qkv_encoding *encoding, int64_t n);
/* Copies token j of one encoding to place i of another. */
void encoding_copy(qkv_encoding *to, int64_t i, const qkv_encoding *from, int64_t j);

/* Describes one attention of the model on a text. pair may be NULL if `which` is QKV_SELF. */
struct attention_view pair_view(const struct session *session, const qkv_encoding *source,
                                const struct pair *pair, qkv_attention_kind which);
/* Opens and measures the heads of that attention on input b of a run. */
qkv_status pair_heads(const struct session *session, const struct attention_view *view,
                      const qkv_run *run, int64_t b, qkv_heads **heads, qkv_error *error);

/* Runs the model on n sources; the decoder reads the inputs of `pairs`, unless it is NULL or 0. */
qkv_status pair_model_run(const struct session *session, int64_t n,
                          const qkv_encoding *const *sources, const struct pair *pairs,
                          uint32_t flags, const qkv_run_options *what_if, qkv_run **run,
                          qkv_error *error);

/* Refuses --what-if causal of an attention that is causal anyway. */
qkv_status pair_check_causal(const struct what_if *what_if, const struct attention_view *view,
                             qkv_error *error);

/* ---- Names ----------------------------------------------------------------------------------- */

/*
 * What an attention of an encoder-decoder is called; any other model has one attention, which needs
 * no name.
 */
/* In JSON: "encoder", "decoder", "cross"; NULL. */
const char *attention_key(const struct session *session, qkv_attention_kind which);
/* In captions: "the encoder, ", "the decoder's attention to the source, ", …; "". */
const char *attention_words(const struct session *session, qkv_attention_kind which);
/* After "heads": " of the encoder", " of cross-attention", …; "". */
const char *attention_heads(const struct session *session, qkv_attention_kind which);

/* Adds to an object the target and, for each row, the token that was read and the one predicted. */
void pair_json(const struct session *session, const struct pair *pair, json_t *object);

enum { HEAD_NAME = 80 };
/* "Layer 1, head 2", "Cross-attention, layer 1, head 2" … */
void attention_head(const struct session *session, qkv_attention_kind which, int64_t layer,
                    int64_t head, char name[HEAD_NAME]);

#endif
