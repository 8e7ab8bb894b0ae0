/*
 * The matrix product against a plain statement of its order of operations (memcmp: every
 * instruction set, thread counts, strides of A and B, accumulation, bias), and that statement
 * against double within the bound of a chain of k roundings.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "kernels/gemm.h"

enum { CANARY = 0x7FC0BEEF }; /* a NaN: shows reads of what lies between rows, and writes to it */

static void *array(size_t n) {
    uint32_t *words = qkvi_aligned_array(n, sizeof *words);
    assert_non_null(words);
    for (size_t i = 0; i < n; i++) words[i] = CANARY;
    return words;
}

struct problem {
    int64_t m, n, k;
    bool a_by_columns, b_by_columns, accumulate, with_bias;
};

struct data {
    float *a, *b, *c_before, *bias, *expected;
    int64_t a_row, a_col, b_row, b_col, c_row, c_elems;
};

static float draw(qkvi_rng *rng) { return qkvi_rng_unit(rng) * 2.0f - 1.0f; }

/* The contract of gemm.h, word by word. */
static float ordered_product(const struct problem *p, const struct data *d, int64_t i, int64_t j) {
    float total = p->accumulate ? d->c_before[i * d->c_row + j] : 0.0f;
    for (int64_t k0 = 0; k0 == 0 || k0 < p->k; k0 += 256) {
        float chain = 0.0f;
        for (int64_t c = k0; c < p->k && c < k0 + 256; c++)
            chain =
                fmaf(d->a[i * d->a_row + c * d->a_col], d->b[c * d->b_row + j * d->b_col], chain);
        total = k0 == 0 && !p->accumulate ? chain : total + chain;
    }
    return p->with_bias ? total + d->bias[j] : total;
}

static void check_against_double(const struct problem *p, const struct data *d, int64_t i,
                                 int64_t j, float got) {
    double exact = 0, size = 0;
    for (int64_t c = 0; c < p->k; c++) {
        const double product =
            (double)d->a[i * d->a_row + c * d->a_col] * (double)d->b[c * d->b_row + j * d->b_col];
        exact += product;
        size += fabs(product);
    }
    const double before = p->accumulate ? (double)d->c_before[i * d->c_row + j] : 0;
    const double bias = p->with_bias ? (double)d->bias[j] : 0;
    exact += before + bias;
    size += fabs(before) + fabs(bias);
    const double n_roundings = (double)(p->k < 256 ? p->k : 256) + (double)p->k / 256 + 3;
    assert_true(fabs((double)got - exact) <= n_roundings * (FLT_EPSILON / 2) * size);
}

static struct data make_data(const struct problem *p, qkvi_rng *rng) {
    struct data d;
    d.a_row = p->a_by_columns ? 1 : p->k + 3;
    d.a_col = p->a_by_columns ? p->m + 5 : 1;
    d.b_row = p->b_by_columns ? 1 : p->n + 7;
    d.b_col = p->b_by_columns ? p->k + 1 : 1;
    d.c_row = p->n + 2;
    d.c_elems = p->m * d.c_row;
    d.a = array((size_t)((p->m + 5) * (p->k + 3)));
    d.b = array((size_t)((p->n + 7) * (p->k + 1)));
    d.c_before = array((size_t)d.c_elems);
    d.expected = array((size_t)d.c_elems);
    d.bias = array((size_t)p->n);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t c = 0; c < p->k; c++) d.a[i * d.a_row + c * d.a_col] = draw(rng);
    for (int64_t c = 0; c < p->k; c++)
        for (int64_t j = 0; j < p->n; j++) d.b[c * d.b_row + j * d.b_col] = draw(rng);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) d.c_before[i * d.c_row + j] = draw(rng);
    for (int64_t j = 0; j < p->n; j++) d.bias[j] = draw(rng);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            const float value = ordered_product(p, &d, i, j);
            check_against_double(p, &d, i, j, value);
            d.expected[i * d.c_row + j] = value;
        }
    return d;
}

static void free_data(struct data *d) {
    free(d->a);
    free(d->b);
    free(d->c_before);
    free(d->expected);
    free(d->bias);
}

static qkvi_pool *pools[5]; /* of 1, 2, 3, 5 and 16 threads */

/* A where it lies (space: NULL), or copied. */
static void check_job(const struct problem *p, const struct data *d, qkvi_pool *pool,
                      const qkvi_gemm_job *given, float *space) {
    qkvi_gemm_job job = *given;
    job.space = space;
    memcpy(job.c, d->c_before, (size_t)d->c_elems * sizeof *job.c);
    if (!p->accumulate) /* what is stored must not be read first */
        for (int64_t i = 0; i < p->m; i++)
            memset(job.c + i * d->c_row, 0xFF, (size_t)p->n * sizeof *job.c);
    qkvi_gemm(pool, &job);
    if (d->c_elems && memcmp(job.c, d->expected, (size_t)d->c_elems * sizeof *job.c) != 0)
        fail_msg("%s, %d threads%s: m=%lld n=%lld k=%lld differs", job.kernels->name,
                 qkvi_pool_threads(pool), space ? ", copied" : "", (long long)p->m, (long long)p->n,
                 (long long)p->k);
}

