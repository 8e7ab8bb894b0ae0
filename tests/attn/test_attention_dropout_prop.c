/*
 * Dropout: a weight is kept or not in each computation alike, what is left has the right mean, and
 * results are those of explicit weights in double. Every instruction set in turn.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/attention_reference.h"
#include "attn/every_isa.h"

enum { B = 2, H = 4, G = 2 };

static uint64_t seed = 20261121;

static bool keeps(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j) {
    return dropout_factor(d, b, h, i, j) > 0;
}

static void drop(problem *p, float share, uint64_t dropout_seed) {
    p->d.flags |= QKV_SET_DROPOUT;
    p->d.dropout = share;
    p->d.dropout_seed = dropout_seed;
}

static void forward_on(const char *name, int n_threads, problem *p) {
    qkv_ctx *ctx = context_on(name, n_threads);
    if (qkv_attention_forward(ctx, &p->d, p->q, p->k, p->v, p->o, p->lse, NULL) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
    qkv_ctx_free(ctx);
}

/* Equal scores and a value of its own channel for each key: o shows which weights were kept. */
static void weights_kept_are_the_function(void) {
    rng r = { seed };
    for (int turn = 0; turn < 16; turn++) {
        if (!takes_turn(isa_at, turn)) continue;
        const int64_t len_q = rng_between(&r, 1, 120), len_k = rng_between(&r, 1, 600);
        problem p = problem_new(&r, B, H, G, len_q, len_k, 8, len_k);
        memset(p.q, 0, (size_t)n_q(&p) * sizeof *p.q);
        memset(p.v, 0, (size_t)n_v(&p) * sizeof *p.v);
        for (int64_t row = 0; row < rows_k(&p); row++) p.v[row * len_k + row % len_k] = 1;
        const float some[] = { 0.1f, 0.5f, 0.999f, 0.25f };
        drop(&p, some[turn % 4], rng_next(&r));
        if (turn % 3 == 1) p.d.flags |= QKV_SET_CAUSAL;
        forward_on(isa, 2, &p);
        for (int64_t b = 0; b < B; b++)
            for (int64_t h = 0; h < H; h++)
                for (int64_t i = 0; i < len_q; i++)
                    for (int64_t j = 0; j < len_k; j++) {
                        const bool in = oracle_sees(&p.d, b, h, i, j) && keeps(&p.d, b, h, i, j);
                        const float x = p.o[((b * H + h) * len_q + i) * len_k + j];
                        if (in ? !(x > 0) : x != 0)
                            fail_msg("%s: o[%d][%d][%d], channel %d, is %g", isa, (int)b, (int)h,
                                     (int)i, (int)j, (double)x);
                    }
        problem_free(&p);
    }
}

/* What else may be set beside dropout. */
static void options(rng *r, problem *p, int turn, float **mask) {
    *mask = NULL;
    if (turn % 2) p->d.flags |= QKV_SET_CAUSAL;
    if (turn % 3 == 1) {
        p->d.flags |= QKV_SET_SOFTCAP;
        p->d.softcap = 2.5f;
    }
    if (turn % 4 >= 2) {
        const int64_t stride[4] = { 0, p->d.len_q * p->d.len_k, p->d.len_k, 1 };
        *mask = normals(r, H * p->d.len_q * p->d.len_k);
        for (int64_t n = 0; n < p->d.len_q * p->d.len_k; n += 5) (*mask)[n] = -INFINITY;
        p->d.flags |= QKV_SET_MASK;
        p->d.mask_type = QKV_MASK_F32;
        p->d.mask = *mask;
        memcpy(p->d.mask_stride, stride, sizeof stride);
    }
}

static const float shares[] = { 0.1f, 0.5f, 0.75f, 0.03f, 0.9375f, 1 };

/* A problem of some size with dropout and sometimes more. */
static problem any_problem(rng *r, int turn, float **mask) {
    problem p = problem_new(r, B, H, G, rng_between(r, 1, 150), rng_between(r, 1, 600), 24,
                            rng_between(r, 1, 70));
    options(r, &p, turn, mask);
    drop(&p, shares[turn % 6], rng_next(r));
    return p;
}

static double greatest(const double *x, int64_t n) {
    double most = 0;
    for (int64_t e = 0; e < n; e++) most = fmax(most, fabs(x[e]));
    return most;
}

static void close_to(const char *name, const float *x, const double *want, int64_t n) {
    const double most = greatest(want, n);
    for (int64_t e = 0; e < n; e++)
        if (!(fabs((double)x[e] - want[e]) <= 128 * 0x1p-24 * most))
            fail_msg("%s, %s[%lld] = %.9g is not %.9g of at most %g", isa, name, (long long)e,
                     (double)x[e], want[e], most);
}

