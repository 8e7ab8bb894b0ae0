/*
 * The best of many: keeps the `room` candidates with the greatest keys, of equal keys the smaller place.
 * A heap whose root is the worst that is kept.
 */
#ifndef QKVI_GENERATE_TOP_H
#define QKVI_GENERATE_TOP_H

#include "model/base.h"

typedef struct qkvi_top_item {
    double key, value; /* value: the caller's */
    int64_t at;        /* no two have the same */
} qkvi_top_item;

typedef struct qkvi_top {
    int64_t n, room;      /* room > 0 */
    qkvi_top_item *items; /* [room], the caller's */
} qkvi_top;

/* a comes before b. */
static inline bool qkvi_top_before(const qkvi_top_item *a, const qkvi_top_item *b) {
    return a->key != b->key ? a->key > b->key : a->at < b->at;
}

void qkvi_top_offer(qkvi_top *top, double key, double value, int64_t at);

/* Best first; nothing may be offered any more. */
void qkvi_top_sort(qkvi_top *top);

#endif