/* Floats to which A is copied if it lies as badly as it can. */
static size_t space_of(const qkvi_pool *pool, qkvi_gemm_job job) {
    if (job.a_col == 1) job.a_row = 1024;
    return qkvi_gemm_copy_elems(pool, &job, 8);
}

static void check(const struct problem *p, qkvi_rng *rng) {
    struct data d = make_data(p, rng);
    const size_t packed_elems = qkvi_gemm_packed_elems(p->k, p->n);
    float *packed = array(packed_elems), *repacked = array(packed_elems);
    float *c = array((size_t)d.c_elems);
    qkvi_gemm_pack_b(NULL, NULL, p->k, p->n, d.b, d.b_row, d.b_col, packed);
    const qkvi_kernels *kernels;
    qkvi_gemm_job job = { .m = p->m,
                          .n = p->n,
                          .k = p->k,
                          .a = d.a,
                          .a_row = d.a_row,
                          .a_col = d.a_col,
                          .packed_b = packed,
                          .c = c,
                          .c_row = d.c_row,
                          .bias = p->with_bias ? d.bias : NULL,
                          .accumulate = p->accumulate };
    for (int isa = 0; (kernels = qkvi_kernels_at(isa)); isa++)
        for (size_t t = 0; t < sizeof pools / sizeof *pools; t++) {
            if (isa == 0 && t != 0 && t != 4) continue; /* scalar is slow: 1 and 16 threads */
            qkvi_gemm_pack_b(pools[t], kernels, p->k, p->n, d.b, d.b_row, d.b_col, repacked);
            assert_memory_equal(packed, repacked, packed_elems * sizeof *packed);
            job.kernels = kernels;
            check_job(p, &d, pools[t], &job, NULL);
            const size_t space_elems = space_of(pools[t], job);
            if (space_elems == 0) continue;
            float *const space = array(space_elems);
            check_job(p, &d, pools[t], &job, space);
            free(space);
        }
    free(packed);
    free(repacked);
    free(c);
    free_data(&d);
}

static void options_of(struct problem *p, unsigned bits) {
    p->a_by_columns = bits & 1;
    p->b_by_columns = bits & 2;
    p->accumulate = bits & 4;
    p->with_bias = bits & 8;
}

/*
 * Both sides of every edge: register tile, panel, block of k, block of rows; zeros; with all
 * sixteen kinds of options.
 */
static void edges(void **state) {
    (void)state;
    static const int16_t sizes[][3] = {
        { 0, 5, 5 },     { 5, 0, 5 },     { 3, 5, 0 },      { 1, 1, 1 },    { 5, 15, 16 },
        { 6, 16, 17 },   { 7, 17, 15 },   { 11, 31, 33 },   { 12, 32, 1 },  { 13, 33, 255 },
        { 23, 63, 256 }, { 25, 65, 257 }, { 1, 129, 511 },  { 49, 1, 513 }, { 193, 40, 20 },
        { 12, 70, 600 }, { 97, 33, 769 }, { 25, 40, 1600 },
    };
    qkvi_rng rng = qkvi_rng_make(3, 0, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned bits = 0; bits < 16; bits++) {
            struct problem p = { .m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2] };
            options_of(&p, bits);
            check(&p, &rng);
        }
}

static void random_shapes(void **state) {
    (void)state;
    const char *text = getenv("QKV_TEST_SEED");
    const uint64_t seed = text ? strtoull(text, NULL, 0) : 1;
    print_message("QKV_TEST_SEED=%llu\n", (unsigned long long)seed);
    qkvi_rng rng = qkvi_rng_make(seed, 1, 0);
    for (int i = 0; i < 40; i++) {
        struct problem p = { .m = 1 + qkvi_rng_below(&rng, 100),
                             .n = 1 + qkvi_rng_below(&rng, 150),
                             .k = 1 + qkvi_rng_below(&rng, 400) };
        options_of(&p, qkvi_rng_below(&rng, 16));
        check(&p, &rng);
    }
}

/* Large enough that work is shared, blocks of rows and of columns both. */
static void large_shapes(void **state) {
    (void)state;
    qkvi_rng rng = qkvi_rng_make(4, 0, 0);
    check(&(struct problem){ 400, 200, 260, false, true, false, true }, &rng);
    check(&(struct problem){ 130, 400, 270, true, false, true, false }, &rng);
    check(&(struct problem){ 300, 900, 530, true, false, false, false }, &rng);
}

