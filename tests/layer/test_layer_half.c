/*
 * The three products of a linear layer in bf16 (layer/linear.h), each class against a double sum of
 * the same factors rounded to bf16, which is exact to 2^-53: what remains is the rounding of sums
 * of n products in f32, at most (n + 2) 2^-24 of the sum of their sizes (Higham 2002, eq. 3.3;
 * class amx adds fewer in a row). And the same bits on every instruction set, for one to seven
 * threads, without memory for inputs.
 *
 * Usage: unit_layer_half [SEED]
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

#include "attn/ctx.h"
#include "core/alloc.h"
#include "core/cpu.h"
#include "core/half.h"
#include "core/rng.h"
#include "layer/linear.h"
#include "layer/rows.h"
#include "make_ctx.h"

static uint64_t seed = 31;

typedef struct shape {
    int64_t n_rows, n_in, n_out;
} shape;

/* What a layer computes; sum is what d_x is added to. */
typedef struct results {
    float *y, *d_x, *sum, *d_w, *d_b;
} results;

typedef struct problem {
    shape s;
    float *x, *w, *b, *d_y, *before;
} problem;

static float *floats(int64_t n) {
    float *const x = qkvi_aligned_array((size_t)n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

static float *draw(qkvi_rng *rng, int64_t n) {
    float *const x = floats(n);
    for (int64_t i = 0; i < n; i++) x[i] = qkvi_rng_unit(rng) * 2 - 1;
    return x;
}

static problem make_problem(const shape *s, qkvi_rng *rng) {
    return (problem){ .s = *s,
                      .x = draw(rng, s->n_rows * s->n_in),
                      .w = draw(rng, s->n_out * s->n_in),
                      .b = draw(rng, s->n_out),
                      .d_y = draw(rng, s->n_rows * s->n_out),
                      .before = draw(rng, s->n_rows * s->n_in) };
}

static void free_problem(const problem *p) {
    float *const all[] = { p->x, p->w, p->b, p->d_y, p->before };
    for (int i = 0; i < 5; i++) free(all[i]);
}

static results make_results(const shape *s) {
    return (results){ floats(s->n_rows * s->n_out), floats(s->n_rows * s->n_in),
                      floats(s->n_rows * s->n_in), floats(s->n_out * s->n_in), floats(s->n_out) };
}

static void free_results(const results *r) {
    float *const all[] = { r->y, r->d_x, r->sum, r->d_w, r->d_b };
    for (int i = 0; i < 5; i++) free(all[i]);
}

static void compute(qkv_ctx *ctx, qkv_class class, const problem *p, const results *r) {
    const shape s = p->s;
    const size_t n_x = (size_t)(s.n_rows * s.n_in);
    uint32_t *const forms[] = {
        (uint32_t *)floats((int64_t)qkvi_bf16_packed_words(s.n_in, s.n_out)),
        (uint32_t *)floats((int64_t)qkvi_bf16_packed_words(s.n_out, s.n_in))
    };
    const qkvi_linear layer = { .n_in = s.n_in,
                                .n_out = s.n_out,
                                .weight = p->w,
                                .bias = p->b,
                                .half = forms[0],
                                .half_backward = forms[1],
                                .half_class = class };
    const qkvi_linear d = { .n_in = s.n_in, .n_out = s.n_out, .weight = r->d_w, .bias = r->d_b };
    float *const packed = floats(qkvi_rows_packed_elems(s.n_rows, s.n_in));
    float *const product = floats((int64_t)n_x);
    float *const sums = floats(qkvi_colsum_elems(s.n_rows, s.n_out));
    qkvi_linear_pack(ctx, &layer);
    qkvi_linear_forward(ctx, &layer, s.n_rows, p->x, r->y);
    qkvi_linear_backward_input(ctx, &layer, s.n_rows, p->d_y, r->d_x);
    memcpy(r->sum, p->before, n_x * sizeof *r->sum);
    qkvi_linear_backward_input_add(ctx, &layer, s.n_rows, p->d_y, r->sum, product);
    qkvi_pack_rows(ctx, &layer, s.n_rows, p->x, packed);
    qkvi_linear_backward_params(ctx, &layer, &d, s.n_rows, p->d_y, packed, sums);
    free(forms[0]);
    free(forms[1]);
    free(packed);
    free(product);
    free(sums);
}

static double half(float x) { return (double)qkvi_f32_of_bf16(qkvi_bf16_of_f32(x)); }

/* got beside `added` + the sum over c < n of a[c a_step] b[c b_step], both rounded. */
static void check_sum(const char *what, double got, float added, int64_t n, const float *a,
                      int64_t a_step, const float *b, int64_t b_step) {
    double sum = (double)added, size = fabs((double)added);
    for (int64_t c = 0; c < n; c++) {
        const double product = half(a[c * a_step]) * half(b[c * b_step]);
        sum += product;
        size += fabs(product);
    }
    if (!(fabs(got - sum) <= (double)(n + 2) * 0x1p-24 * size))
        fail_msg("seed %llu: %s of %lld products is %.9g, not %.9g", (unsigned long long)seed, what,
                 (long long)n, got, sum);
}

static void check_against_double(const problem *p, const results *r) {
    const shape s = p->s;
    for (int64_t i = 0; i < s.n_rows; i++)
        for (int64_t o = 0; o < s.n_out; o++)
            check_sum("y", (double)r->y[i * s.n_out + o], p->b[o], s.n_in, p->x + i * s.n_in, 1,
                      p->w + o * s.n_in, 1);
    for (int64_t i = 0; i < s.n_rows; i++)
        for (int64_t c = 0; c < s.n_in; c++) {
            const int64_t at = i * s.n_in + c;
            const float *const d_y = p->d_y + i * s.n_out;
            check_sum("d_x", (double)r->d_x[at], 0, s.n_out, d_y, 1, p->w + c, s.n_in);
            check_sum("d_x", (double)r->sum[at], p->before[at], s.n_out, d_y, 1, p->w + c, s.n_in);
        }
    for (int64_t o = 0; o < s.n_out; o++)
        for (int64_t c = 0; c < s.n_in; c++)
            check_sum("d_w", (double)r->d_w[o * s.n_in + c], 0, s.n_rows, p->d_y + o, s.n_out,
                      p->x + c, s.n_in);
    for (int64_t o = 0; o < s.n_out; o++) { /* in f32 */
        double sum = 0;
        for (int64_t i = 0; i < s.n_rows; i++) sum += (double)p->d_y[i * s.n_out + o];
        assert_true(fabs((double)r->d_b[o] - sum) <= (double)(s.n_rows * s.n_rows) * 0x1p-24);
    }
}

static void expect_same(const shape *s, const results *a, const results *b, const char *isa) {
    const size_t x = (size_t)(s->n_rows * s->n_in) * sizeof(float);
    if (memcmp(a->y, b->y, (size_t)(s->n_rows * s->n_out) * sizeof(float)) != 0 ||
        memcmp(a->d_x, b->d_x, x) != 0 || memcmp(a->sum, b->sum, x) != 0 ||
        memcmp(a->d_w, b->d_w, (size_t)(s->n_out * s->n_in) * sizeof(float)) != 0 ||
        memcmp(a->d_b, b->d_b, (size_t)s->n_out * sizeof(float)) != 0)
        fail_msg("seed %llu: %s: other bits", (unsigned long long)seed, isa);
}

static void check(qkv_class class, const problem *p) {
    const results first = make_results(&p->s), other = make_results(&p->s);
    const char *isa;
    qkv_ctx *ctx = make_ctx("scalar", 1);
    compute(ctx, class, p, &first);
    check_against_double(p, &first);
    qkv_ctx_free(ctx);
    for (int i = 0, n_threads = 1; (isa = qkv_isa_name(i)); i++)
        for (int turn = 0; turn < 4; turn++, n_threads = n_threads % 7 + 1) {
            ctx = make_ctx(isa, n_threads);
            atomic_store(&ctx->inputs_taken, turn == 3); /* no memory for them */
            compute(ctx, class, p, &other);
            expect_same(&p->s, &first, &other, isa);
            qkv_ctx_free(ctx);
        }
    free_results(&first);
    free_results(&other);
}

static void test_products(void **state) {
    (void)state;
    static const shape shapes[] = { { 1, 1, 1 },    { 0, 5, 3 },    { 7, 20, 36 },  { 33, 64, 2 },
                                    { 64, 32, 96 }, { 70, 45, 61 }, { 130, 96, 49 } };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        qkvi_rng rng = qkvi_rng_make(seed, 1, i);
        const problem p = make_problem(&shapes[i], &rng);
        check(QKV_CLASS_DP, &p);
        check(QKV_CLASS_AMX, &p);
        free_problem(&p);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_products) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
