/*
 * Properties of attention: what must hold between two calls, whatever the numbers. Where the
 * contract promises the same bits they are compared as bits, otherwise within the bounds of
 * docs/numerics.md. Every instruction set in turn.
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

#include "attn/every_isa.h"

static uint64_t seed = 20240607;

static qkv_ctx *context(int n_threads) { return context_on(isa, n_threads); }

static void run(problem *p) { run_with(p, 1); }

static void close_to(const char *name, const float *x, const float *y, int64_t n, double bound) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)x[i] - (double)y[i]) <= bound))
            fail_msg("%s, %s[%lld]: %.9g and %.9g, bound %.3g", isa, name, (long long)i,
                     (double)x[i], (double)y[i], bound);
}

/* The largest forward bounds of a problem: two results of it may differ by twice that. */
static double bound_of(const problem *p, double *lse_bound) {
    const oracle_inputs in = { .q = p->q, .k = p->k, .v = p->v };
    oracle_forward f = oracle_forward_new(&p->d);
    double o = 0;
    oracle_forward_run(&p->d, &in, &f);
    *lse_bound = 0;
    for (int64_t i = 0; i < rows_q(p); i++) {
        o = fmax(o, f.o_bound[i]);
        *lse_bound = fmax(*lse_bound, f.lse_bound[i]);
    }
    oracle_forward_free(&f);
    return o;
}

static rng random_of(uint64_t stream) { return (rng){ seed + stream }; }

/* ---- Scores and keys ------------------------------------------------------------------------- */

static void shifting_scores_shifts_lse_only(void) {
    rng r = random_of(1);
    problem p = problem_new(&r, 1, 2, 2, 9, 300, 32, 32);
    double lse_bound;
    run(&p);
    float *o = floats(n_o(&p)), *lse = floats(rows_q(&p)), shift = 3.5f;
    memcpy(o, p.o, (size_t)n_o(&p) * sizeof *o);
    for (int64_t i = 0; i < rows_q(&p); i++) lse[i] = p.lse[i] + shift;
    p.d.flags = QKV_SET_MASK;
    p.d.mask_type = QKV_MASK_F32;
    p.d.mask = &shift;
    p.d.mask_len_k = 1;
    run(&p);
    const double bound = bound_of(&p, &lse_bound);
    close_to("o", p.o, o, n_o(&p), 2 * bound);
    close_to("lse", p.lse, lse, rows_q(&p), 2 * lse_bound);
    free(o);
    free(lse);
    problem_free(&p);
}

static void permuting_keys_permutes_gradients(void) {
    rng r = random_of(2);
    problem p = problem_new(&r, 1, 1, 1, 20, 277, 24, 16),
            s = problem_new(&r, 1, 1, 1, 20, 277, 24, 16);
    const int64_t n = p.d.len_k, step = 100; /* prime to 277 */
    double lse_bound;
    memcpy(s.q, p.q, (size_t)n_q(&p) * sizeof *p.q);
    memcpy(s.d_o, p.d_o, (size_t)n_o(&p) * sizeof *p.q);
    for (int64_t j = 0; j < n; j++) {
        memcpy(s.k + (j * step % n) * 24, p.k + j * 24, 24 * sizeof *p.k);
        memcpy(s.v + (j * step % n) * 16, p.v + j * 16, 16 * sizeof *p.v);
    }
    run(&p);
    run(&s);
    close_to("o", s.o, p.o, n_o(&p), 2 * bound_of(&p, &lse_bound));
    close_to("lse", s.lse, p.lse, rows_q(&p), 2 * lse_bound);
    close_to("d_q", s.d_q, p.d_q, n_q(&p), 1e-5);
    for (int64_t j = 0; j < n; j++) {
        close_to("d_k", s.d_k + (j * step % n) * 24, p.d_k + j * 24, 24, 1e-5);
        close_to("d_v", s.d_v + (j * step % n) * 16, p.d_v + j * 16, 16, 1e-5);
    }
    problem_free(&p);
    problem_free(&s);
}

