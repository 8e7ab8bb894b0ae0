/*
 * kernels/gemm_int8.h against its definition, element by element and bit by bit, on every kernel,
 * for one and three threads, with memory for A and without; pieces against the whole; what is not
 * finite, and what is too small; and the definition against a double product of the factors.
 *
 * Usage: unit_gemm_int8 [SEED]
 */
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
#include "kernels/gemm_int8.h"
#include "kernels/table.h"

enum { GROUP = QKVI_INT8_GROUP, N_SHAPES = 9 };

static uint64_t seed = 5;

typedef struct shape {
    int64_t m, n, k;
} shape;

static const shape shapes[N_SHAPES] = { { 1, 1, 1 },     { 1, 33, 64 },  { 13, 32, 65 },
                                        { 3, 70, 130 },  { 12, 31, 63 }, { 97, 65, 576 },
                                        { 1, 900, 640 }, { 7, 5, 0 },    { 25, 64, 128 } };

static float *floats(int64_t n) {
    float *const x = qkvi_aligned_array((size_t)n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

static float *draw(qkvi_rng *rng, int64_t n, float size) {
    float *const x = floats(n);
    for (int64_t i = 0; i < n; i++) x[i] = (qkvi_rng_unit(rng) * 2 - 1) * size;
    return x;
}

/* ---- The definition: int8.h ------------------------------------------------------------------ */

typedef struct group {
    float scale;
    int q[GROUP];
} group;

/* n <= 64 elements, step apart. */
static group round_group(int64_t n, const float *x, int64_t step) {
    group g = { 0 };
    float greatest = 0;
    for (int64_t e = 0; e < n; e++) {
        if (!isfinite(x[e * step])) g.scale = NAN;
        greatest = fmaxf(greatest, fabsf(x[e * step]));
    }
    if (isnan(g.scale) || greatest < 0x1p-100f) return g;
    g.scale = greatest / 127;
    for (int64_t e = 0; e < n; e++) g.q[e] = (int)nearbyintf(x[e * step] * (127 / greatest));
    return g;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* An element; *exact: the product of the factors, *size: the sum of their sizes. */
static float element(const shape *s, const float *a, const float *b, float bias, double *exact,
                     double *size) {
    float c = 0;
    *exact = (double)bias, *size = fabs((double)bias);
    for (int64_t at = 0; at < s->k; at += GROUP) {
        const int64_t n = least(GROUP, s->k - at);
        const group x = round_group(n, a + at, 1), y = round_group(n, b + at, 1);
        int sum = 0;
        for (int e = 0; e < GROUP; e++) {
            const double one = (double)x.scale * x.q[e] * (double)y.scale * y.q[e];
            sum += x.q[e] * y.q[e];
            *exact += one, *size += fabs(one);
        }
        c = fmaf((float)sum, y.scale * x.scale, c);
    }
    return c + bias;
}

static void same_float(float got, float wanted, const shape *s, const char *isa) {
    if ((isnan(got) && isnan(wanted)) || memcmp(&got, &wanted, sizeof got) == 0) return;
    fail_msg("seed %llu, %lldx%lldx%lld, %s: %a is not %a", (unsigned long long)seed,
             (long long)s->m, (long long)s->n, (long long)s->k, isa, (double)got, (double)wanted);
}

/* ---- Products -------------------------------------------------------------------------------- */

static void twice(int64_t n, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++) y[i] = 2 * x[i];
}

typedef struct problem {
    shape s;
    float *a, *b, *bias, *wanted; /* b [n][k] */
} problem;

static problem make_problem(const shape *s, qkvi_rng *rng, float size) {
    return (problem){ *s, draw(rng, s->m * s->k, size), draw(rng, s->n * s->k, 1),
                      draw(rng, s->n, 1), floats(s->m * s->n) };
}

static void free_problem(const problem *p) {
    float *const all[] = { p->a, p->b, p->bias, p->wanted };
    for (int i = 0; i < 4; i++) free(all[i]);
}

static void define(const problem *p) {
    const shape *const s = &p->s;
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            double exact, size;
            const float c = element(s, p->a + i * s->k, p->b + j * s->k, p->bias[j], &exact, &size);
            p->wanted[i * s->n + j] = c;
            /* a rounding for each scale and each group's sum */
            if (!isnan(c))
                assert_true(fabs((double)c - exact) <= (double)(s->k + 8) * 0x1p-23 * size);
        }
}

/*
 * Three products with the same A: the whole one, one without columns, and that of the first of
 * them.
 */
static void beside_each_other(const problem *p, const qkvi_gemm_int8_job *job, qkvi_pool *pool) {
    const shape *const s = &p->s;
    const int64_t n_first = least(s->n, QKVI_INT8_COLUMNS);
    float *const first = floats(s->m * n_first);
    qkvi_gemm_int8_job jobs[3] = { *job, *job, *job };
    memset(job->c, 0, (size_t)(s->m * s->n) * sizeof *job->c);
    jobs[1].n = 0;
    jobs[2].n = n_first, jobs[2].c = first, jobs[2].map = NULL;
    qkvi_gemm_int8(pool, 3, jobs);
    for (int64_t e = 0; e < s->m * s->n; e++)
        same_float(job->c[e], p->wanted[e], s, job->kernels->name);
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t e = 0; e < n_first; e++)
            same_float(first[i * n_first + e], p->wanted[i * s->n + e], s, job->kernels->name);
    free(first);
}

