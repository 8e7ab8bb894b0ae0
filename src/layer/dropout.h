/*
 * Dropout of rows (Srivastava et al. 2014), for hidden states: an element x becomes x / (1 - rate)
 * if it is kept, else 0.
 *
 * Whether it is kept is a pure function of (seed, site, row, channel): the backward pass calls the
 * same function on the gradient, and neither threads nor instruction sets matter. It is the
 * function of attention (docs/numerics.md, section Dropout) with row as query, channel as key, and
 * site + 2^63 as head.
 */
#ifndef QKVI_LAYER_DROPOUT_H
#define QKVI_LAYER_DROPOUT_H

#include "core/rng.h"
#include "qkv/qkv.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/* Dropout at one site, a place in the network, in one step of training. */
typedef struct qkvi_row_dropout {
    float rate;
    uint64_t seed; /* of the step */
    uint32_t site;
} qkvi_row_dropout;

/*
 * In place, x [n_rows][n]. 0 <= rate <= 1; below 2^-32 nothing is changed, with 1 all becomes 0. A
 * dropped value becomes 0 even if it was NaN.
 */
void qkvi_dropout_rows(qkv_ctx *ctx, const qkvi_row_dropout *dropout, int64_t n_rows, int64_t n,
                       float *x);

/* A seed for the weights of the number-th attention of a site. */
static inline uint64_t qkvi_dropout_seed(const qkvi_row_dropout *dropout, uint64_t number) {
    qkvi_rng rng = qkvi_rng_make(dropout->seed, dropout->site, number);
    const uint64_t low = qkvi_rng_u32(&rng);
    return low | (uint64_t)qkvi_rng_u32(&rng) << 32;
}

#pragma GCC visibility pop

#endif
