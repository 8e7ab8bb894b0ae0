/*
 * Row kernels that only Llama and its kin have (RMSNorm, rotation, soft caps), against double
 * within bounds made of the operands, and with the same bits on every instruction set as in scalar
 * code; and the angles of rotary positions against long double.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "attn/ctx.h"
#include "core/rng.h"
#include "kernels/table.h"
#include "model/layer/rope.h"

#define EPS 0x1p-24

enum { MAX_N = 200, MAX_ROWS = 5, N_ROUNDS = 80, MAX_ISAS = 8 };
static uint64_t seed = 20261125;
static qkv_ctx *contexts[MAX_ISAS];
static int n_isas;

/* n floats that end at a page that must not be touched. */
static float *guarded(int slot, int64_t n) {
    static struct {
        char *map;
        size_t bytes;
    } maps[8];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)n * sizeof(float);
    const size_t body = (bytes + page - 1) / page * page;
    if (maps[slot].map) munmap(maps[slot].map, maps[slot].bytes);
    maps[slot].bytes = body + page;
    maps[slot].map =
        mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(maps[slot].map != MAP_FAILED);
    assert_int_equal(mprotect(maps[slot].map + body, page, PROT_NONE), 0);
    return (float *)(void *)(maps[slot].map + body - bytes);
}

static float draw(qkvi_rng *rng) {
    return 2 * (qkvi_rng_unit(rng) + qkvi_rng_unit(rng) + qkvi_rng_unit(rng)) - 3;
}

static void fill(int64_t n, float scale, qkvi_rng *rng, float *x) {
    for (int64_t i = 0; i < n; i++) x[i] = scale * draw(rng);
}

static void expect(const char *what, int isa, const float *x, const double *wanted,
                   const double *bound, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)x[i] - wanted[i]) <= bound[i]))
            fail_msg("%s, %s, seed %llu: [%d] = %.9g, wanted %.9g within %.2g", what,
                     contexts[isa]->kernels->name, (unsigned long long)seed, (int)i, (double)x[i],
                     wanted[i], bound[i]);
}

/* The bits of the first instruction set, which is scalar. */
static void expect_same(const char *what, int isa, const float *x, float *first, int64_t n) {
    if (isa == 0)
        memcpy(first, x, (size_t)n * sizeof *x);
    else if (memcmp(x, first, (size_t)n * sizeof *x) != 0)
        fail_msg("%s: %s has other bits, seed %llu", what, contexts[isa]->kernels->name,
                 (unsigned long long)seed);
}

/* ---- RMSNorm --------------------------------------------------------------------------------- */

typedef struct norm_case {
    int64_t rows, n;
    int from_one;
    float eps, x[MAX_ROWS * MAX_N], d_y[MAX_ROWS * MAX_N], gamma[MAX_N];
} norm_case;

static double gain(const norm_case *c, int64_t i) {
    return (double)c->gamma[i] + (c->from_one ? 1 : 0);
}

static double rstd_of(const norm_case *c, int64_t r) {
    double sum = 0;
    for (int64_t i = 0; i < c->n; i++)
        sum += (double)c->x[r * c->n + i] * (double)c->x[r * c->n + i];
    return 1 / sqrt(sum / (double)c->n + (double)c->eps);
}

static void check_rms_forward(const norm_case *c, int isa, float *first) {
    static double wanted[MAX_ROWS * MAX_N], bound[MAX_ROWS * MAX_N];
    float *const y = guarded(0, c->rows * c->n), *const stats = guarded(1, 2 * c->rows);
    for (int64_t r = 0; r < c->rows; r++)
        for (int64_t i = 0; i < c->n; i++) {
            const double normal = (double)c->x[r * c->n + i] * rstd_of(c, r);
            wanted[r * c->n + i] = normal * gain(c, i);
            /* a sum of n squares, a root, three products */
            bound[r * c->n + i] =
                EPS * fabs(normal) * (1 + fabs((double)c->gamma[i])) * (8 + (double)c->n / 32) +
                1e-40;
        }
    memcpy(y, c->x, (size_t)(c->rows * c->n) * sizeof *y); /* in place */
    contexts[isa]->kernels->layer->rms_forward(c->rows, c->n, c->from_one, c->gamma, c->eps, y, y,
                                               stats);
    expect("rms_forward", isa, y, wanted, bound, c->rows * c->n);
    expect_same("rms_forward", isa, y, first, c->rows * c->n);
    for (int64_t r = 0; r < c->rows; r++)
        assert_true(stats[2 * r] == 0 && fabs((double)stats[2 * r + 1] / rstd_of(c, r) - 1) < 1e-5);
}

