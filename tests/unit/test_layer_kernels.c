/*
 * Row kernels of the layers: against double precision within bounds made of the operands, and with
 * the same bits on every instruction set as on the first (scalar). Rows end at a page that may not
 * be touched, so that reading or writing past a row is a crash.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "attn/ctx.h"
#include "core/rng.h"
#include "kernels/table.h"

#define EPS 0x1p-24

enum { MAX_N = 300, MAX_ROWS = 9, MAX_ISAS = 8, N_ROUNDS = 60 };

static uint64_t seed = 20240613;
static qkv_ctx *contexts[MAX_ISAS];
static int n_isas;

static const qkvi_layer_kernels *kernels(int isa) { return &contexts[isa]->kernels->layer; }

/* ---- Memory and numbers ---------------------------------------------------------------------- */

enum { N_BUFFERS = 16 };
static struct {
    char *map;
    size_t map_bytes;
} buffers[N_BUFFERS];

/* n floats that end at a guard page; slot says which buffer is replaced. */
static float *guarded(int slot, int64_t n) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)n * sizeof(float);
    const size_t body = (bytes + page - 1) / page * page;
    if (buffers[slot].map) munmap(buffers[slot].map, buffers[slot].map_bytes);
    buffers[slot].map_bytes = body + page;
    buffers[slot].map =
        mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(buffers[slot].map != MAP_FAILED);
    assert_int_equal(mprotect(buffers[slot].map + body, page, PROT_NONE), 0);
    return (float *)(void *)(buffers[slot].map + body - bytes);
}

/* Roughly normal, times scale. */
static float *random_row(int slot, int64_t n, float scale, qkvi_rng *rng) {
    float *x = guarded(slot, n);
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int k = 0; k < 4; k++) sum += qkvi_rng_unit(rng) - 0.5f;
        x[i] = scale * sum * 1.7f;
    }
    return x;
}

static float *copy_of(int slot, const float *x, int64_t n) {
    float *y = guarded(slot, n);
    memcpy(y, x, (size_t)n * sizeof *y);
    return y;
}

static void expect_near(const char *what, int isa, int64_t i, double got, double wanted,
                        double bound) {
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%s, %s, seed %llu: [%lld] = %.9g, wanted %.9g within %.3g", what,
                 contexts[isa]->kernels->name, (unsigned long long)seed, (long long)i, got, wanted,
                 bound);
}

static void expect_same(const char *what, int isa, const float *got, const float *first,
                        int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&got[i], &first[i], sizeof *got) != 0)
            fail_msg("%s, %s, seed %llu: [%lld] = %a, %s has %a", what,
                     contexts[isa]->kernels->name, (unsigned long long)seed, (long long)i,
                     (double)got[i], contexts[0]->kernels->name, (double)first[i]);
}

/* ---- The tests, each called with rows of n --------------------------------------------------- */

static void check_sums(int64_t n, qkvi_rng *rng) {
    const int64_t n_rows = 1 + qkvi_rng_below(rng, MAX_ROWS);
    float *x = random_row(0, n * n_rows, 3, rng), *y = random_row(1, n, 2, rng), *first = NULL;
    int32_t index[MAX_ROWS];
    float squares = 0;
    for (int64_t r = 0; r < n_rows; r++) index[r] = (int32_t)qkvi_rng_below(rng, (uint32_t)n_rows);
    for (int isa = 0; isa < n_isas; isa++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += (double)x[j] * (double)x[j];
        const float got = kernels(isa)->sum_squares(n, x);
        expect_near("sum_squares", isa, 0, (double)got, sum, ((double)n / 32 + 7) * EPS * sum);
        if (isa == 0) squares = got;
        expect_same("sum_squares", isa, &got, &squares, 1);

        float *z = copy_of(2 + (isa > 0), y, n);
        kernels(isa)->sum_rows(n_rows, index, n, x, z);
        for (int64_t j = 0; j < n; j++) {
            double wanted = 0, size = fabs((double)y[j]);
            for (int64_t r = 0; r < n_rows; r++) {
                wanted += (double)x[index[r] * n + j];
                size += fabs((double)x[index[r] * n + j]);
            }
            wanted += (double)y[j];
            expect_near("sum_rows", isa, j, (double)z[j], wanted, (double)n_rows * EPS * size);
        }
        if (isa == 0) first = z;
        expect_same("sum_rows", isa, z, first, n);
    }
}

