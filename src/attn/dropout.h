/**
 * Dropout of a block: the problem's share and seed as what kernels/tmpl/dropout.h works on, rounds'
 * keys included.
 */
#ifndef QKVI_ATTN_DROPOUT_H
#define QKVI_ATTN_DROPOUT_H

#include "attn/desc.h"
#include "kernels/attend.h"

/** By what kept weights are multiplied, 1 / (1 - dropout), each rounded; 0 if none is kept. */
static inline float qkvi_dropout_factor(const qkvi_problem *p) {
    if (!p->has_dropout) return 1;
    return p->dropout < 1 ? 1 / (1 - p->dropout) : 0;
}

/**
 * Fills *d for head h of batch b, from query i and key j on, which is a multiple of 32, and returns
 * it; NULL without dropout.
 */
const qkvi_dropout *qkvi_dropout_from(const qkvi_problem *p, int64_t b, int64_t h, int64_t i,
                                      int64_t j, qkvi_dropout *d);

#endif
