/*
 * Products by weights in blocks (kernels/blocks.h): against double precision from the same rounded
 * inputs, whose order nothing fixes, and bit by bit between instruction sets, numbers of threads,
 * batches, and with and without memory for rounded inputs.
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
#include "files/gguf_types.h"
#include "kernels/blocks.h"
#include "kernels/table.h"

enum { SEED = 20261128 };

static qkvi_rng rng;
static uint32_t draw(void) { return qkvi_rng_u32(&rng); }
static double uniform(void) { return (double)qkvi_rng_unit(&rng); }

typedef struct problem {
    qkvi_block_format format;
    int64_t m, n, k;
    float *a, *bias, *values; /* W as floats */
    uint8_t *b;
} problem;

/* A half of moderate size, or now and then a subnormal one, 0 or a negative one. */
static uint16_t half(void) {
    const uint32_t which = draw() % 16;
    if (which == 0) return (uint16_t)(draw() & 0x83FF);
    if (which == 1) return 0;
    return (uint16_t)((draw() & 0x83FF) | (10 + draw() % 8) << 10);
}

static void put_half(uint8_t *to) {
    const uint16_t h = half();
    to[0] = (uint8_t)h;
    to[1] = (uint8_t)(h >> 8);
}

static problem make(int kind, int64_t m, int64_t n, int64_t n_blocks) {
    static const uint32_t ids[] = { 2, 3, 6, 8, 12, 13, 14 };
    const qkvi_gguf_type *const type = qkvi_gguf_type_of(ids[kind]);
    problem p = { .format = { (qkvi_block_kind)kind, type->n_elems, type->n_bytes, type->to_f32 },
                  .m = m,
                  .n = n,
                  .k = n_blocks * type->n_elems };
    const size_t n_bytes = (size_t)(n * n_blocks * type->n_bytes);
    p.a = malloc((size_t)(m * p.k) * sizeof *p.a);
    p.bias = malloc((size_t)n * sizeof *p.bias);
    p.values = malloc((size_t)(n * p.k) * sizeof *p.values);
    p.b = malloc(n_bytes);
    for (size_t i = 0; i < n_bytes; i++) p.b[i] = (uint8_t)draw();
    for (int64_t i = 0; i < n * n_blocks; i++) {
        uint8_t *const block = p.b + i * type->n_bytes;
        put_half(block + (kind == QKVI_Q6_K ? 208 : 0));
        if (kind == QKVI_Q4_1 || kind == QKVI_Q4_K || kind == QKVI_Q5_K) put_half(block + 2);
    }
    for (int64_t i = 0; i < m * p.k; i++) p.a[i] = (float)((uniform() - 0.5) * exp(8 * uniform()));
    for (int64_t j = 0; j < n; j++) {
        p.bias[j] = (float)uniform();
        qkvi_blocks_row(&p.format, p.b, p.k, j, p.values + j * p.k);
    }
    return p;
}

static void drop(problem *p) {
    free(p->a);
    free(p->bias);
    free(p->values);
    free(p->b);
}

static void run(const problem *p, const char *isa, qkvi_pool *pool, bool has_room, float *c) {
    const size_t room = qkvi_blocks_room(&p->format, p->m, p->k);
    void *const rows = has_room ? malloc(room) : NULL;
    const qkvi_blocks_job job = { .kernels = qkvi_kernels_named(isa),
                                  .format = &p->format,
                                  .m = p->m,
                                  .n = p->n,
                                  .k = p->k,
                                  .a = p->a,
                                  .b = p->b,
                                  .c = c,
                                  .bias = p->bias,
                                  .rows = rows };
    qkvi_blocks_gemm(pool, &job);
    free(rows);
}

/* Inputs as they are rounded: the scale, in float as it is there, times an integer. */
static double *round_all(const problem *p) {
    const int64_t n = p->m * p->k;
    const int width = p->format.n_elems;
    double *const x = malloc((size_t)n * sizeof *x);
    for (int64_t g = 0; g < n; g += width) {
        float most = 0;
        for (int e = 0; e < width; e++) most = fmaxf(most, fabsf(p->a[g + e]));
        const float inverse = 127.0f / most, scale = most / 127.0f;
        for (int e = 0; e < width; e++)
            x[g + e] =
                most < 0x1p-100f ? 0 : (double)scale * nearbyint((double)(p->a[g + e] * inverse));
    }
    return x;
}