static void check_rms_backward(const norm_case *c, int isa, float *first) {
    static double d_x[MAX_ROWS * MAX_N], bound[MAX_ROWS * MAX_N], d_gamma[MAX_N], bounds[MAX_N];
    float stats[2 * MAX_ROWS];
    float *const x = guarded(0, c->rows * c->n), *const sums = guarded(1, c->n);
    for (int64_t i = 0; i < c->n; i++) d_gamma[i] = bounds[i] = 0, sums[i] = 0;
    for (int64_t r = 0; r < c->rows; r++) {
        const float *const row = c->x + r * c->n, *const dy = c->d_y + r * c->n;
        const double rstd = rstd_of(c, r);
        double mean = 0, size = 0;
        stats[2 * r] = 0, stats[2 * r + 1] = (float)rstd;
        for (int64_t i = 0; i < c->n; i++) {
            const double term = (double)dy[i] * gain(c, i) * (double)row[i] * rstd;
            mean += term / (double)c->n, size += fabs(term) / (double)c->n;
        }
        for (int64_t i = 0; i < c->n; i++) {
            const double normal = (double)row[i] * rstd, g = (double)dy[i] * gain(c, i);
            d_x[r * c->n + i] = rstd * (g - normal * mean);
            bound[r * c->n + i] =
                EPS * rstd * (20 + (double)c->n / 16) *
                    (fabs((double)dy[i]) * (1 + fabs((double)c->gamma[i])) + fabs(normal) * size) +
                1e-38;
            d_gamma[i] += (double)dy[i] * normal;
            bounds[i] += 12 * EPS * fabs((double)dy[i] * normal) * (double)c->rows + 1e-38;
        }
    }
    memcpy(x, c->d_y, (size_t)(c->rows * c->n) * sizeof *x); /* in place */
    contexts[isa]->kernels->layer->rms_backward(c->rows, c->n, c->from_one, c->x, stats, c->gamma,
                                                x, x, sums);
    expect("rms_backward", isa, x, d_x, bound, c->rows * c->n);
    expect("rms_backward, gamma", isa, sums, d_gamma, bounds, c->n);
    expect_same("rms_backward", isa, x, first, c->rows * c->n);
}

static void test_rms(void **state) {
    (void)state;
    static norm_case c;
    static float forward[MAX_ROWS * MAX_N], backward[MAX_ROWS * MAX_N];
    qkvi_rng rng = qkvi_rng_make(seed, 1, 0);
    for (int round = 0; round < N_ROUNDS; round++) {
        c.rows = 1 + (int64_t)qkvi_rng_below(&rng, MAX_ROWS);
        c.n = 1 + (int64_t)qkvi_rng_below(&rng, MAX_N);
        c.from_one = round % 2;
        c.eps = round % 3 ? 1e-6f : 0.1f;
        fill(c.rows * c.n, round % 5 ? 1.0f : 3e4f, &rng, c.x); /* massive activations, too */
        fill(c.rows * c.n, 1, &rng, c.d_y);
        fill(c.n, 0.5f, &rng, c.gamma);
        for (int isa = 0; isa < n_isas; isa++) {
            check_rms_forward(&c, isa, forward);
            check_rms_backward(&c, isa, backward);
        }
    }
}

/* ---- Rotation, products, caps ---------------------------------------------------------------- */

