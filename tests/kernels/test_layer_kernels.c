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
#include "inspect/steps.h"
#include "kernels/table.h"

#define EPS 0x1p-24

enum { MAX_N = 300, MAX_ROWS = 9, MAX_ISAS = 8, N_ROUNDS = 60 };

static uint64_t seed = 20240613;
static qkv_ctx *contexts[MAX_ISAS];
static int n_isas;

static const qkvi_layer_kernels *kernels(int isa) { return contexts[isa]->kernels->layer; }

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
    const float scale = qkvi_rng_below(rng, 2) ? 1 : 11.3f;
    int32_t index[MAX_ROWS];
    float sums[2] = { 0 };
    for (int64_t r = 0; r < n_rows; r++) index[r] = (int32_t)qkvi_rng_below(rng, (uint32_t)n_rows);
    for (int isa = 0; isa < n_isas; isa++) {
        double sum = 0, square = 0, total = 0;
        for (int64_t j = 0; j < n; j++) {
            sum += (double)x[j];
            square += (double)x[j] * (double)x[j];
            total += fabs((double)x[j]);
        }
        const float got[2] = { kernels(isa)->sum(n, x), kernels(isa)->sum_squares(n, x) };
        const double bound = ((double)n / 32 + 7) * EPS;
        expect_near("sum", isa, 0, (double)got[0], sum, bound * total);
        expect_near("sum_squares", isa, 0, (double)got[1], square, bound * square);
        if (isa == 0) memcpy(sums, got, sizeof sums);
        expect_same("sum, sum_squares", isa, got, sums, 2);

        float *z = copy_of(2 + (isa > 0), y, n);
        kernels(isa)->sum_rows(n_rows, index, n, scale, x, z);
        for (int64_t j = 0; j < n; j++) {
            double wanted = 0, size = fabs((double)y[j]);
            for (int64_t r = 0; r < n_rows; r++) {
                wanted += (double)scale * (double)x[index[r] * n + j];
                size += (double)scale * fabs((double)x[index[r] * n + j]);
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
        float *y = copy_of(3, a, n), *z = guarded(4, n), *scaled = guarded(5, n);
        kernels(isa)->add(n, b, y);
        kernels(isa)->add3(n, 1, a, b, c, z);
        kernels(isa)->add3(n, 22.6f, a, b, c, scaled);
        for (int64_t j = 0; j < n; j++) {
            const float sum = a[j] + b[j], all = sum + c[j], more = fmaf(22.6f, a[j], b[j]) + c[j];
            expect_same("add", isa, &y[j], &sum, 1);
            expect_same("add3", isa, &z[j], &all, 1);
            expect_same("add3, scaled", isa, &scaled[j], &more, 1);
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

/* Each activation and its derivative by its definition, and how far ours may be, in EPS. */
typedef double real_fn(double x);

static double normal_cdf(double x) { return 0.5 * erfc(-x * sqrt(0.5)); }
static double gelu(double x) { return x * normal_cdf(x); }
static double gelu_slope(double x) {
    return normal_cdf(x) + x * exp(-x * x / 2) / sqrt(2 * acos(-1.0));
}
static double tanh_form(double x) { return sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x); }
static double gelu_tanh(double x) { return 0.5 * x * (1 + tanh(tanh_form(x))); }
static double gelu_tanh_slope(double x) {
    if (fabs(x) > 100) return x > 0;
    const double t = tanh(tanh_form(x));
    const double slope = sqrt(2 / acos(-1.0)) * (1 + 3 * 0.044715 * x * x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope;
}
static double relu(double x) { return x > 0 ? x : 0; }
static double relu_slope(double x) { return x > 0; }
static double silu(double x) { return x / (1 + exp(-x)); }
static double silu_slope(double x) {
    const double e = exp(-fabs(x)), s = x < 0 ? e / (1 + e) : 1 / (1 + e);
    return s + x * e / ((1 + e) * (1 + e));
}

static double quick_gelu(double x) { return silu(1.702 * x) / 1.702; }
static double quick_gelu_slope(double x) { return silu_slope(1.702 * x); }
static double tanh_slope(double x) {
    const double c = 1 / cosh(x < -400 ? -400 : x > 400 ? 400 : x);
    return c * c;
}

static const struct {
    const char *name;
    real_fn *value, *slope;
    double value_bound, slope_bound; /* of |x|, of |d_y| */
} acts[QKVI_N_ACTS] = {
    [QKVI_GELU] = { "gelu", gelu, gelu_slope, 4, 12 },
    [QKVI_GELU_TANH] = { "gelu_tanh", gelu_tanh, gelu_tanh_slope, 4, 12 },
    [QKVI_RELU] = { "relu", relu, relu_slope, 0, 0 },
    [QKVI_SILU] = { "silu", silu, silu_slope, 4, 12 },
    [QKVI_QUICK_GELU] = { "quick_gelu", quick_gelu, quick_gelu_slope, 4, 12 },
    [QKVI_TANH] = { "tanh", tanh, tanh_slope, 4, 12 },
};

static void check_acts(int64_t n, qkvi_rng *rng) {
    const float scale = (float)(1 + qkvi_rng_below(rng, 6));
    const float *x = random_row(0, n, scale, rng), *d_y = random_row(1, n, 1, rng);
    for (int act = 0; act < QKVI_N_ACTS; act++) {
        float *first[2] = { NULL };
        for (int isa = 0; isa < n_isas; isa++) {
            const int slot = 2 + 2 * (isa > 0);
            float *const out[2] = { copy_of(slot, x, n), copy_of(slot + 1, d_y, n) };
            kernels(isa)->act_forward[act](n, out[0], out[0]);
            kernels(isa)->act_backward[act](n, x, out[1], out[1]);
            for (int64_t j = 0; j < n; j++) {
                const double a = (double)x[j], d = (double)d_y[j];
                expect_near(acts[act].name, isa, j, (double)out[0][j], acts[act].value(a),
                            acts[act].value_bound * EPS * fabs(a));
                expect_near(acts[act].name, isa, j, (double)out[1][j], d * acts[act].slope(a),
                            acts[act].slope_bound * EPS * fabs(d));
            }
            for (int i = 0; i < 2; i++) {
                if (isa == 0) first[i] = out[i];
                expect_same(acts[act].name, isa, out[i], first[i], n);
            }
        }
    }
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* What `qkv explain` computes in double. */
static void check_steps_of_acts(void **state) {
    (void)state;
    for (int act = 0; act < QKVI_N_ACTS; act++)
        for (double x = -6; x <= 6; x += 0.125)
            assert_true(fabs(qkvi_step_act((qkvi_act)act, x) - acts[act].value(x)) <= 1e-14);
}

/* Floats of every size and sign, one of each 9973. */
static void check_acts_everywhere(void **state) {
    (void)state;
    enum { N = 1024 };
    static float x[N], one[N], y[N], slope[N], most[QKVI_N_ACTS][2];
    for (int j = 0; j < N; j++) one[j] = 1;
    for (int64_t bits = 0; bits < 1ll << 32; bits += 9973ll * N)
        for (int act = 0; act < QKVI_N_ACTS; act++) {
            for (int j = 0; j < N; j++) x[j] = float_of((uint32_t)(bits + 9973ll * j));
            kernels(n_isas - 1)->act_forward[act](N, x, y);
            kernels(n_isas - 1)->act_backward[act](N, x, one, slope);
            for (int j = 0; j < N; j++) {
                const double a = (double)x[j];
                if (!isfinite(a)) continue;
                expect_near(acts[act].name, n_isas - 1, j, (double)y[j], acts[act].value(a),
                            acts[act].value_bound * EPS * fabs(a) + 0x1p-149);
                expect_near(acts[act].name, n_isas - 1, j, (double)slope[j], acts[act].slope(a),
                            acts[act].slope_bound * EPS);
                const double off[2] = { a == 0 ? 0 : ((double)y[j] - acts[act].value(a)) / a,
                                        (double)slope[j] - acts[act].slope(a) };
                for (int i = 0; i < 2 && fabs(a) > 1e-30; i++)
                    most[act][i] = fmaxf(most[act][i], (float)(fabs(off[i]) / EPS));
            }
        }
    for (int act = 0; act < QKVI_N_ACTS; act++)
        print_message("%s: errors up to %.2f and %.2f times 2^-24\n", acts[act].name,
                      (double)most[act][0], (double)most[act][1]);
}

/* The only one that is bounded: ±1, infinities too. */
static void expect_tanh_at_ends(int n, const float *x, const float *y, const float *slope) {
    for (int j = 2; j < n; j++) {
        assert_true(isnan(x[j]) ? isnan(y[j]) : y[j] == copysignf(1, x[j]));
        assert_true(isnan(x[j]) ? isnan(slope[j]) : slope[j] == 0);
    }
}

/* Where a formula meets 0 times infinity, or neither side of 0. */
static void check_acts_at_ends(void **state) {
    (void)state;
    const float huge = 3.4e38f, inf = INFINITY;
    const float x[] = { 0, -0.0f, huge, -huge, 1e20f, -1e20f, 17, -17, inf, -inf, NAN };
    enum { N = sizeof x / sizeof *x };
    for (int isa = 0; isa < n_isas; isa++)
        for (int act = 0; act < QKVI_N_ACTS; act++) {
            float y[N], one[N], slope[N];
            for (int j = 0; j < N; j++) one[j] = 1;
            kernels(isa)->act_forward[act](N, x, y);
            kernels(isa)->act_backward[act](N, x, one, slope);
            for (int j = 0; j < 2; j++) {
                assert_true(y[j] == 0 && !(act == QKVI_RELU && signbit(y[j])));
                expect_near(acts[act].name, isa, j, (double)slope[j], acts[act].slope(0), 0);
            }
            if (act == QKVI_TANH) {
                expect_tanh_at_ends(N, x, y, slope);
                continue;
            }
            for (int j = 2; j < 8; j++) {
                const bool zero = y[j] == 0 || (x[j] == -17 && fabsf(y[j]) < 1e-5f);
                assert_true(x[j] > 0 ? y[j] == x[j] : zero);
                expect_near(acts[act].name, isa, j, (double)slope[j], x[j] > 0, 1e-5);
            }
            assert_true(y[8] == inf);
            assert_true(act == QKVI_RELU ? y[9] == 0 && slope[9] == 0 : isnan(y[9]));
            assert_true(isnan(y[10]));
            assert_true(act == QKVI_RELU || isnan(slope[10]));
        }
}

static void check_tanh(int64_t n, qkvi_rng *rng) {
    const float scale = (float)(1 + qkvi_rng_below(rng, 6));
    const float *x = random_row(0, n, scale, rng), *d_y = random_row(1, n, 1, rng);
    float *first[2] = { NULL };
    for (int isa = 0; isa < n_isas; isa++) {
        const int slot = 2 + 2 * (isa > 0);
        float *const out[2] = { copy_of(slot, x, n), copy_of(slot + 1, d_y, n) };
        kernels(isa)->tanh_forward(n, out[0], out[0]);
        kernels(isa)->tanh_backward(n, out[0], out[1], out[1]);
        for (int64_t j = 0; j < n; j++) {
            const double t = tanh((double)x[j]), d = (double)d_y[j];
            expect_near("tanh_forward", isa, j, (double)out[0][j], t, 8 * EPS * fabs(t));
            expect_near("tanh_backward", isa, j, (double)out[1][j], d * (1 - t * t),
                        16 * EPS * fabs(d));
        }
        for (int i = 0; i < 2; i++) {
            if (isa == 0) first[i] = out[i];
            expect_same("tanh", isa, out[i], first[i], n);
        }
    }
}

static void check_softmax(int64_t n, qkvi_rng *rng) {
    const float scale = (float)(1 << qkvi_rng_below(rng, 5)), factor = 0.125f;
    const float smooth = qkvi_rng_below(rng, 2) ? 0 : 0.3f;
    const float off = smooth / (float)n, on = 1 - smooth + off;
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
        kernels(isa)->softmax_backward(n, target, on, off, factor, sums[0], d);
        kernels(isa)->weights(n, 1.0f, sums[1], w);
        expect_near("softmax, sum", isa, 0, (double)sums[0], total, size * EPS * total);
        expect_near("softmax, lse", isa, 0, (double)sums[1], top + log(total),
                    (8 + 4 * fabs(top)) * EPS + size * EPS);
        for (int64_t j = 0; j < n; j++) {
            const double p = exp((double)x[j] - top) / total;
            const double wanted = (double)factor * (p - (double)(j == target ? on : off));
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
        qkv_ctx_options options = qkv_ctx_options_init();
        options.isa = name;
        if (qkv_ctx_create(&options, &contexts[n_isas], NULL) != QKV_OK) return -1;
    }
    return n_isas > 0 ? 0 : -1;
}

static int free_contexts(void **state) {
    (void)state;
    for (int isa = 0; isa < n_isas; isa++) qkv_ctx_free(contexts[isa]);
    for (int i = 0; i < N_BUFFERS; i++)
        if (buffers[i].map) munmap(buffers[i].map, buffers[i].map_bytes);
    return 0;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        check_fn *check;
    } checks[] = {
        { "sums", check_sums },
        { "add", check_add },
        { "norm_forward", check_norm_forward },
        { "norm_backward", check_norm_backward },
        { "acts", check_acts },
        { "tanh", check_tanh },
        { "softmax", check_softmax },
        { "adamw", check_adamw },
    };
    enum { N_CHECKS = sizeof checks / sizeof *checks };
    static check_fn *calls[N_CHECKS];
    struct CMUnitTest tests[N_CHECKS + 3] = {
        [N_CHECKS] = cmocka_unit_test(check_acts_everywhere),
        [N_CHECKS + 1] = cmocka_unit_test(check_acts_at_ends),
        [N_CHECKS + 2] = cmocka_unit_test(check_steps_of_acts),
    };
    for (int i = 0; i < N_CHECKS; i++) {
        calls[i] = checks[i].check;
        tests[i] = (struct CMUnitTest){ checks[i].name, run_check, NULL, NULL, &calls[i] };
    }
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    print_message("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests_name("layer kernels", tests, make_contexts, free_contexts);
}