/* The greatest size of what is added and subtracted, for the bound: |m| t of a block. */
static double least_of(const problem *p, const uint8_t *block) {
    const qkvi_block_kind kind = p->format.kind;
    if (kind != QKVI_Q4_1 && kind != QKVI_Q4_K && kind != QKVI_Q5_K) return 0;
    const float m = qkvi_f32_of_f16((uint16_t)(block[2] | block[3] << 8));
    return fabs((double)m) * (kind == QKVI_Q4_1 ? 1 : 63);
}

static double check_near(const problem *p, const float *c) {
    const int width = p->format.n_elems;
    const int64_t n_blocks = p->k / width;
    double worst = 0, *const inputs = round_all(p);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double sum = (double)p->bias[j], size = fabs(sum);
            for (int64_t e = 0; e < p->k; e++) {
                const double x = inputs[i * p->k + e];
                const double w = (double)p->values[j * p->k + e];
                const uint8_t *const block = p->b + (j * n_blocks + e / width) * p->format.n_bytes;
                sum += w * x;
                size += (fabs(w) + 2 * least_of(p, block)) * fabs(x);
            }
            const double bound = (double)(2 * n_blocks + 6) * 0x1p-24 * size;
            const double off = fabs((double)c[i * p->n + j] - sum);
            if (!(off <= bound))
                fail_msg("kind %d, [%d][%d]: %g is not %g, the bound is %g", (int)p->format.kind,
                         (int)i, (int)j, (double)c[i * p->n + j], sum, bound);
            if (bound > 0 && off / bound > worst) worst = off / bound;
        }
    free(inputs);
    return worst;
}

static void test_products(void **state) {
    (void)state;
    double worst = 0;
    const qkv_allocator allocator = qkvi_allocator_resolve((qkv_allocator){ 0 });
    qkvi_pool *const pool = qkvi_pool_create(&allocator, 3, NULL);
    assert_non_null(pool);
    for (int kind = 0; kind < QKVI_N_BLOCK_KINDS; kind++)
        for (int64_t m = 1; m <= 19; m += m < 9 ? 1 : 5) {
            const int64_t n = 1 + (int64_t)(draw() % 43);
            const int64_t n_blocks = (m % 4 == 3 ? 30 : 1) + (int64_t)(draw() % 5);
            problem p = make(kind, m, n, n_blocks);
            const size_t bytes = (size_t)(m * n) * sizeof(float);
            float *const want = malloc(bytes), *const found = malloc(bytes);
            run(&p, "scalar", NULL, true, want);
            worst = fmax(worst, check_near(&p, want));
            for (int t = 0; qkvi_kernels_at(t); t++) {
                const char *const isa = qkvi_kernels_at(t)->name;
                for (int way = 0; way < 4; way++) {
                    run(&p, isa, way & 1 ? pool : NULL, way < 2, found);
                    if (memcmp(want, found, bytes) != 0)
                        fail_msg("%s, way %d: kind %d, m = %d, n = %d, %d blocks", isa, way, kind,
                                 (int)m, (int)n, (int)n_blocks);
                }
                for (int64_t i = 0; i < m; i++) { /* each row alone */
                    problem one = p;
                    one.m = 1;
                    one.a = p.a + i * p.k;
                    run(&one, isa, NULL, true, found);
                    assert_memory_equal(found, want + i * n, (size_t)n * sizeof(float));
                }
            }
            free(want);
            free(found);
            drop(&p);
        }
    qkvi_pool_release(pool);
    print_message("seed %d: at most %.3f of the bound\n", SEED, worst);
}