/* Panels of the thread that draws most, where all threads draw blocks of `size` equally fast. */
static int64_t busiest(int64_t n_panels, int64_t size, int n_threads) {
    int64_t blocks = 0, turns = 0;
    for (int64_t at = 0; at < n_panels; at += size) blocks++;
    for (int64_t drawn = 0; drawn < blocks; drawn += n_threads) turns++;
    return turns * size;
}

/* Sizes of blocks: near what is wanted, and never more for the busiest thread than by that. */
static void blocks_of_panels_end_together(void **state) {
    (void)state;
    for (int64_t n = 1; n <= 80; n++)
        for (int64_t blocks = 1; blocks <= 24; blocks++)
            for (int threads = 1; threads <= 8; threads++) {
                const int64_t wanted = (n + blocks - 1) / blocks;
                const int64_t size = qkvi_gemm_panels(n, 1, blocks, threads);
                assert_int_equal(qkvi_gemm_panels(n, 2, blocks, threads), wanted);
                assert_in_range(size, 1, wanted + 1);
                if (blocks == 1) assert_int_equal(size, wanted);
                if (blocks > 1)
                    for (int64_t other = wanted > 3 ? wanted - 3 : 1; other <= wanted + 1; other++)
                        assert_true(busiest(n, size, threads) <= busiest(n, other, threads));
            }
    assert_int_equal(qkvi_gemm_panels(18, 1, 10, 2), 3); /* 9 panels each, not 10 and 8 */
}

/* Few rows, whose panels are the only blocks there are. */
static void few_rows(void **state) {
    (void)state;
    static const int16_t sizes[][3] = {
        { 1, 225, 300 }, { 1, 576, 576 }, { 2, 600, 300 }, { 12, 1471, 70 }, { 13, 321, 257 },
    };
    qkvi_rng rng = qkvi_rng_make(6, 0, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct problem p = { .m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2] };
        options_of(&p, 8 + 2 * (unsigned)(i % 2));
        check(&p, &rng);
    }
}

/* NaN and infinity stay in their row and column; zeros that pad a panel must not meet them. */
static void non_finite_values_stay_where_they_are(void **state) {
    (void)state;
    enum { M = 14, N = 35, K = 40 };
    static float a[M * K], b[K * N], c[M * N];
    for (int i = 0; i < M * K; i++) a[i] = 1.0f;
    for (int i = 0; i < K * N; i++) b[i] = 1.0f;
    a[5 * K + 7] = NAN;
    b[9 * N + 33] = INFINITY;
    float *packed = array(qkvi_gemm_packed_elems(K, N));
    qkvi_gemm_pack_b(NULL, NULL, K, N, b, N, 1, packed);
    const qkvi_kernels *kernels;
    for (int isa = 0; (kernels = qkvi_kernels_at(isa)); isa++) {
        qkvi_gemm(NULL, &(qkvi_gemm_job){ .kernels = kernels,
                                          .m = M,
                                          .n = N,
                                          .k = K,
                                          .a = a,
                                          .a_row = K,
                                          .a_col = 1,
                                          .packed_b = packed,
                                          .c = c,
                                          .c_row = N });
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                const float got = c[i * N + j];
                if (i == 5)
                    assert_true(isnan(got));
                else
                    assert_true(got == (j == 33 ? INFINITY : (float)K));
            }
    }
    free(packed);
}

static void sizes_that_do_not_fit(void **state) {
    (void)state;
    assert_int_equal(qkvi_gemm_packed_elems(10, 33), 640);
    assert_int_equal(qkvi_gemm_packed_elems(0, 5), 0);
    assert_int_equal(qkvi_gemm_packed_elems(5, 0), 0);
    assert_int_equal(qkvi_gemm_packed_elems(-1, 5), SIZE_MAX);
    assert_int_equal(qkvi_gemm_packed_elems(5, -1), SIZE_MAX);
    assert_int_equal(qkvi_gemm_packed_elems(INT64_MAX, 33), SIZE_MAX);
    assert_int_equal(qkvi_gemm_packed_elems(2, INT64_MAX), SIZE_MAX);
    assert_int_equal(qkvi_gemm_packed_elems(INT64_C(1) << 31, INT64_C(1) << 31), SIZE_MAX);
}

static int make_pools(void **state) {
    (void)state;
    static const int n_threads[] = { 1, 2, 3, 5, 16 };
    const qkv_allocator allocator = qkvi_allocator_resolve((qkv_allocator){ 0 });
    for (size_t t = 0; t < sizeof pools / sizeof *pools; t++)
        pools[t] = qkvi_pool_create(&allocator, n_threads[t], NULL);
    return 0;
}

static int free_pools(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof pools / sizeof *pools; t++) qkvi_pool_release(pools[t]);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges),
        cmocka_unit_test(random_shapes),
        cmocka_unit_test(large_shapes),
        cmocka_unit_test(blocks_of_panels_end_together),
        cmocka_unit_test(few_rows),
        cmocka_unit_test(non_finite_values_stay_where_they_are),
        cmocka_unit_test(sizes_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, make_pools, free_pools);
}