static void check_rotation(int64_t rows, int64_t heads, int64_t n, int back, qkvi_rng *rng) {
    static float x[MAX_ROWS * 3 * MAX_N], turns[MAX_ROWS * MAX_N], first[MAX_ROWS * 3 * MAX_N];
    static double wanted[MAX_ROWS * 3 * MAX_N], bound[MAX_ROWS * 3 * MAX_N];
    const int64_t all = rows * heads * n, half = n / 2;
    fill(all, 2, rng, x);
    fill(rows * n, 0.7f, rng, turns);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t at = r * heads * n; at < (r + 1) * heads * n; at += n)
            for (int64_t i = 0; i < half; i++) {
                const double c = (double)turns[r * n + i];
                const double s = (back ? -1 : 1) * (double)turns[r * n + half + i];
                const double a = (double)x[at + i], b = (double)x[at + half + i];
                wanted[at + i] = c * a - s * b;
                wanted[at + half + i] = c * b + s * a;
                bound[at + i] = 2 * EPS * (fabs(c * a) + 2 * fabs(s * b)) + 1e-40;
                bound[at + half + i] = 2 * EPS * (fabs(c * b) + 2 * fabs(s * a)) + 1e-40;
            }
    for (int isa = 0; isa < n_isas; isa++) {
        float *const y = guarded(0, all), *const t = guarded(1, rows * n);
        memcpy(y, x, (size_t)all * sizeof *y);
        memcpy(t, turns, (size_t)(rows * n) * sizeof *t);
        contexts[isa]->kernels->layer->rotate(rows, heads, n, back, t, y);
        expect("rotate", isa, y, wanted, bound, all);
        expect_same("rotate", isa, y, first, all);
    }
}

static void check_caps(int64_t n, float cap, qkvi_rng *rng) {
    static float x[MAX_N], d[MAX_N], first[2][MAX_N];
    static double y[MAX_N], bound[MAX_N], slope[MAX_N], bounds[MAX_N];
    fill(n, 3 * cap, rng, x);
    fill(n, 1, rng, d);
    for (int isa = 0; isa < n_isas; isa++) {
        float *const a = guarded(0, n), *const b = guarded(1, n);
        memcpy(a, x, (size_t)n * sizeof *a);
        memcpy(b, d, (size_t)n * sizeof *b);
        contexts[isa]->kernels->layer->soft_cap(n, cap, a);
        for (int64_t i = 0; i < n; i++) {
            y[i] = (double)cap * tanh((double)x[i] / (double)cap);
            bound[i] = 12 * EPS * fabs(y[i]) + 1e-40;
        }
        expect("soft_cap", isa, a, y, bound, n);
        expect_same("soft_cap", isa, a, first[0], n);
        contexts[isa]->kernels->layer->soft_cap_backward(n, cap, a, b);
        for (int64_t i = 0; i < n; i++) {
            const double t = (double)a[i] / (double)cap;
            slope[i] = (double)d[i] * (1 - t * t);
            bounds[i] = 6 * EPS * fabs((double)d[i]) + 1e-40;
        }
        expect("soft_cap_backward", isa, b, slope, bounds, n);
        expect_same("soft_cap_backward", isa, b, first[1], n);
        for (int64_t i = 0; i < n; i++)
            y[i] = (double)a[i] * (double)x[i], bound[i] = fabs(y[i]) * EPS;
        contexts[isa]->kernels->layer->mul(n, x, a);
        expect("mul", isa, a, y, bound, n);
    }
}

static void test_rows(void **state) {
    (void)state;
    qkvi_rng rng = qkvi_rng_make(seed, 2, 0);
    for (int round = 0; round < N_ROUNDS; round++) {
        const int64_t n = 2 + 2 * (int64_t)qkvi_rng_below(&rng, MAX_N / 2);
        check_rotation(1 + round % MAX_ROWS, 1 + round % 3, n, round % 2, &rng);
        check_caps(1 + (int64_t)qkvi_rng_below(&rng, MAX_N), round % 2 ? 50 : 0.3f, &rng);
    }
}

/* ---- Angles ---------------------------------------------------------------------------------- */

