/* See dropout.h. */
#include "attn/dropout.h"

const qkvi_dropout *qkvi_dropout_from(const qkvi_problem *p, int64_t b, int64_t h, int64_t i,
                                      int64_t j, qkvi_dropout *d) {
    if (!p->has_dropout) return NULL;
    const uint64_t head = (uint64_t)(b * p->n_heads + h);
    *d = (qkvi_dropout){ .last = p->dropout_last,
                         .head = { (uint32_t)head, (uint32_t)(head >> 32) },
                         .row = i,
                         .col = j,
                         .kept = 1 - p->dropout,
                         .factor = qkvi_dropout_factor(p) };
    for (uint32_t round = 0; round < 10; round++) {
        d->key[round][0] = (uint32_t)p->dropout_seed + round * 0x9E3779B9;
        d->key[round][1] = (uint32_t)(p->dropout_seed >> 32) + round * 0xBB67AE85;
    }
    return d;
}