/* Any number of parts, cut anywhere, empty parts too; in place, as well. */
static void splitting_keys_and_merging(void) {
    enum { PARTS = 4 };
    rng r = random_of(3);
    problem p = problem_new(&r, 2, 2, 1, 7, 301, 16, 70);
    double lse_bound;
    run(&p);
    const double bound = bound_of(&p, &lse_bound);
    for (int turn = 0; turn < 4; turn++) {
        int64_t cut[PARTS + 1] = { 0, 0, 0, 0, 301 };
        float *o[PARTS], *lse[PARTS];
        const void *o_parts[PARTS];
        const float *lse_parts[PARTS];
        qkv_ctx *ctx = context(1 + turn);
        for (int n = 1; n < PARTS; n++) cut[n] = rng_between(&r, cut[n - 1], 301);
        if (turn == 0) cut[1] = 0;
        for (int n = 0; n < PARTS; n++) {
            qkv_attention_desc d = p.d;
            d.len_k = cut[n + 1] - cut[n];
            o_parts[n] = o[n] = floats(n_o(&p));
            lse_parts[n] = lse[n] = floats(rows_q(&p));
            assert_int_equal(qkv_attention_forward(ctx, &d, p.q, p.k + cut[n] * 16,
                                                   p.v + cut[n] * 70, o[n], lse[n], NULL),
                             QKV_OK);
        }
        float *const o_out = turn % 2 ? o[2] : floats(n_o(&p)), *const lse_out =
                                                                    turn % 2 ? lse[1] : NULL;
        assert_int_equal(qkv_attention_merge(ctx, &p.d, PARTS, o_parts, lse_parts, o_out, lse_out),
                         QKV_OK);
        close_to("o", o_out, p.o, n_o(&p), 3 * bound);
        if (lse_out) close_to("lse", lse_out, p.lse, rows_q(&p), 3 * lse_bound);
        if (o_out != o[2]) free(o_out);
        for (int n = 0; n < PARTS; n++) {
            free(o[n]);
            free(lse[n]);
        }
        qkv_ctx_free(ctx);
    }
    problem_free(&p);
}

static void constant_values_come_back(void) {
    rng r = random_of(4);
    problem p = problem_new(&r, 1, 1, 1, 5, 300, 64, 64);
    double lse_bound;
    for (int64_t i = 0; i < n_v(&p); i++) p.v[i] = 0.25f * (float)(i % 64);
    run(&p);
    const double bound = bound_of(&p, &lse_bound);
    for (int64_t i = 0; i < 5; i++) close_to("o", p.o + i * 64, p.v, 64, bound);
    problem_free(&p);
}

/* ---- The same rules said in another way ------------------------------------------------------ */

static void causal_is_an_explicit_mask(void) {
    rng r = random_of(5);
    for (int n = 0; n < 3; n++) {
        const int64_t len_q = 1 + n * 70, len_k = 40 + n * 130;
        problem p = problem_new(&r, 1, 2, 1, len_q, len_k, 20, 20), s = p;
        unsigned char *mask = malloc((size_t)(len_q * len_k));
        const int64_t offset = len_k - len_q - 11;
        float *all[5] = { floats(n_o(&p)), floats(rows_q(&p)), floats(n_q(&p)), floats(n_k(&p)),
                          floats(n_v(&p)) };
        assert_non_null(mask);
        for (int64_t i = 0; i < len_q; i++)
            for (int64_t j = 0; j < len_k; j++) mask[i * len_k + j] = j <= i + offset ? 3 : 0;
        s.o = all[0];
        s.lse = all[1];
        s.d_q = all[2];
        s.d_k = all[3];
        s.d_v = all[4];
        p.d.flags = QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
        p.d.q_offset = offset;
        s.d.flags = QKV_SET_MASK;
        s.d.mask_type = QKV_MASK_BOOL;
        s.d.mask = mask;
        s.d.mask_stride[2] = len_k;
        s.d.mask_stride[3] = 1;
        run(&p);
        run(&s);
        same_bits("o", s.o, p.o, n_o(&p));
        same_bits("lse", s.lse, p.lse, rows_q(&p));
        for (int a = 0; a < 5; a++) free(all[a]);
        free(mask);
        problem_free(&p);
    }
}