static void compare(const problem *p, const qkvi_kernels *kernels, qkvi_pool *pool, bool memory) {
    const shape *const s = &p->s;
    const size_t n_panels = qkvi_int8_packed_panels(s->k, s->n);
    qkvi_int8_panel *const packed = qkvi_aligned_array(n_panels + 1, sizeof *packed);
    qkvi_int8_group *const rows = malloc((qkvi_int8_groups(s->m, s->k) + 1) * sizeof *rows);
    float *const c = floats(s->m * s->n), *const mapped = floats(s->m * s->n);
    qkvi_int8_pack_b(kernels, pool, s->k, s->n, p->b, 1, s->k, packed);
    qkvi_gemm_int8_job job = { .kernels = kernels,
                               .m = s->m,
                               .n = s->n,
                               .k = s->k,
                               .a = p->a,
                               .packed_b = packed,
                               .c = c,
                               .bias = p->bias,
                               .map = twice,
                               .mapped = mapped,
                               .rows = memory ? rows : NULL };
    qkvi_gemm_int8(pool, 1, &job);
    for (int64_t e = 0; e < s->m * s->n; e++) {
        same_float(c[e], p->wanted[e], s, kernels->name);
        same_float(mapped[e], 2 * p->wanted[e], s, kernels->name);
    }
    beside_each_other(p, &job, pool);
    free(packed);
    free(rows);
    free(c);
    free(mapped);
}

static void everywhere(const problem *p) {
    const qkv_allocator allocator = qkvi_allocator_resolve((qkv_allocator){ 0 });
    qkvi_pool *const pool = qkvi_pool_create(&allocator, 3, NULL);
    const qkvi_kernels *kernels;
    define(p);
    for (int t = 0; (kernels = qkvi_kernels_at(t)); t++)
        for (int memory = 0; memory < 2; memory++) {
            compare(p, kernels, NULL, memory);
            compare(p, kernels, pool, memory);
        }
    qkvi_pool_release(pool);
}

static void products_are_as_defined(void **state) {
    qkvi_rng rng = qkvi_rng_make(seed, 0, 0);
    (void)state;
    for (int i = 0; i < N_SHAPES; i++) {
        const problem p = make_problem(&shapes[i], &rng, i % 2 ? 1e4f : 1);
        everywhere(&p);
        free_problem(&p);
    }
}

static void odd_values(void **state) {
    static const float values[] = { NAN,       INFINITY,  -INFINITY, 3e38f, -3e38f,
                                    0x1p-100f, 0x1p-101f, 0x1p-140f, -0.0f };
    const shape s = { 2, 3, 150 };
    qkvi_rng rng = qkvi_rng_make(seed, 1, 0);
    (void)state;
    for (size_t v = 0; v < sizeof values / sizeof *values; v++)
        for (int in_b = 0; in_b < 2; in_b++) {
            const problem p = make_problem(&s, &rng, v < 5 ? 1 : 0);
            (in_b ? p.b : p.a)[s.k + 70] = values[v];
            everywhere(&p);
            if (v < 3 && !in_b) assert_true(!isnan(p.wanted[0]) && isnan(p.wanted[s.n]));
            free_problem(&p);
        }
}

/* ---- Packing --------------------------------------------------------------------------------- */

static void pieces_make_the_whole(void **state) {
    enum { K = 200, N = 83 };
    qkvi_rng rng = qkvi_rng_make(seed, 2, 0);
    float *const b = draw(&rng, (int64_t)K * N, 1);
    const size_t n = qkvi_int8_packed_panels(K, N);
    qkvi_int8_panel *const whole = qkvi_aligned_array(n, sizeof *whole);
    qkvi_int8_panel *const parts = qkvi_aligned_array(n, sizeof *parts);
    (void)state;
    for (int turned = 0; turned < 2; turned++) {
        const int64_t row = turned ? N : 1, col = turned ? 1 : K;
        qkvi_int8_pack_b(NULL, NULL, K, N, b, row, col, whole);
        memset(parts, 7, n * sizeof *parts);
        for (int64_t c = 0; c < K; c += GROUP)
            for (int64_t j = 0; j < N; j += 32) {
                const qkvi_gemm_piece piece = {
                    c, least(GROUP, K - c), j, least(32, N - j), b + c * row + j * col, row, col
                };
                qkvi_int8_pack_piece(qkvi_kernels_at(0), K, &piece, parts);
            }
        assert_memory_equal(whole, parts, n * sizeof *whole);
        for (int64_t c = 0; c < K; c++)
            for (int64_t j = 0; j < N; j++) {
                const float is = qkvi_int8_packed_at(K, c, j, whole), was = b[c * row + j * col];
                assert_true(fabsf(is - was) <= 0.51f / 127);
            }
    }
    free(b);
    free(whole);
    free(parts);
}

static void sizes(void **state) {
    (void)state;
    assert_true(sizeof(qkvi_int8_panel) == 32 * 68 && sizeof(qkvi_int8_group) == 72);
    assert_int_equal(qkvi_int8_packed_panels(65, 33), 4);
    assert_int_equal(qkvi_int8_groups(3, 65), 6);
    assert_int_equal(qkvi_int8_groups(3, 0), 0);
    assert_true(qkvi_int8_packed_panels(INT64_MAX, 1) == SIZE_MAX);
    assert_true(qkvi_int8_packed_panels(1, INT64_MAX) == SIZE_MAX);
    assert_true(qkvi_int8_packed_panels(INT64_MAX / 64, 1 << 20) == SIZE_MAX);
    assert_true(qkvi_int8_groups(-1, 1) == SIZE_MAX && qkvi_int8_groups(1, -1) == SIZE_MAX);
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = { cmocka_unit_test(products_are_as_defined),
                                        cmocka_unit_test(odd_values),
                                        cmocka_unit_test(pieces_make_the_whole),
                                        cmocka_unit_test(sizes) };
    return cmocka_run_group_tests_name("products of 8-bit integers", tests, NULL, NULL);
}