static void check_add(int64_t n, qkvi_rng *rng) {
    const float *a = random_row(0, n, 1, rng), *b = random_row(1, n, 1, rng);
    const float *c = random_row(2, n, 1, rng);
    for (int isa = 0; isa < n_isas; isa++) {
        float *y = copy_of(3, a, n), *z = guarded(4, n);
        kernels(isa)->add(n, b, y);
        kernels(isa)->add3(n, a, b, c, z);
        for (int64_t j = 0; j < n; j++) {
            const float sum = a[j] + b[j], all = sum + c[j];
            expect_same("add", isa, &y[j], &sum, 1);
            expect_same("add3", isa, &z[j], &all, 1);
        }
    }
}

static void check_norm_forward(int64_t n, qkvi_rng *rng) {
    const float offset = (float)qkvi_rng_below(rng, 5);
    float *s = random_row(0, n, 2, rng), *gamma = random_row(1, n, 1, rng);
    float *beta = random_row(2, n, 1, rng), *residual = random_row(3, n, 1, rng), *first = NULL;
    for (int64_t j = 0; j < n; j++) s[j] += offset;
    for (int isa = 0; isa < n_isas; isa++) {
        float *t = copy_of(4, s, n), *y = guarded(5 + (isa > 0), n), *stats = guarded(7, 2);
        kernels(isa)->norm_forward(1, n, residual, gamma, beta, 1e-6f, t, y, stats);
        double mean = 0, square = 0, top = 0;
        for (int64_t j = 0; j < n; j++) {
            const float sum = s[j] + residual[j];
            expect_same("norm_forward, residual", isa, &t[j], &sum, 1);
            mean += (double)sum;
            top = fmax(top, fabs((double)sum));
        }
        mean /= (double)n;
        for (int64_t j = 0; j < n; j++) square += ((double)t[j] - mean) * ((double)t[j] - mean);
        const double rstd = 1 / sqrt(square / (double)n + (double)1e-6f);
        const double spread = EPS * (24 + 24 * top * rstd) * (n > 1 ? 1 : 1e3);
        for (int64_t j = 0; j < n; j++) {
            const double normal = ((double)t[j] - mean) * rstd;
            const double wanted = normal * (double)gamma[j] + (double)beta[j];
            const double bound = spread * (1 + fabs(normal)) * fabs((double)gamma[j]);
            expect_near("norm_forward", isa, j, (double)y[j], wanted,
                        bound + 2 * EPS * fabs((double)beta[j]));
        }
        expect_near("norm_forward, mean", isa, 0, (double)stats[0], mean, 16 * EPS * top);
        if (isa == 0) first = y;
        expect_same("norm_forward", isa, y, first, n);
        kernels(isa)->norm_forward(1, n, NULL, gamma, beta, 1e-6f, t, t, stats);
        expect_same("norm_forward in place", isa, t, first, n);
    }
}

/* The textbook gradient in double, from the same mu and rstd. */
static void check_norm_backward(int64_t n, qkvi_rng *rng) {
    const int64_t n_rows = 1 + qkvi_rng_below(rng, MAX_ROWS);
    float *s = random_row(0, n * n_rows, 2, rng), *gamma = random_row(1, n, 1, rng);
    float *d_y = random_row(2, n * n_rows, 1, rng), *stats = random_row(3, 2 * n_rows, 0.3f, rng);
    float *first[3] = { NULL };
    for (int64_t r = 0; r < n_rows; r++) stats[2 * r + 1] = 0.4f + 0.1f * (float)r;
    for (int isa = 0; isa < n_isas; isa++) {
        const int slot = 4 + 3 * (isa > 0);
        float *d = copy_of(slot, d_y, n * n_rows);
        float *d_gamma = guarded(slot + 1, n), *d_beta = guarded(slot + 2, n);
        memset(d_gamma, 0, (size_t)n * sizeof *d_gamma);
        memset(d_beta, 0, (size_t)n * sizeof *d_beta);
        kernels(isa)->norm_backward(n_rows, n, s, stats, gamma, d, d, d_gamma, d_beta);
        for (int64_t r = 0; r < n_rows; r++) {
            const double mean = (double)stats[2 * r], rstd = (double)stats[2 * r + 1];
            const float *sr = s + r * n, *dy = d_y + r * n;
            double g = 0, gx = 0, size = 0;
            for (int64_t j = 0; j < n; j++) {
                const double x = ((double)sr[j] - mean) * rstd,
                             gj = (double)dy[j] * (double)gamma[j];
                g += gj / (double)n;
                gx += gj * x / (double)n;
                size = fmax(size, (1 + x * x) * fabs(gj));
            }
            for (int64_t j = 0; j < n; j++) {
                const double x = ((double)sr[j] - mean) * rstd,
                             gj = (double)dy[j] * (double)gamma[j];
                expect_near("norm_backward", isa, r * n + j, (double)d[r * n + j],
                            rstd * (gj - g - x * gx), 64 * EPS * rstd * size * (1 + fabs(x)));
            }
        }
        for (int64_t j = 0; j < n; j++) {
            double gamma_sum = 0, beta_sum = 0, size = 0;
            for (int64_t r = 0; r < n_rows; r++) {
                const double dy = (double)d_y[r * n + j];
                const double x =
                    ((double)s[r * n + j] - (double)stats[2 * r]) * (double)stats[2 * r + 1];
                gamma_sum += dy * x;
                beta_sum += dy;
                size += fabs(dy) * (1 + fabs(x));
            }
            const double bound = (double)(n_rows + 4) * EPS * size;
            expect_near("norm_backward, gamma", isa, j, (double)d_gamma[j], gamma_sum, bound);
            expect_near("norm_backward, beta", isa, j, (double)d_beta[j], beta_sum, bound);
        }
        float *const out[3] = { d, d_gamma, d_beta };
        for (int i = 0; i < 3; i++) {
            if (isa == 0) first[i] = out[i];
            expect_same("norm_backward", isa, out[i], first[i], i ? n : n * n_rows);
        }
    }
}

