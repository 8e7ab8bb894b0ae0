/**
 * Training examples: number `index` of a split, as a pure function of (seed, split, index), so that
 * an example does not depend on its batch, on the thread that makes it, or on what was made before.
 * What an example is, an objective says: trainer.h.
 */
#ifndef QKVI_TRAIN_EXAMPLES_H
#define QKVI_TRAIN_EXAMPLES_H

#include "model/arch/net.h"
#include "qkv/model.h"
#include "train/corpus.h"

/** A batch of sequences being filled: the arrays behind a qkvi_net_batch. */

typedef struct qkvi_feed {
    qkvi_net_batch view; /* of the arrays below, for qkvi_net_forward and qkvi_net_loss */
    int64_t capacity, max_len, n_tokens;
    int64_t *lengths; /* [capacity] */
    int32_t *ids;     /* [capacity * max_len], as all that follow but labels */
    uint8_t *types;
    int64_t *target_tokens;
    int32_t *target_ids;
    int32_t *labels;          /* [capacity] */
    int64_t *decoder_lengths; /* [capacity], and the rest for decoders over encoders … */
    int32_t *decoder_ids;     /* [capacity * max_len] */
    int64_t n_decoder_tokens;
} qkvi_feed;

/** Room for capacity sequences of at most max_len tokens. LIMIT, MEMORY. */
qkv_status qkvi_feed_make(qkvi_feed *batch, int64_t capacity, int64_t max_len, qkv_error *error);
void qkvi_feed_free(qkvi_feed *batch);
void qkvi_feed_clear(qkvi_feed *batch);

/**
 * Appends a sequence; n <= max_len and there must be room. @return the index of its first token.
 */
int64_t qkvi_feed_add(qkvi_feed *batch, int64_t n, const int32_t *ids, const uint8_t *types,
                      int32_t label);

/** One example. Arrays have room for max_len. */
typedef struct qkvi_example {
    int64_t n, n_decoder, n_targets;
    int32_t *ids, *decoder_ids, *target_ids;
    uint8_t *types;
    int64_t *targets; /* places in ids, or in decoder_ids if there are any; ascending */
    int32_t label;    /* of the next sentence; -1: none */
    qkv_status status;
    qkv_error error;
} qkvi_example;

typedef struct qkvi_examples qkvi_examples;

/** Fills an example but for its arrays; says in status and error why it could not. */
typedef void qkvi_example_make(const qkvi_examples *examples, qkvi_split split, int64_t index,
                               qkvi_example *example);

/** The caller fills what is above the line, then calls qkvi_examples_make. */
struct qkvi_examples {
    qkvi_example_make *make;
    const qkvi_corpus *corpus;
    const qkv_tokenizer *tokenizer, *target_tokenizer; /* the second for decoders over encoders */
    uint64_t seed;
    int64_t max_len, n_words;           /* of the model: a tokenizer may have more */
    int alone;                          /* sentences alone: the model predicts no next one */
    int32_t begin_id, end_id, start_id; /* around a document; what a decoder starts from */
    /* ---------------------------------------- */
    qkvi_example *slots; /* [capacity]: one for each thread's work in progress */
    int64_t capacity;
};

/** For at most capacity examples at a time. MEMORY. */
qkv_status qkvi_examples_make(qkvi_examples *examples, int64_t capacity, qkv_error *error);
void qkvi_examples_free(qkvi_examples *examples);

/**
 * Fills batch with the examples first … first + n - 1 of a split. FORMAT for text that is not
 * UTF-8; MEMORY.
 */
qkv_status qkvi_examples_fill(qkv_ctx *ctx, qkvi_examples *examples, qkvi_split split,
                              int64_t first, int64_t n, qkvi_feed *batch, qkv_error *error);
/** Its halves: makes the examples first … first + n - 1 of a split in slots 0 … n - 1. */
qkv_status qkvi_examples_draw(qkv_ctx *ctx, qkvi_examples *examples, qkvi_split split,
                              int64_t first, int64_t n, qkv_error *error);
/** Fills batch with what slots from … end - 1 hold. */
void qkvi_examples_take(const qkvi_examples *examples, int64_t from, int64_t end, qkvi_feed *batch);

#endif
