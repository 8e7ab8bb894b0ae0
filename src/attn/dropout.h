/**
 * Dropout of a block: the problem's share and seed as what kernels/tmpl/dropout.h works on, rounds'
 * keys included.
 */
#ifndef QKVI_ATTN_DROPOUT_H
#define QKVI_ATTN_DROPOUT_H

#include "attn/desc.h"
#include "kernels/attend.h"

/**
 * Fills *d for head h of batch b, from query i and key j on, which is a multiple of 32, and returns
 * it; NULL without dropout.
 */
const qkvi_dropout *qkvi_dropout_from(const qkvi_problem *p, int64_t b, int64_t h, int64_t i,
                                      int64_t j, qkvi_dropout *d);

#endif