static long double frequency(const qkv_rope *s, int64_t d, int64_t i, int32_t reach) {
    const long double two_pi = 2 * acosl(-1), w = powl((long double)s->theta, -2.0L * i / d);
    const long double waves = (long double)s->original_len * w / two_pi, f = (long double)s->factor;
    if (s->type == QKV_ROPE_LINEAR) return w / f;
    if (s->type == QKV_ROPE_LLAMA3) {
        const long double low = s->low_freq_factor, high = s->high_freq_factor;
        const long double mix = (waves - low) / (high - low);
        return waves > high ? w : waves < low ? w / f : w * ((1 - mix) / f + mix);
    }
    if (s->type == QKV_ROPE_DYNAMIC && reach > s->original_len) {
        const long double grown = f * reach / s->original_len - (f - 1);
        return powl(s->theta * powl(grown, (long double)d / (d - 2)), -2.0L * i / d);
    }
    if (s->type != QKV_ROPE_YARN) return w;
    long double a = d * logl(s->original_len / (two_pi * s->beta_fast)) / (2 * logl(s->theta));
    long double b = d * logl(s->original_len / (two_pi * s->beta_slow)) / (2 * logl(s->theta));
    if (s->truncates) a = floorl(a), b = ceill(b);
    a = fmaxl(a, 0), b = fminl(b, d - 1);
    if (a == b) b += 0.001L;
    const long double g = fminl(fmaxl((i - a) / (b - a), 0), 1);
    return w * (g / f + 1 - g);
}

static void check_angles(const qkv_rope *s, int64_t d) {
    enum { N = 7 };
    static const int32_t places[N] = { 0, 1, 17, 1000, 8191, 131071, (1 << 20) - 1 };
    static const int32_t reaches[N] = { 1, 9000, 18, 8192, 8193, 131072, 1 << 20 };
    float turns[N * 128];
    qkvi_rope rope;
    assert_int_equal(qkvi_rope_make(s, d, &rope, NULL), QKV_OK);
    qkvi_rope_turns(contexts[0], &rope, N, places, reaches, turns);
    for (int p = 0; p < N; p++)
        for (int64_t i = 0; i < d / 2; i++) {
            const long double angle = places[p] * frequency(s, d, i, reaches[p]);
            const long double c = (long double)s->attention_factor * cosl(angle);
            const long double sine = (long double)s->attention_factor * sinl(angle);
            /* half an ulp, and what a double loses of an angle of 2^20 */
            const float *const at = turns + p * d + i;
            assert_true(fabsl(at[0] - c) <= 0.50001L * EPS * 2 * fmaxl(fabsl(c), 1e-3L) + 3e-9L);
            assert_true(fabsl(at[d / 2] - sine) <=
                        0.50001L * EPS * 2 * fmaxl(fabsl(sine), 1e-3L) + 3e-9L);
        }
    qkvi_rope_free(&rope);
}

static void test_angles(void **state) {
    (void)state;
    static const double thetas[] = { 2, 500, 10000, 160000, 1e6, 5e5, 1e7 };
    for (size_t t = 0; t < sizeof thetas / sizeof *thetas; t++)
        for (int64_t d = 2; d <= 128; d += d < 16 ? 2 : 56) {
            qkv_rope s = { .type = QKV_ROPE_DEFAULT,
                           .theta = thetas[t],
                           .factor = 8,
                           .original_len = 8192,
                           .low_freq_factor = 1,
                           .high_freq_factor = 4,
                           .beta_fast = 32,
                           .beta_slow = 1,
                           .attention_factor = 1 };
            check_angles(&s, d);
            s.type = QKV_ROPE_LINEAR;
            check_angles(&s, d);
            s.type = QKV_ROPE_DYNAMIC;
            check_angles(&s, d);
            s.type = QKV_ROPE_LLAMA3;
            check_angles(&s, d);
            s.type = QKV_ROPE_YARN;
            s.attention_factor = 1.2079441541679836;
            check_angles(&s, d);
            s.truncates = 1;
            check_angles(&s, d);
        }
}

static int make_contexts(void **state) {
    (void)state;
    for (int i = 0; qkv_isa_name(i) && n_isas < MAX_ISAS; i++) {
        qkv_ctx_options options = qkv_ctx_options_init();
        options.n_threads = 1;
        options.isa = qkv_isa_name(i);
        if (qkv_ctx_create(&options, &contexts[n_isas], NULL) == QKV_OK) n_isas++;
    }
    assert_string_equal(contexts[0]->kernels->name, "scalar");
    return 0;
}

static int free_contexts(void **state) {
    (void)state;
    for (int i = 0; i < n_isas; i++) qkv_ctx_free(contexts[i]);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    print_message("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rms), cmocka_unit_test(test_rows),
                                        cmocka_unit_test(test_angles) };
    return cmocka_run_group_tests_name("llama_kernels", tests, make_contexts, free_contexts);
}