static void groups_are_repeated_heads(void) {
    rng r = random_of(6);
    problem p = problem_new(&r, 2, 6, 2, 30, 50, 12, 20),
            s = problem_new(&r, 2, 6, 6, 30, 50, 12, 20);
    const int64_t k = 50 * 12, v = 50 * 20;
    memcpy(s.q, p.q, (size_t)n_q(&p) * sizeof *p.q);
    memcpy(s.d_o, p.d_o, (size_t)n_o(&p) * sizeof *p.q);
    for (int64_t h = 0; h < 12; h++) {
        memcpy(s.k + h * k, p.k + h / 3 * k, (size_t)k * sizeof *p.k);
        memcpy(s.v + h * v, p.v + h / 3 * v, (size_t)v * sizeof *p.v);
    }
    run(&p);
    run(&s);
    same_bits("o", s.o, p.o, n_o(&p));
    same_bits("lse", s.lse, p.lse, rows_q(&p));
    same_bits("d_q", s.d_q, p.d_q, n_q(&p));
    for (int64_t g = 0; g < 4; g++)
        for (int64_t i = 0; i < k; i++) {
            const float *x = s.d_k + 3 * g * k + i;
            const float sum = x[0] + x[k] + x[2 * k];
            close_to("d_k", p.d_k + g * k + i, &sum, 1, 1e-5);
        }
    problem_free(&p);
    problem_free(&s);
}

/* ---- Bits depend on nothing else ------------------------------------------------------------- */

/* A padded batch against its members alone, in shapes of their own. */
static void padding_and_batch_change_no_bit(void) {
    enum { N = 3, LQ = 150, LK = 290, D = 24 };
    const int64_t kv_len[N] = { 290, 17, 256 }, q_len[N] = { 3, 150, 129 };
    rng r = random_of(7);
    problem p = problem_new(&r, N, 2, 1, LQ, LK, D, D);
    p.d.flags = QKV_SET_KV_LEN | QKV_SET_Q_LEN | QKV_SET_WINDOW;
    p.d.kv_len = kv_len;
    p.d.q_len = q_len;
    p.d.window_left = 200;
    p.d.window_right = 30;
    run(&p);
    for (int b = 0; b < N; b++) {
        problem s = problem_new(&r, 1, 2, 1, q_len[b], kv_len[b], D, D);
        s.d.flags = QKV_SET_WINDOW;
        s.d.window_left = 200;
        s.d.window_right = 30;
        for (int64_t h = 0; h < 2; h++) {
            const size_t row = D * sizeof(float);
            memcpy(s.q + h * q_len[b] * D, p.q + (b * 2 + h) * LQ * D, (size_t)q_len[b] * row);
            memcpy(s.d_o + h * q_len[b] * D, p.d_o + (b * 2 + h) * LQ * D, (size_t)q_len[b] * row);
        }
        memcpy(s.k, p.k + b * LK * D, (size_t)(kv_len[b] * D) * sizeof *s.k);
        memcpy(s.v, p.v + b * LK * D, (size_t)(kv_len[b] * D) * sizeof *s.v);
        run(&s);
        for (int64_t h = 0; h < 2; h++) {
            const int64_t at = (b * 2 + h) * LQ, n = q_len[b];
            same_bits("o", s.o + h * n * D, p.o + at * D, n * D);
            same_bits("lse", s.lse + h * n, p.lse + at, n);
            same_bits("d_q", s.d_q + h * n * D, p.d_q + at * D, n * D);
        }
        same_bits("d_k", s.d_k, p.d_k + b * LK * D, kv_len[b] * D);
        same_bits("d_v", s.d_v, p.d_v + b * LK * D, kv_len[b] * D);
        problem_free(&s);
    }
    problem_free(&p);
}

