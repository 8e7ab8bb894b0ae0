/*
 * Quicksort with the median of three as pivot. Where that divides badly too often, heapsort takes
 * over, so the bound holds for every input (Musser, "Introspective Sorting and Selection
 * Algorithms", Software: Practice and Experience 27, 1997).
 */
#include "core/sort.h"

#include <string.h>

typedef struct sorting {
    size_t size;
    qkvi_comparison *order;
    void *user;
} sorting;

static void swap(const sorting *s, char *a, char *b) {
    char room[16];
    for (size_t n, left = s->size; left > 0; left -= n, a += n, b += n) {
        n = left < sizeof room ? left : sizeof room;
        memcpy(room, a, n);
        memcpy(a, b, n);
        memcpy(b, room, n);
    }
}

static int before(const sorting *s, const char *a, const char *b) {
    return s->order(a, b, s->user) < 0;
}

/* ---- Heapsort -------------------------------------------------------------------------------- */

static void sink(const sorting *s, char *base, size_t at, size_t n) {
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        char *greater = base + child * s->size;
        if (child + 1 < n && before(s, greater, greater + s->size)) {
            greater += s->size;
            child++;
        }
        if (!before(s, base + at * s->size, greater)) return;
        swap(s, base + at * s->size, greater);
    }
}

static void heapsort_all(const sorting *s, char *base, size_t n) {
    for (size_t at = n / 2; at-- > 0;) sink(s, base, at, n);
    for (size_t end = n; end-- > 1;) {
        swap(s, base, base + end * s->size);
        sink(s, base, 0, end);
    }
}

/* ---- Quicksort ------------------------------------------------------------------------------- */

static void insert_all(const sorting *s, char *base, size_t n) {
    for (size_t i = 1; i < n; i++)
        for (char *at = base + i * s->size; at > base && before(s, at, at - s->size); at -= s->size)
            swap(s, at, at - s->size);
}

static void order_two(const sorting *s, char *a, char *b) {
    if (before(s, b, a)) swap(s, a, b);
}

/*
 * The median of the first, the middle and the last element goes to the front; then elements below
 * it come first (Hoare). Returns its place in the end. Neither scan relies on a sentinel.
 */
static size_t divide(const sorting *s, char *base, size_t n) {
    char *const middle = base + n / 2 * s->size, *const last = base + (n - 1) * s->size;
    order_two(s, base, middle);
    order_two(s, base, last);
    order_two(s, middle, last);
    swap(s, base, middle);
    size_t low = 1, high = n - 1;
    for (;;) {
        while (low <= high && before(s, base + low * s->size, base)) low++;
        while (low <= high && before(s, base, base + high * s->size)) high--;
        if (low >= high) break;
        swap(s, base + low * s->size, base + high * s->size);
        low++;
        high--;
    }
    swap(s, base, base + high * s->size);
    return high;
}

enum { FEW = 16 }; /* elements that insertion sorts faster */

void qkvi_sort(void *array, size_t n, size_t size, qkvi_comparison *order, void *user) {
    const sorting s = { size, order, user };
    /* Of two parts the larger one waits, so a halving needs one entry at most. */
    struct {
        char *base;
        size_t n;
        int divisions; /* that are left */
    } waiting[64];
    int n_waiting = 0, divisions = 2;
    for (size_t half = n; half > 1; half /= 2) divisions += 2;
    for (char *base = array;;) {
        while (n > FEW && divisions-- > 0) {
            const size_t at = divide(&s, base, n), right = n - at - 1;
            char *const above = base + (at + 1) * size;
            const int left_is_larger = at > right;
            waiting[n_waiting].base = left_is_larger ? base : above;
            waiting[n_waiting].n = left_is_larger ? at : right;
            waiting[n_waiting++].divisions = divisions;
            if (left_is_larger) base = above;
            n = left_is_larger ? right : at;
        }
        if (n > FEW)
            heapsort_all(&s, base, n);
        else
            insert_all(&s, base, n);
        if (n_waiting == 0) return;
        n_waiting--;
        base = waiting[n_waiting].base;
        n = waiting[n_waiting].n;
        divisions = waiting[n_waiting].divisions;
    }
}