static void check_activations(int64_t n, qkvi_rng *rng) {
    const float scale = (float)(1 + qkvi_rng_below(rng, 6));
    const float *x = random_row(0, n, scale, rng), *d_y = random_row(1, n, 1, rng);
    float *first[4] = { NULL };
    for (int isa = 0; isa < n_isas; isa++) {
        const int slot = 2 + 4 * (isa > 0);
        float *gelu = guarded(slot, n), *d_gelu = copy_of(slot + 1, d_y, n);
        float *t = copy_of(slot + 2, x, n), *d_t = copy_of(slot + 3, d_y, n);
        kernels(isa)->gelu_forward(n, x, gelu);
        kernels(isa)->gelu_backward(n, x, d_gelu, d_gelu);
        kernels(isa)->tanh_forward(n, t, t);
        kernels(isa)->tanh_backward(n, t, d_t, d_t);
        for (int64_t j = 0; j < n; j++) {
            const double a = (double)x[j], d = (double)d_y[j];
            const double cdf = 0.5 * erfc(-a * sqrt(0.5));
            const double slope = cdf + a * exp(-a * a / 2) / sqrt(2 * acos(-1.0));
            expect_near("gelu_forward", isa, j, (double)gelu[j], a * cdf, 4 * EPS * fabs(a));
            expect_near("gelu_backward", isa, j, (double)d_gelu[j], d * slope, 12 * EPS * fabs(d));
            expect_near("tanh_forward", isa, j, (double)t[j], tanh(a), 8 * EPS * fabs(tanh(a)));
            expect_near("tanh_backward", isa, j, (double)d_t[j], d * (1 - tanh(a) * tanh(a)),
                        16 * EPS * fabs(d));
        }
        float *const out[4] = { gelu, d_gelu, t, d_t };
        for (int i = 0; i < 4; i++) {
            if (isa == 0) first[i] = out[i];
            expect_same("activation", isa, out[i], first[i], n);
        }
    }
}

static void check_softmax(int64_t n, qkvi_rng *rng) {
    const float scale = (float)(1 << qkvi_rng_below(rng, 5)), factor = 0.125f;
    const int64_t target = qkvi_rng_below(rng, (uint32_t)n);
    const float *x = random_row(0, n, scale, rng);
    float *first[4] = { NULL };
    double top = -INFINITY, total = 0;
    for (int64_t j = 0; j < n; j++) top = fmax(top, (double)x[j]);
    for (int64_t j = 0; j < n; j++) total += exp((double)x[j] - top);
    const double size = 8 + 4 * (double)scale * 4 + (double)n / 32;
    for (int isa = 0; isa < n_isas; isa++) {
        const int slot = 1 + 4 * (isa > 0);
        float *e = copy_of(slot, x, n), *sums = guarded(slot + 1, 2);
        kernels(isa)->softmax_forward(n, e, &sums[0], &sums[1]);
        float *d = copy_of(slot + 2, e, n), *w = copy_of(slot + 3, x, n);
        kernels(isa)->softmax_backward(n, target, factor, sums[0], d);
        kernels(isa)->weights(n, 1.0f, sums[1], w);
        expect_near("softmax, sum", isa, 0, (double)sums[0], total, size * EPS * total);
        expect_near("softmax, lse", isa, 0, (double)sums[1], top + log(total),
                    (8 + 4 * fabs(top)) * EPS + size * EPS);
        for (int64_t j = 0; j < n; j++) {
            const double p = exp((double)x[j] - top) / total;
            const double wanted = (double)factor * (p - (j == target));
            expect_near("softmax_forward", isa, j, (double)e[j], p * total, size * EPS);
            expect_near("softmax_backward", isa, j, (double)d[j], wanted, size * EPS);
            expect_near("weights", isa, j, (double)w[j], p, size * EPS);
        }
        float *const out[4] = { e, sums, d, w };
        for (int i = 0; i < 4; i++) {
            if (isa == 0) first[i] = out[i];
            expect_same("softmax", isa, out[i], first[i], i == 1 ? 2 : n);
        }
    }
}

