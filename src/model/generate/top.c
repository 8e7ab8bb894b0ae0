/* See top.h. */
#include "model/generate/top.h"

static void swap(qkvi_top_item *a, qkvi_top_item *b) {
    const qkvi_top_item kept = *a;
    *a = *b;
    *b = kept;
}

/* The children of i are 2 i + 1 and 2 i + 2; none comes behind its parent. */
static void sink(qkvi_top_item *items, int64_t n, int64_t i) {
    for (;;) {
        int64_t last = i;
        for (int64_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++)
            if (qkvi_top_before(&items[last], &items[child])) last = child;
        if (last == i) return;
        swap(&items[i], &items[last]);
        i = last;
    }
}

static void rise(qkvi_top_item *items, int64_t i) {
    while (i > 0 && qkvi_top_before(&items[(i - 1) / 2], &items[i])) {
        swap(&items[i], &items[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
}

void qkvi_top_offer(qkvi_top *top, double key, double value, int64_t at) {
    const qkvi_top_item item = { key, value, at };
    if (top->n < top->room) {
        top->items[top->n] = item;
        rise(top->items, top->n++);
    } else if (qkvi_top_before(&item, &top->items[0])) {
        top->items[0] = item;
        sink(top->items, top->n, 0);
    }
}

void qkvi_top_sort(qkvi_top *top) {
    for (int64_t n = top->n - 1; n > 0; n--) {
        swap(&top->items[0], &top->items[n]);
        sink(top->items, n, 0);
    }
}