/* Forward of a few rows in the middle of a causal problem. */
static void len_q_changes_no_bit(void) {
    rng r = random_of(8);
    problem p = problem_new(&r, 1, 1, 1, 200, 200, 40, 40);
    p.d.flags = QKV_SET_CAUSAL;
    run(&p);
    for (int64_t first = 0; first < 200; first += 37)
        for (int64_t n = 1; first + n <= 200; n = n * 3 + 1) {
            qkv_attention_desc d = p.d;
            qkv_ctx *ctx = context(2);
            float *o = floats(n * 40), *lse = floats(n);
            d.len_q = n;
            d.flags |= QKV_SET_Q_OFFSET;
            d.q_offset = first;
            assert_int_equal(
                qkv_attention_forward(ctx, &d, p.q + first * 40, p.k, p.v, o, lse, NULL), QKV_OK);
            same_bits("o", o, p.o + first * 40, n * 40);
            same_bits("lse", lse, p.lse + first, n);
            free(o);
            free(lse);
            qkv_ctx_free(ctx);
        }
    problem_free(&p);
}

static void threads_change_no_bit(void) {
    rng r = random_of(9);
    for (int kind = 0; kind < 2; kind++) { /* few long heads, many short ones */
        problem p = kind ? problem_new(&r, 3, 8, 4, 21, 19, 16, 16)
                         : problem_new(&r, 1, 2, 1, 400, 1100, 16, 16);
        p.d.flags = kind ? 0 : QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
        p.d.q_offset = 500;
        const int64_t n[5] = { n_o(&p), rows_q(&p), n_q(&p), n_k(&p), n_v(&p) };
        float *const ours[5] = { p.o, p.lse, p.d_q, p.d_k, p.d_v }, *first[5];
        run_with(&p, 1);
        for (int a = 0; a < 5; a++) {
            first[a] = floats(n[a]);
            memcpy(first[a], ours[a], (size_t)n[a] * sizeof(float));
        }
        for (int n_threads = 2; n_threads <= 16; n_threads += n_threads < 5 ? 1 : 4) {
            for (int a = 0; a < 5; a++) memset(ours[a], 0xFF, (size_t)n[a] * sizeof(float));
            run_with(&p, n_threads);
            for (int a = 0; a < 5; a++) same_bits("an output", ours[a], first[a], n[a]);
        }
        for (int a = 0; a < 5; a++) free(first[a]);
        problem_free(&p);
    }
}

/* ---- NaN ------------------------------------------------------------------------------------- */

/*
 * A key (in K and V) or a query (in Q and d_o) that is all NaN, in the middle of a causal window
 * problem: rows that do not see it keep their bits, rows that do are NaN.
 */
static void nan_stays_where_it_is_seen(void) {
    enum { L = 150, D = 16, KEY = 70, LEFT = 40 };
    rng r = random_of(10);
    problem p = problem_new(&r, 1, 1, 1, L, L, D, D), s = problem_new(&r, 1, 1, 1, L, L, D, D);
    p.d.flags = s.d.flags = QKV_SET_CAUSAL | QKV_SET_WINDOW;
    p.d.window_left = s.d.window_left = LEFT;
    memcpy(s.q, p.q, L * D * sizeof(float));
    memcpy(s.k, p.k, L * D * sizeof(float));
    memcpy(s.v, p.v, L * D * sizeof(float));
    memcpy(s.d_o, p.d_o, L * D * sizeof(float));
    for (int c = 0; c < D; c++) s.k[KEY * D + c] = s.v[KEY * D + c] = NAN;
    run(&p);
    run(&s);
    for (int i = 0; i < L; i++) {
        const bool sees = i >= KEY && i <= KEY + LEFT;
        for (int c = 0; c < D && sees; c++)
            assert_true(isnan(s.o[i * D + c]) && isnan(s.d_q[i * D + c]));
        assert_true(isnan(s.lse[i]) == sees);
        if (sees) continue;
        same_bits("o", s.o + i * D, p.o + i * D, D);
        same_bits("lse", s.lse + i, p.lse + i, 1);
        same_bits("d_q", s.d_q + i * D, p.d_q + i * D, D);
    }
    for (int j = 0; j < L; j++) /* keys beside it are seen by rows that do not see it, too */
        if (j < KEY - LEFT || j > KEY + LEFT) {
            same_bits("d_k", s.d_k + j * D, p.d_k + j * D, D);
            same_bits("d_v", s.d_v + j * D, p.d_v + j * D, D);
        }
    memcpy(s.k, p.k, L * D * sizeof(float));
    memcpy(s.v, p.v, L * D * sizeof(float));
    for (int c = 0; c < D; c++) s.q[KEY * D + c] = s.d_o[KEY * D + c] = NAN;
    run(&s);
    for (int j = 0; j < L; j++) {
        const bool seen = j <= KEY && j >= KEY - LEFT;
        for (int c = 0; c < D && seen; c++)
            assert_true(isnan(s.d_k[j * D + c]) && isnan(s.d_v[j * D + c]));
        if (seen) continue;
        same_bits("d_k", s.d_k + j * D, p.d_k + j * D, D);
        same_bits("d_v", s.d_v + j * D, p.d_v + j * D, D);
    }
    for (int i = 0; i < L; i++)
        if (i != KEY) same_bits("d_q", s.d_q + i * D, p.d_q + i * D, D);
    problem_free(&p);
    problem_free(&s);
}