static void check_adamw(int64_t n, qkvi_rng *rng) {
    const qkvi_adamw_step step = { 0.5f, 0.9f, 0.1f, 0.98f, 0.02f, 0.99f, 0.01f, 2.0f, 1e-8f };
    const float *g = random_row(0, n, 1, rng), *p = random_row(1, n, 1, rng);
    const float *m = random_row(2, n, 1, rng);
    float *v = random_row(3, n, 1, rng), *first[3] = { NULL };
    for (int64_t j = 0; j < n; j++) v[j] = v[j] * v[j];
    for (int isa = 0; isa < n_isas; isa++) {
        const int slot = 4 + 3 * (isa > 0);
        float *out[3] = { copy_of(slot, p, n), copy_of(slot + 1, m, n), copy_of(slot + 2, v, n) };
        kernels(isa)->adamw(n, &step, g, out[0], out[1], out[2]);
        for (int64_t j = 0; j < n; j++) {
            const double d = 0.5 * (double)g[j];
            const double mean =
                (double)step.beta1 * (double)m[j] + (double)step.one_minus_beta1 * d;
            const double square =
                (double)step.beta2 * (double)v[j] + (double)step.one_minus_beta2 * d * d;
            const double change = (double)step.rate * mean / (2 * sqrt(square) + 1e-8);
            const double size = fabs((double)m[j]) + fabs(d);
            expect_near("adamw, m", isa, j, (double)out[1][j], mean, 4 * EPS * size);
            expect_near("adamw, v", isa, j, (double)out[2][j], square, 4 * EPS * square);
            expect_near("adamw, p", isa, j, (double)out[0][j],
                        (double)step.decay * (double)p[j] - change,
                        4 * EPS * fabs((double)p[j]) + 8 * EPS * 0.01 * size / sqrt(square));
        }
        for (int i = 0; i < 3; i++) {
            if (isa == 0) first[i] = out[i];
            expect_same("adamw", isa, out[i], first[i], n);
        }
    }
}

/* ---- Driver ---------------------------------------------------------------------------------- */

typedef void check_fn(int64_t n, qkvi_rng *rng);

static void run_check(void **state) {
    check_fn *const check = *(check_fn **)*state;
    qkvi_rng rng = qkvi_rng_make(seed, 7, 0);
    for (int64_t n = 1; n <= 70; n++) check(n, &rng); /* every tail */
    for (int i = 0; i < N_ROUNDS; i++) check(1 + qkvi_rng_below(&rng, MAX_N), &rng);
}

static int make_contexts(void **state) {
    (void)state;
    for (const char *name; n_isas < MAX_ISAS && (name = qkv_isa_name(n_isas)) != NULL; n_isas++) {
        qkv_ctx_options options = QKV_CTX_OPTIONS_INIT;
        options.isa = name;
        if (qkv_ctx_create(&options, &contexts[n_isas], NULL) != QKV_OK) return -1;
    }
    return n_isas > 0 ? 0 : -1;
}

static int free_contexts(void **state) {
    (void)state;
    for (int isa = 0; isa < n_isas; isa++) qkv_ctx_destroy(contexts[isa]);
    for (int i = 0; i < N_BUFFERS; i++)
        if (buffers[i].map) munmap(buffers[i].map, buffers[i].map_bytes);
    return 0;
}

int main(int argc, char **argv) {
    static check_fn *checks[] = { check_sums,          check_add,         check_norm_forward,
                                  check_norm_backward, check_activations, check_softmax,
                                  check_adamw };
    static const char *names[] = { "sums",        "add",     "norm_forward", "norm_backward",
                                   "activations", "softmax", "adamw" };
    struct CMUnitTest tests[7];
    for (int i = 0; i < 7; i++)
        tests[i] = (struct CMUnitTest){ names[i], run_check, NULL, NULL, &checks[i] };
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    print_message("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests_name("layer kernels", tests, make_contexts, free_contexts);
}
