/**
 * Spearman's correlation by two radix sorts. The bits of a double sort like the numbers, if those
 * of negative ones are inverted and the sign bit of others is set. Sums go over pairs in the
 * caller's order.
 */
#include <math.h>

#include "files/base.h"
#include "inspect/map.h"

enum { DIGIT_BITS = 10, DIGITS = 7, VALUES = 1 << DIGIT_BITS };

struct item {
    uint64_t key;
    int64_t at;
};

static uint64_t key_of(double x) {
    const double positive_zero = x + 0.0;
    uint64_t bits;
    memcpy(&bits, &positive_zero, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/*
 * By digits from the lowest; each pass keeps the order of equal ones. Returns where the result is.
 */
static struct item *sort(struct item *items, struct item *spare, int64_t n) {
    for (int shift = 0; shift < DIGITS * DIGIT_BITS; shift += DIGIT_BITS) {
        int32_t starts[VALUES + 1] = { 0 };
        for (int64_t i = 0; i < n; i++) starts[(items[i].key >> shift & (VALUES - 1)) + 1]++;
        if (starts[(items[0].key >> shift & (VALUES - 1)) + 1] == n) continue; /* all alike */
        for (int v = 0; v < VALUES; v++) starts[v + 1] += starts[v];
        for (int64_t i = 0; i < n; i++)
            spare[starts[items[i].key >> shift & (VALUES - 1)]++] = items[i];
        struct item *const sorted = spare;
        spare = items;
        items = sorted;
    }
    return items;
}

/* Less the mean of all ranks. */
static void rank(const double *a, int64_t n, struct item *items, struct item *spare,
                 double *ranks) {
    for (int64_t i = 0; i < n; i++) items[i] = (struct item){ key_of(a[i]), i };
    const struct item *const sorted = sort(items, spare, n);
    for (int64_t first = 0; first < n;) {
        int64_t end = first + 1;
        while (end < n && sorted[end].key == sorted[first].key) end++;
        const double middle = ((double)(first + end - 1) - (double)(n - 1)) / 2;
        while (first < end) ranks[sorted[first++].at] = middle;
    }
}

static double correlate(const double *a, const double *b, int64_t n) {
    double both = 0, a2 = 0, b2 = 0;
    for (int64_t i = 0; i < n; i++) {
        both += a[i] * b[i];
        a2 += a[i] * a[i];
        b2 += b[i] * b[i];
    }
    return a2 > 0 && b2 > 0 ? both / sqrt(a2 * b2) : NAN;
}

qkv_status qkvi_rank_correlation(const double *a, const double *b, int64_t n, double *correlation,
                                 qkv_error *error) {
    struct item *const items = qkvi_malloc_array((size_t)n, 2 * sizeof *items);
    double *const ranks = qkvi_malloc_array((size_t)n, 2 * sizeof *ranks);
    const int made = items && ranks;
    *correlation = NAN;
    if (made && n > 0) {
        rank(a, n, items, items + n, ranks);
        rank(b, n, items, items + n, ranks + n);
        *correlation = correlate(ranks, ranks + n, n);
    }
    free(items);
    free(ranks);
    if (made) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the ranks of %lld pairs",
                          (long long)n);
}
