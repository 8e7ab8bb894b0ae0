/*
 * A bias of scores by distance (T5: Raffel et al. 2020, section 2.1): each head has a number for
 * each bucket of distances, and all blocks of a stack the same.
 *
 *     bucket(n) = n                                                        n < e,   e = B / 2
 *                 min(e + floor(ln(n / e) / ln(most / e) (B - e)), B - 1)  n >= e
 *
 * of B buckets: in a decoder all of them, n = max(i - j, 0); in an encoder half of them are of
 * keys j <= i, n = i - j, and the other half of those after i, n = j - i. From `most` on, all keys
 * are in the last bucket.
 */
#ifndef QKVI_LAYER_DISTANCES_H
#define QKVI_LAYER_DISTANCES_H

#include <stdbool.h>

#include "qkv/qkv.h"

typedef struct qkvi_distance_bias {
    int64_t n_heads, n_buckets, most;
    bool causal;
    float *table; /* [n_buckets][n_heads], a parameter */
    float *bias;  /* [n_heads][qkvi_distance_bias_size] of all distances, owned by the stack */
} qkvi_distance_bias;

/* Distances of a head: from -most to most, in a decoder to 0. */
static inline int64_t qkvi_distance_bias_size(const qkvi_distance_bias *d) {
    return d->most + 1 + (d->causal ? 0 : d->most);
}

/* The bucket of a key at j - i = distance. */
int64_t qkvi_distance_bucket(const qkvi_distance_bias *distances, int64_t distance);

/* Fills bias from the table; to be called after every change of the table. */
void qkvi_distance_bias_fill(const qkvi_distance_bias *distances);

/* Sets the fields of a descriptor in which query i and key i stand at the same position. */
void qkvi_distance_bias_describe(const qkvi_distance_bias *distances, qkv_attention_desc *desc);

/*
 * Adds d_bias, which has the shape of bias, to the gradient of the table, in the order of
 * distances.
 */
void qkvi_distance_bias_backward(const qkvi_distance_bias *distances, const float *d_bias,
                                 float *d_table);

#endif