/* ---- Derivatives ----------------------------------------------------------------------------- */

static double loss(const problem *p) {
    const oracle_inputs in = { .q = p->q, .k = p->k, .v = p->v };
    oracle_forward f = oracle_forward_new(&p->d);
    double sum = 0;
    oracle_forward_run(&p->d, &in, &f);
    for (int64_t i = 0; i < n_o(p); i++) sum += f.o[i] * (double)p->d_o[i];
    oracle_forward_free(&f);
    return sum;
}

/* Steps of 2^-12 from multiples of 2^-12: x + h and x - h are exact in f32. */
static void gradients_are_derivatives(void) {
    const double h = 0x1p-12;
    rng r = random_of(11);
    for (int n = 0; n < 12; n++) {
        problem p = problem_new(&r, 1, 4, 2, 6, 9, 8, 5);
        float *const x[3] = { p.q, p.k, p.v }, *const g[3] = { p.d_q, p.d_k, p.d_v };
        const int64_t size[3] = { n_q(&p), n_k(&p), n_v(&p) };
        if (n % 2) p.d.flags = QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
        if (n % 3 == 1) p.d.flags |= QKV_SET_SOFTCAP;
        p.d.q_offset = 2;
        p.d.softcap = 1.5f;
        for (int a = 0; a < 3; a++)
            for (int64_t i = 0; i < size[a]; i++) x[a][i] = roundf(x[a][i] * 4096) / 4096;
        run(&p);
        double slope = 0, value[2], size_of_gradient = 0;
        float *direction[3];
        for (int a = 0; a < 3; a++) {
            direction[a] = floats(size[a]);
            for (int64_t i = 0; i < size[a]; i++) {
                direction[a][i] = (float)rng_between(&r, -1, 1);
                slope += (double)direction[a][i] * (double)g[a][i];
                size_of_gradient += fabs((double)g[a][i]);
                x[a][i] += (float)h * direction[a][i];
            }
        }
        value[0] = loss(&p);
        for (int a = 0; a < 3; a++)
            for (int64_t i = 0; i < size[a]; i++) x[a][i] -= 2 * (float)h * direction[a][i];
        value[1] = loss(&p);
        const double measured = (value[0] - value[1]) / (2 * h);
        if (!(fabs(measured - slope) <= 3e-6 * (1 + size_of_gradient)))
            fail_msg("%s: slope %.9g, gradient says %.9g (sum of sizes %.3g)", isa, measured, slope,
                     size_of_gradient);
        for (int a = 0; a < 3; a++) free(direction[a]);
        problem_free(&p);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        PROPERTY(shifting_scores_shifts_lse_only), PROPERTY(permuting_keys_permutes_gradients),
        PROPERTY(splitting_keys_and_merging),      PROPERTY(constant_values_come_back),
        PROPERTY(causal_is_an_explicit_mask),      PROPERTY(groups_are_repeated_heads),
        PROPERTY(padding_and_batch_change_no_bit), PROPERTY(len_q_changes_no_bit),
        PROPERTY(threads_change_no_bit),           PROPERTY(nan_stays_where_it_is_seen),
        PROPERTY(gradients_are_derivatives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