/* Groups that hold no number, tiny ones, and the greatest sums that there can be. */
static void test_odd(void **state) {
    (void)state;
    for (int kind = 0; kind < QKVI_N_BLOCK_KINDS; kind++) {
        problem p = make(kind, 3, 9, 3);
        const int width = p.format.n_elems;
        float want[27], found[27];
        for (int64_t e = 0; e < width; e++) {
            p.a[e] = 1e-31f;                     /* scale 0 */
            p.a[p.k + e] = e % 2 ? 1.0f : -1.0f; /* all of 127 */
            p.a[p.k + width + e] = 1.0f;
            p.a[2 * p.k + e] = 3.0f;
        }
        p.a[2 * p.k + width + 5] = kind % 2 ? INFINITY : NAN;
        memset(p.b + p.format.n_bytes * 3, 0xFF, (size_t)p.format.n_bytes * 3);
        for (int g = 3; g < 6; g++) { /* d = m = 1, all integers as great as can be */
            uint8_t *const block = p.b + g * p.format.n_bytes;
            const uint8_t one[4] = { 0x00, 0x3C, 0x00, 0x3C };
            memcpy(block + (kind == QKVI_Q6_K ? 208 : 0), one, kind == QKVI_Q6_K ? 2 : 4);
            if (kind == QKVI_Q6_K) memset(block + 192, g % 2 ? 0x80 : 0x7F, 16);
            if (kind == QKVI_Q8_0) memset(block + 2, g % 2 ? 0x80 : 0x7F, 32);
        }
        run(&p, "scalar", NULL, true, want);
        for (int j = 0; j < 9; j++) {
            assert_true(isnan(want[18 + j]));
            assert_false(isnan(want[j]) || isnan(want[9 + j]));
        }
        for (int t = 0; qkvi_kernels_at(t); t++) {
            run(&p, qkvi_kernels_at(t)->name, NULL, t % 2, found);
            assert_memory_equal(found, want, 18 * sizeof *want);
            for (int j = 18; j < 27; j++) assert_true(isnan(found[j]));
        }
        drop(&p);
    }
}

/* By kernels that no table takes here, too: those of VNNI hide those of AVX2. */
static void test_each(void **state) {
    (void)state;
    for (int kind = 0; kind < QKVI_N_BLOCK_KINDS; kind++)
        for (int64_t m = 1; m <= 9; m++) {
            const int64_t n = 1 + (int64_t)(draw() % 43), n_blocks = 1 + (int64_t)(draw() % 12);
            problem p = make(kind, m, n, n_blocks);
            const size_t room = qkvi_blocks_room(&p.format, m, p.k), bytes = (size_t)(m * n) * 4;
            float *const want = malloc(bytes), *const found = malloc(bytes);
            void *const rows = malloc(room);
            run(&p, "scalar", NULL, true, want);
            for (int i = 0; qkvi_block_kernels_at(i); i++) {
                const qkvi_block_kernels *const kernels = qkvi_block_kernels_at(i);
                kernels->round(p.format.n_elems, m * n_blocks, p.a, rows);
                kernels->multiply(p.format.kind, n_blocks, m, rows, (int64_t)room / m, n, p.b,
                                  n_blocks * p.format.n_bytes, found, n, 0, p.bias);
                if (memcmp(want, found, bytes) != 0)
                    fail_msg("%s: kind %d, m = %d, n = %d, %d blocks", kernels->name, kind, (int)m,
                             (int)n, (int)n_blocks);
            }
            free(want);
            free(found);
            free(rows);
            drop(&p);
        }
}

/* Those that are to be quick; the bits would not tell. */
static void test_kernels(void **state) {
    (void)state;
    for (int t = 0; qkvi_kernels_at(t); t++) {
        const char *const isa = qkvi_kernels_at(t)->name;
        const bool is_512 = strncmp(isa, "avx512", 6) == 0;
        const char *want = "scalar";
        for (int i = 0; qkvi_block_kernels_at(i); i++) {
            const char *const name = qkvi_block_kernels_at(i)->name;
            if (strncmp(isa, "avx", 3) == 0 && (is_512 || strcmp(name, "avx512vnni") != 0))
                want = name;
            if (strcmp(isa, "neon") == 0) want = name;
        }
        assert_string_equal(qkvi_block_kernels_of(qkvi_kernels_at(t))->name, want);
    }
}

int main(void) {
    rng = qkvi_rng_make(SEED, 1, 0);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_products), cmocka_unit_test(test_odd),
                                        cmocka_unit_test(test_each),
                                        cmocka_unit_test(test_kernels) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
