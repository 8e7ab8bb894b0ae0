/*
 * kernels/gemm_bf16.h: both classes against their definition, element by element, on every kernel
 * table and with AMX where the processor has it, by memcmp; and against double within a bound.
 * Factors lie row after row or column after column. Numbers are ordinary, near 2^-126 (where sums
 * are flushed) and not finite.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/cpu.h"
#include "core/half.h"
#include "core/rng.h"
#include "kernels/gemm_bf16.h"
#include "sanitizers.h"

typedef struct shape {
    int m, n, k;
    bool with_bias, tiny;
} shape;

static float draw(qkvi_rng *rng, bool tiny) {
    const float x = qkvi_rng_unit(rng) * 2 - 1;
    if (!tiny) return x;
    return ldexpf(x, -58 - (int)qkvi_rng_below(rng, 10)); /* products about 2^-126 */
}

/* A double has the sum of a product of bf16 and a float exactly, but for what is 2^29 apart. */
static float flush(double exact) {
    const float x = (float)exact;
    return fabs(exact) < 0x1p-126 * (1 - 0x1p-25) ? copysignf(0, x) : x;
}

static float part(float x) {
    const float y = qkvi_f32_of_bf16(qkvi_bf16_of_f32(x));
    return fabsf(y) < 0x1p-126f ? 0 : y;
}

static float fused(float a, float b, float c, bool tiny) {
    return tiny ? flush((double)a * (double)b + (double)c) : fmaf(a, b, c);
}

static qkvi_arithmetic class_of(const qkvi_kernels *kernels, qkv_class class) {
    qkvi_arithmetic of[QKVI_N_GIVEN];
    qkvi_classes_here(kernels, of);
    return of[class];
}

/* The definition, word by word. a and b: k numbers each. */
static float expected_of(const shape *s, qkv_class class, const float *a, const float *b) {
    float c = 0;
    for (int k0 = 0; k0 < s->k; k0 += 32) {
        float even = 0, odd = 0;
        for (int x = k0; x < k0 + 32; x += 2) {
            const float a0 = x < s->k ? part(a[x]) : 0, a1 = x + 1 < s->k ? part(a[x + 1]) : 0;
            const float b0 = x < s->k ? part(b[x]) : 0, b1 = x + 1 < s->k ? part(b[x + 1]) : 0;
            if (class == QKV_CLASS_DP) {
                c = fused(a0, b0, fused(a1, b1, c, s->tiny), s->tiny);
            } else {
                even = fused(a0, b0, even, s->tiny);
                odd = fused(a1, b1, odd, s->tiny);
            }
        }
        if (class == QKV_CLASS_AMX)
            c = flush((double)c + (double)flush((double)even + (double)odd));
    }
    return c;
}

static float *floats(size_t n) {
    float *x = qkvi_aligned_array(n, sizeof *x);
    assert_non_null(x);
    return x;
}

/* Room for A of m x k in bf16. */
static uint16_t *halves(int64_t m, int64_t k) {
    uint16_t *x = qkvi_aligned_array(qkvi_bf16_input_elems(m, k), sizeof *x);
    assert_non_null(x);
    return x;
}

/* B of k x n, packed; its columns are dense. */
static uint32_t *packed_of(qkvi_pool *pool, int64_t k, int64_t n, const float *b) {
    uint32_t *packed = qkvi_aligned_array(qkvi_bf16_packed_words(k, n), sizeof *packed);
    assert_non_null(packed);
    qkvi_bf16_pack_b(pool, k, n, b, 1, k, packed);
    return packed;
}

static qkvi_pool *pools[2]; /* of 1 and 3 threads */

static float *transposed(int n_rows, int n_cols, const float *x) {
    float *const y = floats((size_t)(n_rows * n_cols));
    for (int i = 0; i < n_rows; i++)
        for (int j = 0; j < n_cols; j++) y[j * n_rows + i] = x[i * n_cols + j];
    return y;
}