static void run_through_lse(problem *p, const float *d_lse) {
    qkv_attention_grads g = grads_of(p);
    qkv_ctx *ctx = context_on(isa, 2);
    g.d_lse = d_lse;
    problem_run(ctx, p);
    if (qkv_attention_backward(ctx, &p->d, p->q, p->k, p->v, p->o, p->lse, &g, NULL) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
    qkv_ctx_free(ctx);
}

static void results_are_explicit_weights(void) {
    rng r = { seed + 1 };
    for (int turn = 0; turn < 12; turn++) {
        if (!takes_turn(isa_at, turn)) continue;
        float *mask;
        problem p = any_problem(&r, turn, &mask);
        float *const d_lse = normals(&r, rows_q(&p));
        reference x = reference_new(&p);
        reference_run(&p, d_lse, &x);
        run_through_lse(&p, d_lse);
        for (int64_t e = 0; e < n_o(&p); e++) {
            const int64_t row = e / p.d.head_dim_v;
            if (!(fabs((double)p.o[e] - x.o[e]) <= x.o_bound[row]))
                fail_msg("%s, turn %d: o[%lld] = %.9g is not %.9g", isa, turn, (long long)e,
                         (double)p.o[e], x.o[e]);
        }
        close_to("d_q", p.d_q, x.d_q, n_q(&p));
        close_to("d_k", p.d_k, x.d_k, n_k(&p));
        close_to("d_v", p.d_v, x.d_v, n_v(&p));
        reference_free(&x);
        free(d_lse);
        free(mask);
        problem_free(&p);
    }
}

/* sum o d_o + sum lse d_lse of the reference, x moved by t along its direction. */
static double loss(const problem *p, const float *d_lse) {
    reference x = reference_new(p);
    double sum = 0;
    reference_run(p, d_lse, &x);
    for (int64_t e = 0; e < n_o(p); e++) sum += x.o[e] * (double)p->d_o[e];
    for (int64_t row = 0; row < rows_q(p); row++)
        if (isfinite(x.lse[row])) sum += x.lse[row] * (double)d_lse[row];
    reference_free(&x);
    return sum;
}

static double slope_along(problem *p, const float *d_lse, float *x, int64_t n, const double *d_x,
                          rng *r) {
    float *const from = floats(n), *const along = normals(r, n);
    const float step = 0x1p-9f;
    double sides[2], slope = 0;
    memcpy(from, x, (size_t)n * sizeof *x);
    for (int side = 0; side < 2; side++) {
        for (int64_t e = 0; e < n; e++) x[e] = from[e] + (side ? -step : step) * along[e];
        sides[side] = loss(p, d_lse);
    }
    for (int64_t e = 0; e < n; e++) slope += (double)along[e] * d_x[e];
    memcpy(x, from, (size_t)n * sizeof *x);
    free(from);
    free(along);
    return fabs((sides[0] - sides[1]) / (2 * (double)step) - slope) / (fabs(slope) + 1);
}

/* The reference's own gradients are slopes of its forward pass. */
static void reference_is_its_derivative(void **state) {
    rng r = { seed + 2 };
    (void)state;
    for (int turn = 0; turn < 6; turn++) {
        float *mask;
        problem p = problem_new(&r, B, H, G, 9, 17, 8, 5);
        float *const d_lse = normals(&r, rows_q(&p));
        options(&r, &p, turn, &mask);
        drop(&p, shares[turn % 6], rng_next(&r));
        reference x = reference_new(&p);
        reference_run(&p, d_lse, &x);
        assert_true(slope_along(&p, d_lse, p.q, n_q(&p), x.d_q, &r) < 1e-3);
        assert_true(slope_along(&p, d_lse, p.k, n_k(&p), x.d_k, &r) < 1e-3);
        assert_true(slope_along(&p, d_lse, p.v, n_v(&p), x.d_v, &r) < 1e-3);
        reference_free(&x);
        free(d_lse);
        free(mask);
        problem_free(&p);
    }
}

/* The same inputs and other outputs; results of both are then the same. */
static problem twin_of(const problem *p) {
    problem t = *p;
    t.o = floats(n_o(p));
    t.lse = floats(rows_q(p));
    t.d_q = floats(n_q(p));
    t.d_k = floats(n_k(p));
    t.d_v = floats(n_v(p));
    return t;
}

static void twin_free(problem *t) {
    float *const own[] = { t->o, t->lse, t->d_q, t->d_k, t->d_v };
    for (size_t n = 0; n < sizeof own / sizeof *own; n++) free(own[n]);
}

static void same_results(const problem *p, const problem *t) {
    same_bits("o", p->o, t->o, n_o(p));
    same_bits("lse", p->lse, t->lse, rows_q(p));
    same_bits("d_q", p->d_q, t->d_q, n_q(p));
    same_bits("d_k", p->d_k, t->d_k, n_k(p));
    same_bits("d_v", p->d_v, t->d_v, n_v(p));
}

/* Values that are not finite: in v, then in d_o, then in q and k. */
static void spoil(rng *r, problem *p, int turn) {
    static const float odd[3] = { NAN, INFINITY, -INFINITY };
    float *const x[4] = { p->v, p->d_o, p->q, p->k };
    const int64_t n[4] = { n_v(p), n_o(p), n_q(p), n_k(p) };
    const int which = turn % 5;
    for (int times = 0; which < 4 && times < 3; times++)
        x[which][rng_between(r, 0, n[which] - 1)] = odd[times];
}

static void bits_are_the_same(void) {
    static const int threads[] = { 1, 3, 16 };
    rng r = { seed + 3 };
    for (int turn = 0; turn < 10; turn++) {
        if (!takes_turn(isa_at, turn)) continue;
        float *mask;
        problem p = any_problem(&r, turn, &mask), t = twin_of(&p);
        const char *const under_test = isa;
        spoil(&r, &p, turn);
        isa = "scalar";
        run_with(&p, 2);
        isa = under_test;
        for (int n = 0; n < 3; n++) {
            run_with(&t, threads[n]);
            same_results(&p, &t);
        }
        twin_free(&t);
        free(mask);
        problem_free(&p);
    }
}

/* Whatever lies around a head: longer arrays, padding, other batches; its weights are its own. */
static void weights_do_not_move(void) {
    enum { LQ = 70, LK = 300, D = 16, MORE = 37 };
    static const int64_t q_len[B] = { LQ, LQ }, kv_len[B] = { LK, LK };
    rng r = { seed + 4 };
    problem p = problem_new(&r, B, H, G, LQ, LK, D, D);
    problem wide = problem_new(&r, B, H, G, LQ + MORE, LK + MORE, D, D);
    problem first = twin_of(&p);
    drop(&p, 0.4f, 77);
    wide.d.flags |= QKV_SET_Q_LEN | QKV_SET_KV_LEN;
    wide.d.q_len = q_len;
    wide.d.kv_len = kv_len;
    drop(&wide, 0.4f, 77);
    for (int64_t n = 0; n < B * H; n++) {
        const size_t bytes = LQ * D * sizeof(float);
        memcpy(wide.q + n * (LQ + MORE) * D, p.q + n * LQ * D, bytes);
        memcpy(wide.d_o + n * (LQ + MORE) * D, p.d_o + n * LQ * D, bytes);
    }
    for (int64_t n = 0; n < B * G; n++) {
        const size_t bytes = LK * D * sizeof(float);
        memcpy(wide.k + n * (LK + MORE) * D, p.k + n * LK * D, bytes);
        memcpy(wide.v + n * (LK + MORE) * D, p.v + n * LK * D, bytes);
    }
    run_with(&p, 2);
    run_with(&wide, 2);
    first.d = p.d;
    first.d.n_batch = 1;
    run_with(&first, 2);
    same_bits("o of the first batch", p.o, first.o, H * LQ * D);
    same_bits("d_v of the first batch", p.d_v, first.d_v, G * LK * D);
    for (int64_t n = 0; n < B * H; n++) {
        same_bits("o", p.o + n * LQ * D, wide.o + n * (LQ + MORE) * D, LQ * D);
        same_bits("d_q", p.d_q + n * LQ * D, wide.d_q + n * (LQ + MORE) * D, LQ * D);
    }
    for (int64_t n = 0; n < B * G; n++)
        same_bits("d_k", p.d_k + n * LK * D, wide.d_k + n * (LK + MORE) * D, LK * D);
    twin_free(&first);
    problem_free(&wide);
    problem_free(&p);
}

/* AT17: no share and one below 2^-32 are no dropout; all of it leaves zeros and lse. */
static void AT17_nothing_and_everything(void) {
    static const float none[] = { 0, -0.0f, 0x1p-33f };
    rng r = { seed + 5 };
    for (int turn = 0; turn < 6; turn++) {
        float *mask;
        const int64_t len = turn == 5 ? 11 : 140;
        problem p = problem_new(&r, B, H, G, len, len, 16, 32), t = twin_of(&p);
        options(&r, &p, turn, &mask);
        t.d = p.d;
        drop(&t, none[turn % 3], 5);
        run_with(&p, 2);
        run_with(&t, 2);
        same_results(&p, &t);
        drop(&t, 1, 5);
        spoil(&r, &t, 0);
        memset(t.o, 0xFF, (size_t)n_o(&t) * sizeof *t.o);
        run_with(&t, 2);
        same_bits("lse", p.lse, t.lse, rows_q(&p));
        for (int64_t e = 0; e < n_o(&t); e++) assert_true(t.o[e] == 0 && !signbit(t.o[e]));
        for (int64_t e = 0; e < n_v(&t); e++) assert_true(t.d_v[e] == 0);
        for (int64_t e = 0; e < n_k(&t); e++) assert_true(t.d_k[e] == 0);
        for (int64_t e = 0; e < n_q(&t); e++) assert_true(t.d_q[e] == 0);
        twin_free(&t);
        free(mask);
        problem_free(&p);
    }
}

/* A value that is not finite comes through a weight that is kept, and through no other. */
static void dropped_values_do_not_exist(void) {
    enum { L = 90, D = 16, BAD = 41 };
    rng r = { seed + 6 };
    problem p = problem_new(&r, 1, 1, 1, L, L, D, D);
    drop(&p, 0.5f, rng_next(&r));
    for (int c = 0; c < D; c++) p.v[BAD * D + c] = c % 2 ? NAN : INFINITY;
    memset(p.d_o, 0, (size_t)n_o(&p) * sizeof *p.d_o);
    forward_on(isa, 2, &p);
    int n_kept = 0;
    for (int64_t i = 0; i < L; i++) {
        const bool kept = keeps(&p.d, 0, 0, i, BAD);
        n_kept += kept;
        for (int c = 0; c < D; c++) assert_int_equal(!isfinite(p.o[i * D + c]), kept);
    }
    assert_in_range(n_kept, 1, L - 1);
    for (int c = 0; c < D; c++) p.v[BAD * D + c] = 1;
    p.d_o[BAD * D + 3] = NAN; /* row BAD, channel 3: into d_v of the keys that it keeps */
    run_with(&p, 2);
    for (int64_t j = 0; j < L; j++)
        for (int c = 0; c < D; c++)
            assert_int_equal(isnan(p.d_v[j * D + c]), c == 3 && keeps(&p.d, 0, 0, BAD, j));
    problem_free(&p);
}

/* The share kept, and the mean of o over seeds, are within what chance allows: 5 deviations.
 * One instruction set is enough: all have the same bits. */
static void chance_is_fair(void **state) {
    enum { L = 40, D = 8, SEEDS = 400 };
    (void)state;
    rng r = { seed + 7 };
    problem p = problem_new(&r, 1, 2, 1, L, L, D, D), t = twin_of(&p);
    double *const sum = doubles(n_o(&p)), *const squares = doubles(n_o(&p));
    double kept = 0;
    forward_on(NULL, 1, &p);
    for (int n = 0; n < SEEDS; n++) {
        drop(&t, 0.3f, rng_next(&r));
        forward_on(NULL, 1, &t);
        for (int64_t e = 0; e < n_o(&t); e++) {
            sum[e] += (double)t.o[e];
            squares[e] += (double)t.o[e] * (double)t.o[e];
        }
        for (int64_t e = 0; e < 2 * L * L; e++)
            kept += keeps(&t.d, 0, e / (L * L), e / L % L, e % L);
    }
    const double n_words = 2.0 * L * L * SEEDS, want = 0.7 * n_words;
    assert_true(fabs(kept - want) <= 5 * sqrt(want * 0.3));
    for (int64_t e = 0; e < n_o(&t); e++) {
        const double mean = sum[e] / SEEDS, variance = squares[e] / SEEDS - mean * mean;
        assert_true(fabs(mean - (double)p.o[e]) <= 5 * sqrt(variance / SEEDS));
    }
    free(sum);
    free(squares);
    twin_free(&t);
    problem_free(&p);
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        PROPERTY(weights_kept_are_the_function), cmocka_unit_test(reference_is_its_derivative),
        PROPERTY(results_are_explicit_weights),  PROPERTY(bits_are_the_same),
        PROPERTY(weights_do_not_move),           PROPERTY(AT17_nothing_and_everything),
        PROPERTY(dropped_values_do_not_exist),   cmocka_unit_test(chance_is_fair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
