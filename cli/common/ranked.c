/* See ranked.h. */
#include "common/ranked.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *x, const void *y) {
    const struct ranked *const a = x, *const b = y;
    if (isnan(a->key) != isnan(b->key)) return isnan(a->key) ? 1 : -1;
    if (a->key < b->key || a->key > b->key) return a->key < b->key ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

void ranked_sort(struct ranked *list, int64_t n) { qsort(list, (size_t)n, sizeof *list, compare); }
