/*
 * qkvi_sort against qsort: sizes, repeated values, inputs that make a quicksort quadratic, orders
 * that contradict themselves. The number of comparisons is bounded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "core/sort.h"

typedef struct record {
    uint32_t key;
    char rest[21]; /* no multiple of a word */
} record;

static uint64_t n_compared;

static int by_key(const void *a, const void *b) {
    const uint32_t x = ((const record *)a)->key, y = ((const record *)b)->key;
    return (x > y) - (x < y);
}
static int counted(const void *a, const void *b, void *user) {
    assert_ptr_equal(user, &n_compared);
    n_compared++;
    return by_key(a, b);
}

static double log2_of(size_t n) {
    double bits = 0;
    for (; n > 1; n /= 2) bits++;
    return bits + 1;
}

static void check(record *records, size_t n) {
    record *const expected = malloc((n + 1) * sizeof *expected);
    assert_non_null(expected);
    if (n) memcpy(expected, records, n * sizeof *records);
    if (n) qsort(expected, n, sizeof *expected, by_key);
    n_compared = 0;
    qkvi_sort(records, n, sizeof *records, counted, &n_compared);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(records[i].key, expected[i].key);
        for (size_t c = 0; c < sizeof records[i].rest; c++) /* which belongs to its key */
            assert_int_equal(records[i].rest[c], (char)(records[i].key + c));
    }
    assert_true((double)n_compared <= 4 * (double)n * log2_of(n) + 200);
    free(expected);
}

static void fill(record *r, uint32_t key) {
    r->key = key;
    for (size_t c = 0; c < sizeof r->rest; c++) r->rest[c] = (char)(key + c);
}

static void as_qsort(void **state) {
    (void)state;
    qkvi_rng rng = qkvi_rng_make(3, 0, 0);
    for (size_t n = 0; n < 3000; n = n < 70 ? n + 1 : n * 3 / 2) {
        record *const records = malloc((n + 1) * sizeof *records);
        assert_non_null(records);
        for (int shape = 0; shape < 6; shape++) {
            for (size_t i = 0; i < n; i++) {
                const uint32_t at = (uint32_t)i, random = qkvi_rng_u32(&rng);
                const uint32_t keys[] = {
                    random, random % 3, 7, at, (uint32_t)n - at, at % 2 ? at : (uint32_t)n - at
                };
                fill(&records[i], keys[shape]);
            }
            check(records, n);
        }
        free(records);
    }
}

/*
 * McIlroy, "A Killer Adversary for Quicksort": values are chosen while the sort asks, so that each
 * pivot turns out to be among the least.
 */
typedef struct adversary {
    uint32_t value[2000], gas, n_solid, candidate;
} adversary;

static int against(const void *left, const void *right, void *user) {
    adversary *const a = user;
    const uint32_t x = *(const uint32_t *)left, y = *(const uint32_t *)right;
    n_compared++;
    if (a->value[x] == a->gas && a->value[y] == a->gas)
        a->value[x == a->candidate ? x : y] = a->n_solid++;
    if (a->value[x] == a->gas)
        a->candidate = x;
    else if (a->value[y] == a->gas)
        a->candidate = y;
    return (a->value[x] > a->value[y]) - (a->value[x] < a->value[y]);
}

static void worst_case(void **state) {
    (void)state;
    enum { N = 2000 };
    static adversary a = { .gas = N, .candidate = N };
    uint32_t places[N];
    for (uint32_t i = 0; i < N; i++) {
        places[i] = i;
        a.value[i] = N;
    }
    n_compared = 0;
    qkvi_sort(places, N, sizeof *places, against, &a);
    for (uint32_t i = 1; i < N; i++) assert_true(a.value[places[i - 1]] <= a.value[places[i]]);
    assert_true((double)n_compared <= 5 * N * log2_of(N));
}

static int always(const void *a, const void *b, void *user) {
    (void)a, (void)b;
    return *(const int *)user;
}
static int thrown(const void *a, const void *b, void *user) {
    (void)a, (void)b;
    return (int)qkvi_rng_below(user, 3) - 1;
}

static void contradictions(void **state) {
    (void)state;
    uint8_t bytes[1000], n_of[256];
    qkvi_rng rng = qkvi_rng_make(4, 0, 0);
    for (int answer = -1; answer <= 2; answer++) {
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)i;
        if (answer < 2)
            qkvi_sort(bytes, sizeof bytes, 1, always, &answer);
        else
            qkvi_sort(bytes, sizeof bytes, 1, thrown, &rng);
        memset(n_of, 0, sizeof n_of);
        for (size_t i = 0; i < sizeof bytes; i++) n_of[bytes[i]]++;
        for (int i = 0; i < 256; i++) assert_int_equal(n_of[i], i < 1000 % 256 ? 4 : 3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_qsort),
        cmocka_unit_test(worst_case),
        cmocka_unit_test(contradictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