static void check_class(const shape *s, qkv_class class, const float *a, const float *b,
                        const uint32_t *packed, const float *bias) {
    const size_t elems = (size_t)(s->m * s->n);
    float *c = floats(elems), *want = floats(elems);
    for (int i = 0; i < s->m; i++)
        for (int j = 0; j < s->n; j++) {
            const float sum = expected_of(s, class, a + i * s->k, b + j * s->k);
            want[i * s->n + j] = bias ? sum + bias[j] : sum;
        }
    float *columns = transposed(s->m, s->k, a);
    uint16_t *half = halves(s->m, s->k);
    float *sums = floats(qkvi_bf16_sums_elems(pools[1]));
    const qkvi_kernels *kernels;
    for (int isa = 0; (kernels = qkvi_kernels_at(isa)); isa++)
        for (int t = 0; t < 12; t++) { /* threads, memory, which way A lies */
            if (UNDER_SANITIZER && (t + isa) % 5) continue;
            memset(c, 0xFF, elems * sizeof *c);
            qkvi_gemm_bf16_job job = { .kernels = kernels,
                                       .class = class_of(kernels, class),
                                       .m = s->m,
                                       .n = s->n,
                                       .k = s->k,
                                       .a = t & 4 ? columns : a,
                                       .a_row = t & 4 ? 1 : s->k,
                                       .a_col = t & 4 ? s->m : 1,
                                       .packed_b = packed,
                                       .c = c,
                                       .c_row = s->n,
                                       .bias = bias,
                                       .half = t & 2 ? NULL : half,
                                       .sums = t < 8 ? sums : NULL };
            memset(half, 0xFF, qkvi_bf16_input_elems(s->m, s->k) * sizeof *half);
            qkvi_gemm_bf16(pools[t % 2], &job);
            for (size_t e = 0; e < elems; e++)
                if (memcmp(&c[e], &want[e], sizeof *c) != 0 && !(isnan(c[e]) && isnan(want[e])))
                    fail_msg("%s, class %d, turn %d, %d x %d x %d, element %zu: %a, not %a",
                             kernels->name, class, t, s->m, s->n, s->k, e, (double)c[e],
                             (double)want[e]);
        }
    free(half);
    free(sums);
    free(columns);
    free(c);
    free(want);
}

/* Word by word, and from rows as from columns. */
static void check_packed(const shape *s, const float *b, const uint32_t *packed) {
    const size_t n_words = qkvi_bf16_packed_words(s->k, s->n);
    const int pairs = (s->k + 31) / 32 * 16;
    float *const rows = transposed(s->n, s->k, b);
    uint32_t *const other = qkvi_aligned_array(n_words, sizeof *other);
    assert_non_null(other);
    memset(other, 0xFF, n_words * sizeof *other);
    qkvi_bf16_pack_b(pools[0], s->k, s->n, rows, s->n, 1, other);
    for (size_t w = 0; w < n_words; w++) {
        const int panel = (int)w / (32 * pairs), x = (int)w / 32 % pairs * 2;
        const int j = 32 * panel + (int)w % 32;
        uint32_t want = 0;
        if (j < s->n && x < s->k) want = qkvi_bf16_of_f32(b[j * s->k + x]);
        if (j < s->n && x + 1 < s->k) want |= (uint32_t)qkvi_bf16_of_f32(b[j * s->k + x + 1]) << 16;
        if (packed[w] != want || other[w] != want)
            fail_msg("%d x %d, word %zu: %08x and %08x, not %08x", s->k, s->n, w, packed[w],
                     other[w], want);
    }
    free(rows);
    free(other);
}

static void check(const shape *s, qkvi_rng *rng, bool odd_ones) {
    float *a = floats((size_t)(s->m * s->k)), *b = floats((size_t)(s->n * s->k));
    float *bias = floats((size_t)s->n);
    for (int e = 0; e < s->m * s->k; e++) a[e] = draw(rng, s->tiny);
    for (int e = 0; e < s->n * s->k; e++) b[e] = draw(rng, s->tiny);
    for (int e = 0; e < s->n; e++) bias[e] = draw(rng, s->tiny);
    if (odd_ones) a[s->k / 2] = NAN, b[s->k / 3] = INFINITY;
    uint32_t *packed = packed_of(pools[1], s->k, s->n, b);
    check_packed(s, b, packed);
    for (int class = QKV_CLASS_DP; class <= QKV_CLASS_AMX; class ++)
        check_class(s, (qkv_class) class, a, b, packed, s->with_bias ? bias : NULL);
    free(a);
    free(b);
    free(bias);
    free(packed);
}

