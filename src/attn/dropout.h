/**
 * Dropout of a block: the problem's share and seed as what kernels/tmpl/dropout.h works on, rounds'
 * keys included.
 */
#ifndef QKVI_ATTN_DROPOUT_H
#define QKVI_ATTN_DROPOUT_H

#include "attn/desc.h"
#include "kernels/attend.h"

/** How many of the 2^32 words drop what they belong to: the least ones. */
static inline uint64_t qkvi_dropout_words(float share) {
    return (uint64_t)((double)share * 0x1p32);
}

/** By what is multiplied what is kept, 1 / (1 - share), each rounded; 0 if nothing is. */
static inline float qkvi_dropout_scale(float share) { return share < 1 ? 1 / (1 - share) : 0; }

/** The same of a problem, 1 without dropout. */
static inline float qkvi_dropout_factor(const qkvi_problem *p) {
    return p->has_dropout ? qkvi_dropout_scale(p->dropout) : 1;
}

/** The key of each round. */
static inline void qkvi_dropout_key(uint64_t seed, uint32_t key[10][2]) {
    for (uint32_t round = 0; round < 10; round++) {
        key[round][0] = (uint32_t)seed + round * 0x9E3779B9;
        key[round][1] = (uint32_t)(seed >> 32) + round * 0xBB67AE85;
    }
}

/**
 * Fills *d for head h of batch b, from query i and key j on, which is a multiple of 32, and returns
 * it; NULL without dropout.
 */
static inline const qkvi_dropout *qkvi_dropout_from(const qkvi_problem *p, int64_t b, int64_t h,
                                                    int64_t i, int64_t j, qkvi_dropout *d) {
    if (!p->has_dropout) return NULL;
    const int64_t number =
        p->all_heads ? b * p->all_heads + p->head_first + h * p->head_step : b * p->n_heads + h;
    const uint64_t head = (uint64_t)number;
    *d = (qkvi_dropout){ .last = p->dropout_last,
                         .head = { (uint32_t)head, (uint32_t)(head >> 32) },
                         .row = p->first_q + i,
                         .col = j,
                         .kept = 1 - p->dropout,
                         .factor = qkvi_dropout_factor(p) };
    qkvi_dropout_key(p->dropout_seed, d->key);
    return d;
}

#endif
