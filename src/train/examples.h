/**
 * Training examples. Example number `index` is a pure function of (seed, split, index): it does not
 * depend on its batch, on the thread that makes it, or on examples before it. The objective
 * (trainer.h) says what an example is.
 */
#ifndef QKVI_TRAIN_EXAMPLES_H
#define QKVI_TRAIN_EXAMPLES_H

#include "model/arch/net.h"
#include "qkv/model.h"
#include "train/corpus.h"
#include "train/pictures.h"

/** A batch of sequences that is being filled, and the arrays of its qkvi_net_batch. */
typedef struct qkvi_feed {
    qkvi_net_batch view; /* points to the arrays below, for qkvi_net_forward and qkvi_net_loss */
    int64_t capacity, max_len, n_tokens;
    int64_t *lengths; /* [capacity] */
    int32_t *ids;     /* [capacity * max_len], like the next three */
    uint8_t *types;
    int64_t *target_tokens;
    int32_t *target_ids;
    int32_t *labels; /* [capacity] */
    /* Of encoder-decoders: */
    int64_t *decoder_lengths; /* [capacity] */
    int32_t *decoder_ids;     /* [capacity * max_len] */
    int64_t n_decoder_tokens;
    qkvi_pixels *images; /* [capacity]: those of the examples that were taken */
} qkvi_feed;

/** Allocates arrays for capacity sequences of at most max_len tokens. LIMIT, MEMORY. */
qkv_status qkvi_feed_make(qkvi_feed *batch, int64_t capacity, int64_t max_len, qkv_error *error);
void qkvi_feed_free(qkvi_feed *batch);
void qkvi_feed_clear(qkvi_feed *batch);

/**
 * Appends a sequence of n <= max_len tokens to a batch that is not full. @return the index of its
 * first token.
 */
int64_t qkvi_feed_add(qkvi_feed *batch, int64_t n, const int32_t *ids, const uint8_t *types,
                      int32_t label);

/** One example. The arrays are [max_len]. */
typedef struct qkvi_example {
    int64_t n, n_decoder, n_targets;
    int32_t *ids, *decoder_ids, *target_ids;
    uint8_t *types;
    int64_t *targets; /* [n_targets] ascending indices in decoder_ids, if there are any, else ids */
    int32_t label;    /* 1: the second sentence follows the first, 0: not; of an image; -1: none */
    uint8_t *rgb;     /* of an image: [side][side][3], and … */
    float *pixels;    /* … [3][side][side]; NULL: of a text */
    qkv_status status;
    qkv_error error;
} qkvi_example;

typedef struct qkvi_examples qkvi_examples;

/** Makes an example in its arrays, which are allocated; sets status and error. */
typedef void qkvi_example_make(const qkvi_examples *examples, qkvi_split split, int64_t index,
                               qkvi_example *example);

/** The caller sets what is above the line, then calls qkvi_examples_make. */
struct qkvi_examples {
    qkvi_example_make *make;
    const qkvi_corpus *corpus;
    const qkvi_pictures *pictures; /* of models of images, of image_side; NULL */
    int64_t image_side;
    const qkv_tokenizer *tokenizer, *target_tokenizer; /* the second one of encoder-decoders */
    uint64_t seed;
    int64_t max_len, n_words; /* of the model; the vocabulary of a tokenizer may be larger */
    int alone;                /* examples are single sentences: no head for next sentences */
    int32_t begin_id, end_id; /* the tokens around a document */
    int32_t start_id;         /* the first token of a decoder over an encoder */
    /* ---------------------------------------- */
    qkvi_example *slots; /* [capacity] */
    int64_t capacity;
};

/** Allocates slots for at most capacity examples at a time. MEMORY. */
qkv_status qkvi_examples_make(qkvi_examples *examples, int64_t capacity, qkv_error *error);
void qkvi_examples_free(qkvi_examples *examples);

/**
 * Fills batch with the examples first … first + n - 1 of a split. FORMAT for text that is not
 * UTF-8; MEMORY.
 */
qkv_status qkvi_examples_fill(qkv_ctx *ctx, qkvi_examples *examples, qkvi_split split,
                              int64_t first, int64_t n, qkvi_feed *batch, qkv_error *error);
/** Its first half: makes the examples first … first + n - 1 of a split in slots 0 … n - 1. */
qkv_status qkvi_examples_draw(qkv_ctx *ctx, qkvi_examples *examples, qkvi_split split,
                              int64_t first, int64_t n, qkv_error *error);
/** Its second half: fills batch with the examples in slots from … end - 1. */
void qkvi_examples_take(const qkvi_examples *examples, int64_t from, int64_t end, qkvi_feed *batch);

#endif
