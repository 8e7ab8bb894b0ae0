/* See dropout.h. */
#include "attn/dropout.h"

const qkvi_dropout *qkvi_dropout_from(const qkvi_problem *p, int64_t b, int64_t h, int64_t i,
                                      int64_t j, qkvi_dropout *d) {
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