static void edges(void **state) {
    (void)state;
    static const shape shapes[] = {
        { 5, 37, 0, true, false },     { 70, 33, 0, false, false },
        { 1, 1, 1, false, false },     { 1, 33, 31, true, false },
        { 11, 64, 32, true, false },   { 16, 32, 33, false, false },
        { 17, 31, 64, true, false },   { 32, 48, 95, false, false },
        { 33, 65, 100, true, false },  { 70, 100, 300, true, false },
        { 47, 16, 513, false, false }, { 150, 40, 600, true, false }, /* in chunks of k */
        { 16, 32, 32, false, true },   { 33, 40, 70, false, true },
        { 12, 96, 200, false, true },
    };
    qkvi_rng rng = qkvi_rng_make(5, 0, 0);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check(&shapes[i], &rng, false);
    check(&shapes[6], &rng, true);
}

static void twice(int64_t n, const float *x, float *y) {
    for (int64_t e = 0; e < n; e++) y[e] = 2 * x[e];
}

/* A second product of what the first has left in bf16: the bits of one that rounds it itself. */
static void check_chain(qkvi_rng *rng, qkv_class class, int64_t m, int64_t k, int64_t n,
                        int64_t n2) {
    float *a = floats((size_t)(m * k)), *b = floats((size_t)(n * k));
    float *b2 = floats((size_t)(n2 * n)), *bias = floats((size_t)n);
    float *c = floats((size_t)(m * n)), *d = floats((size_t)(m * n2));
    float *want = floats((size_t)(m * n2)), *sums = floats(qkvi_bf16_sums_elems(pools[1]));
    for (int e = 0; e < m * k; e++) a[e] = draw(rng, false);
    for (int e = 0; e < n * k; e++) b[e] = draw(rng, false);
    for (int e = 0; e < n2 * n; e++) b2[e] = draw(rng, false);
    for (int e = 0; e < n; e++) bias[e] = draw(rng, false);
    uint32_t *packed = packed_of(NULL, k, n, b), *packed2 = packed_of(NULL, n, n2, b2);
    uint16_t *half = halves(m, k), *middle = halves(m, n);
    const qkvi_kernels *kernels;
    for (int isa = 0; (kernels = qkvi_kernels_at(isa)); isa++)
        for (int t = 0; t < 4; t++) { /* threads, rounding in between or after all */
            memset(middle, 0xFF, qkvi_bf16_input_elems(m, n) * sizeof *middle);
            const bool fused = t / 2;
            qkvi_gemm_bf16_job first = { .kernels = kernels,
                                         .class = class_of(kernels, class),
                                         .m = m,
                                         .n = n,
                                         .k = k,
                                         .a = a,
                                         .a_row = k,
                                         .packed_b = packed,
                                         .c = c,
                                         .c_row = n,
                                         .bias = bias,
                                         .map = twice,
                                         .mapped = c,
                                         .half = half,
                                         .sums = sums };
            if (fused) first.rounded = middle;
            qkvi_gemm_bf16(pools[t % 2], &first);
            qkvi_gemm_bf16_job second = first;
            second.n = n2, second.k = n, second.a = fused ? NULL : c, second.a_row = n;
            second.packed_b = packed2, second.c = fused ? d : want, second.c_row = n2;
            second.bias = NULL, second.map = NULL, second.mapped = NULL, second.rounded = NULL;
            second.half = middle, second.half_filled = fused;
            qkvi_gemm_bf16(pools[t % 2], &second);
            if (fused) assert_memory_equal(d, want, (size_t)(m * n2) * sizeof *d);
        }
    void *all[] = { a, b, b2, bias, c, d, want, sums, packed, packed2, half, middle };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void chains(void **state) {
    (void)state;
    qkvi_rng rng = qkvi_rng_make(7, 0, 0);
    for (int class = QKV_CLASS_DP; class <= QKV_CLASS_AMX; class ++) {
        check_chain(&rng, (qkv_class) class, 5, 40, 70, 33);
        check_chain(&rng, (qkv_class) class, UNDER_SANITIZER ? 60 : 150, 300, 97, 32);
        check_chain(&rng, (qkv_class) class, 49, 64, 64, 31);
    }
}

/* More than caches hold goes another way to memory: the bits of the same a few rows at a time. */
static void large(void **state) {
    (void)state;
    enum { M = 520, N = 1056, K = 40, ROWS = 40 };
    if (!qkvi_cpu_amx()) skip();
    qkvi_rng rng = qkvi_rng_make(8, 0, 0);
    float *a = floats(M * K), *b = floats(N * K), *c = floats(M * N), *want = floats(M * N);
    for (int e = 0; e < M * K; e++) a[e] = draw(&rng, false);
    for (int e = 0; e < N * K; e++) b[e] = draw(&rng, false);
    uint32_t *packed = packed_of(NULL, K, N, b);
    uint16_t *half = halves(M, K);
    qkvi_gemm_bf16_job job = { .kernels = qkvi_kernels_best(),
                               .class = class_of(qkvi_kernels_best(), QKV_CLASS_AMX),
                               .m = M,
                               .n = N,
                               .k = K,
                               .a = a,
                               .a_row = K,
                               .packed_b = packed,
                               .c = c,
                               .c_row = N,
                               .map = twice,
                               .mapped = c,
                               .half = half };
    qkvi_gemm_bf16(pools[1], &job);
    job.m = ROWS;
    for (int i = 0; i < M; i += ROWS) {
        job.a = a + (int64_t)i * K;
        job.c = job.mapped = want + (int64_t)i * N;
        qkvi_gemm_bf16(pools[0], &job);
    }
    assert_memory_equal(c, want, sizeof *c * M * N);
    void *all[] = { a, b, c, want, packed, half };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* The bound of a sum of k products in f32, of numbers with 8 bits. */
static void close_to_the_product(void **state) {
    (void)state;
    enum { M = 40, N = 50, K = 700 };
    qkvi_rng rng = qkvi_rng_make(6, 0, 0);
    float *a = floats(M * K), *b = floats(N * K), *c = floats(M * N);
    uint16_t *half = halves(M, K);
    for (int e = 0; e < M * K; e++) a[e] = draw(&rng, false);
    for (int e = 0; e < N * K; e++) b[e] = draw(&rng, false);
    uint32_t *packed = packed_of(NULL, K, N, b);
    for (int class = QKV_CLASS_DP; class <= QKV_CLASS_AMX; class ++) {
        qkvi_gemm_bf16_job job = { .kernels = qkvi_kernels_best(),
                                   .class = class_of(qkvi_kernels_best(), (qkv_class) class),
                                   .m = M,
                                   .n = N,
                                   .k = K,
                                   .a = a,
                                   .a_row = K,
                                   .packed_b = packed,
                                   .c = c,
                                   .c_row = N,
                                   .half = half };
        qkvi_gemm_bf16(pools[0], &job);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double exact = 0, size = 0;
                for (int x = 0; x < K; x++) {
                    exact += (double)a[i * K + x] * (double)b[j * K + x];
                    size += fabs((double)a[i * K + x] * (double)b[j * K + x]);
                }
                /* two roundings to 8 bits, which are not both at their worst, K to 24 */
                assert_true(fabs((double)c[i * N + j] - exact) <= size * (0x1p-8 + K * 0x1p-24));
            }
    }
    free(a);
    free(b);
    free(c);
    free(packed);
    free(half);
}

/*
 * Each factor halfway between two numbers of bf16: 2^-7 of the product is lost, which is the bound.
 */
static void the_bound_is_reached(void **state) {
    (void)state;
    enum { K = 70 };
    const float halfway = 1 + 0x1p-8f;
    float a[K], b[K], c = 0;
    for (int e = 0; e < K; e++) a[e] = b[e] = halfway;
    uint16_t *const half = halves(1, K);
    uint32_t *const packed = packed_of(NULL, K, 1, b);
    for (int class = QKV_CLASS_DP; class <= QKV_CLASS_AMX; class ++) {
        const qkvi_gemm_bf16_job job = { .kernels = qkvi_kernels_best(),
                                         .class = class_of(qkvi_kernels_best(), (qkv_class) class),
                                         .m = 1,
                                         .n = 1,
                                         .k = K,
                                         .a = a,
                                         .a_row = K,
                                         .packed_b = packed,
                                         .c = &c,
                                         .c_row = 1,
                                         .half = half };
        qkvi_gemm_bf16(pools[0], &job);
        const double size = K * (double)halfway * (double)halfway, lost = size - (double)c;
        assert_true(lost > 0.99 * 0x1p-7 * size && lost <= 0x1p-7 * size);
    }
    free(packed);
    free(half);
}

static int set_up(void **state) {
    static qkv_allocator allocator;
    (void)state;
    allocator = qkvi_allocator_resolve((qkv_allocator){ 0 });
    for (int t = 0; t < 2; t++) pools[t] = qkvi_pool_create(&allocator, 1 + 2 * t, NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++) qkvi_pool_release(pools[t]);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(edges), cmocka_unit_test(chains),
                                        cmocka_unit_test(large),
                                        cmocka_unit_test(close_to_the_product),
                                        cmocka_unit_test(the_bound_is_reached) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
