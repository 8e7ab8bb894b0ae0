/*
 * Embeddings: every row is the sum of a word's, its segment's and its position's vector; positions
 * are learned or sinusoids (Vaswani et al. 2017, section 3.5), words are scaled where a model wants
 * it (by √hidden, ibid. 3.4). The layer norm that follows is apart.
 *
 *     s[row] = (word_scale word[id] + type[segment]) + position[place]
 */
#ifndef QKVI_LAYER_EMBED_H
#define QKVI_LAYER_EMBED_H

#include <stdbool.h>

#include "layer/weights.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

typedef struct qkvi_embed {
    int64_t hidden, n_words, n_types, n_positions; /* positions 0: none, and type is one row of 0 */
    float word_scale;                              /* 1: words as they are */
    float *word, *type, *position;                 /* rows of [hidden] */
    qkvi_weights tied; /* word NULL: words are rows of these, a layer's that only runs */
    /* rows that learn nothing as embeddings: padding's; -1: all learn (torch's padding_idx) */
    int64_t padding, padding_place;
} qkvi_embed;

/* The words, in whatever form there are. */
static inline qkvi_weights qkvi_embed_words(const qkvi_embed *layer) {
    return layer->word ? (qkvi_weights){ .n_in = layer->hidden, .floats = layer->word }
                       : layer->tied;
}

/* What each row is made of: indices that have been checked. */
typedef struct qkvi_embed_rows {
    const int32_t *ids, *types, *places;
} qkvi_embed_rows;

/* table[p][2i] = sin(p w), table[p][2i + 1] = cos(p w), w = 10000^(-2i / hidden); without libm. */
void qkvi_sinusoids(int64_t n_positions, int64_t hidden, float *table);

/*
 * The same waves, not interleaved (Marian): the sines of all frequencies and then the cosines, of
 * which there is one less where hidden is odd.
 */
void qkvi_sinusoids_half(int64_t n_positions, int64_t hidden, float *table);

void qkvi_embed_forward(qkv_ctx *ctx, const qkvi_embed *layer, int64_t n_rows,
                        const qkvi_embed_rows *rows, float *s);

/* int32s that qkvi_embed_backward sorts rows in. */
int64_t qkvi_embed_scratch_elems(const qkvi_embed *layer, int64_t n_rows);

/*
 * Adds the gradient to d->word, and stores it in d->type and d->position (NULL: not learned).
 * d->word_scale and the rows that learn nothing are those of the layer. Each vector's rows are
 * summed in row order, so nothing depends on threads.
 */
void qkvi_embed_backward(qkv_ctx *ctx, const qkvi_embed *d, int64_t n_rows,
                         const qkvi_embed_rows *rows, const float *d_s, int32_t *scratch);

/* y[row] = scale table[ids[row]], + y[row] if add; table [..][n] */
void qkvi_gather(qkv_ctx *ctx, int64_t n, int64_t n_rows, const int32_t *ids, float scale, bool add,
                 const float *table, float *y);

/*
 * d_table[slots[row]] += scale d_s[row], in row order, but for the slot left_out (-1: none).
 * scratch: n_slots + n_rows.
 */
void qkvi_scatter(qkv_ctx *ctx, int64_t n, int64_t n_slots, int64_t left_out, int64_t n_rows,
                  const int32_t *slots, float scale, const float *d_s, float *d_table,
                  int32_t *scratch);

#pragma GCC visibility pop

#endif
