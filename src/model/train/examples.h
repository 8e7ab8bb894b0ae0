/**
 * Training examples: pair number `index` of a corpus, tokenized, cut to the model's length, masked.
 *
 * Of every token that is not special, 15 % are to be told; of these 80 % become [MASK], 10 %
 * another token, 10 % stay. The draw for a token is a pure function of (seed, split, index,
 * position), so that an example does not depend on its batch, on the thread that makes it, or on
 * what was made before.
 */
#ifndef QKVI_TRAIN_EXAMPLES_H
#define QKVI_TRAIN_EXAMPLES_H

#include "model/train/corpus.h"
#include "model/train/feed.h"

typedef struct qkvi_examples {
    const qkvi_corpus *corpus;
    const qkv_tokenizer *tokenizer;
    uint64_t seed;
    int64_t max_len;
    struct qkvi_example *slots; /* [capacity]: one for each thread's work in progress */
    int64_t capacity;
} qkvi_examples;

/** For at most capacity examples at a time. LIMIT, MEMORY. */
qkv_status qkvi_examples_make(qkvi_examples *examples, const qkvi_corpus *corpus,
                              const qkv_tokenizer *tokenizer, uint64_t seed, int64_t capacity,
                              int64_t max_len, qkv_error *error);
void qkvi_examples_free(qkvi_examples *examples);

/**
 * Fills batch with the pairs first … first + n - 1 of a split. FORMAT for text that is not UTF-8;
 * MEMORY.
 */
qkv_status qkvi_examples_fill(qkv_ctx *ctx, qkvi_examples *examples, qkvi_split split,
                              int64_t first, int64_t n, qkvi_feed *batch, qkv_error *error);

#endif
