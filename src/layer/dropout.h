/*
 * Dropout of rows (Srivastava et al. 2014), for hidden states: x becomes x / (1 - rate) where it is
 * kept, and 0 elsewhere.
 *
 * What is kept is a pure function of (seed, site, row, channel), so the backward pass calls the
 * same function on the gradient, and neither threads nor instruction sets matter. It is the
 * function of attention (docs/numerics.md, section Dropout) with row as query, channel as key, and
 * site + 2^63 as head.
 */
#ifndef QKVI_LAYER_DROPOUT_H
#define QKVI_LAYER_DROPOUT_H

#include "core/rng.h"
#include "qkv/qkv.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/* Dropout at a place of the network, in one step of training. */
typedef struct qkvi_row_dropout {
    float rate;
    uint64_t seed; /* the step's */
    uint32_t site;
} qkvi_row_dropout;

/*
 * In place, x [n_rows][n]. 0 <= rate <= 1: below 2^-32 nothing is touched; 1: all becomes 0, as
 * does any dropped value, NaN included. Sites tell one place of the network from another.
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
