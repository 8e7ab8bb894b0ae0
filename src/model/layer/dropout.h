/*
 * Dropout of rows (Srivastava et al. 2014): x becomes x / (1 - rate) or 0, a pure function of seed,
 * site, row and channel, so that the backward pass does the same to gradients and nothing has to be
 * kept.
 */
#ifndef QKVI_LAYER_DROPOUT_H
#define QKVI_LAYER_DROPOUT_H

#include "qkv/qkv.h"

typedef struct qkvi_row_dropout {
    float rate;    /* 0: nothing happens */
    uint64_t seed; /* of a step */
    uint32_t site; /* of a place in the network */
} qkvi_row_dropout;

/* x [n_rows][n], in place. */
void qkvi_dropout_rows(qkv_ctx *ctx, const qkvi_row_dropout *dropout, int64_t n_rows, int64_t n,
                       float *x);

/* A seed for the weights of the number-th attention of a site. */
uint64_t qkvi_dropout_key(const qkvi_row_dropout *dropout, uint64_t number);

#endif
