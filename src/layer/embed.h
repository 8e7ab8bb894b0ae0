/*
 * Embeddings: each row is the sum of the vectors of a word, its segment and its position. Positions
 * are learned or sinusoids (Vaswani et al. 2017, section 3.5); some models scale words by √hidden
 * (ibid. 3.4). The layer norm that follows is not part of it.
 *
 *     s[row] = (word_scale word[id] + type[segment]) + position[place]
 */
#ifndef QKVI_LAYER_EMBED_H
#define QKVI_LAYER_EMBED_H

#include <stdbool.h>

#include "layer/weights.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

typedef struct qkvi_embed {
    int64_t hidden, n_words, n_types, n_positions; /* n_positions 0: none; then type is zeros */
    float word_scale;                              /* 1: no scaling */
    float *word, *type, *position;                 /* rows of [hidden] */
    qkvi_weights tied; /* if word is NULL: words are rows of W of a layer that only runs */
    /* The rows of word and position without gradients, padding_idx of torch; -1: none. */
    int64_t padding, padding_place;
} qkvi_embed;

/* The word embeddings, in the form that the layer has. */
static inline qkvi_weights qkvi_embed_words(const qkvi_embed *layer) {
    return layer->word ? (qkvi_weights){ .n_in = layer->hidden, .floats = layer->word }
                       : layer->tied;
}

/* For each row the indices of its word, type and position, which have been checked. */
typedef struct qkvi_embed_rows {
    const int32_t *ids, *types, *places;
} qkvi_embed_rows;

/* table[p][2i] = sin(p w), table[p][2i + 1] = cos(p w), w = 10000^(-2i / hidden); without libm. */
void qkvi_sinusoids(int64_t n_positions, int64_t hidden, float *table);

/*
 * The same values, not interleaved (Marian): the sines of all frequencies, then the cosines, of
 * which there is one less if hidden is odd.
 */
void qkvi_sinusoids_half(int64_t n_positions, int64_t hidden, float *table);

void qkvi_embed_forward(qkv_ctx *ctx, const qkvi_embed *layer, int64_t n_rows,
                        const qkvi_embed_rows *rows, float *s);

/* The number of int32_t in the scratch of qkvi_embed_backward. */
int64_t qkvi_embed_scratch_elems(const qkvi_embed *layer, int64_t n_rows);

/*
 * Adds the gradient to d->word, and stores it in d->type and d->position (NULL: not learned).
 * word_scale, padding and padding_place of d are those of the layer. The gradient of a vector is
 * summed in the order of rows, so nothing depends on threads.
 */
void qkvi_embed_backward(qkv_ctx *ctx, const qkvi_embed *d, int64_t n_rows,
                         const qkvi_embed_rows *rows, const float *d_s, int32_t *scratch);

/* y[row] = scale table[ids[row]], plus y[row] if add; table is [..][n]. */
void qkvi_gather(qkv_ctx *ctx, int64_t n, int64_t n_rows, const int32_t *ids, float scale, bool add,
                 const float *table, float *y);

/*
 * d_table[slots[row]] += scale d_s[row], in the order of rows, except where slots[row] is left_out
 * (-1: none). scratch: [n_slots + n_rows].
 */
void qkvi_scatter(qkv_ctx *ctx, int64_t n, int64_t n_slots, int64_t left_out, int64_t n_rows,
                  const int32_t *slots, float scale, const float *d_s, float *d_table,
                  int32_t *scratch);

#pragma GCC visibility pop

#endif
