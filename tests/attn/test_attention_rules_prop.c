/*
 * Rules expressed in two ways, with the same bits, forward and backward: prefixes, chunks, segments
 * and packed bits as a boolean mask, ALiBi as an added mask. Packed documents have the bits that
 * they have alone; a sink may be in any part of a split. Every instruction set in turn.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/every_isa.h"

enum { B = 2, H = 4, G = 2, MOST = 300 };

static uint64_t seed = 20261122;

static void run(problem *p) { run_with(p, 2); }

/* The same inputs, other outputs. */
static problem twin_of(const problem *p) {
    problem t = *p;
    t.o = floats(n_o(p));
    t.lse = floats(rows_q(p));
    t.d_q = floats(n_q(p));
    t.d_k = floats(n_k(p));
    t.d_v = floats(n_v(p));
    return t;
}

static void compare_and_free(problem *p, problem *twin) {
    run(p);
    run(twin);
    same_bits("o", p->o, twin->o, n_o(p));
    same_bits("lse", p->lse, twin->lse, rows_q(p));
    same_bits("d_q", p->d_q, twin->d_q, n_q(p));
    same_bits("d_k", p->d_k, twin->d_k, n_k(p));
    same_bits("d_v", p->d_v, twin->d_v, n_v(p));
    float *const own[] = { twin->o, twin->lse, twin->d_q, twin->d_k, twin->d_v };
    for (size_t n = 0; n < sizeof own / sizeof *own; n++) free(own[n]);
    problem_free(p);
}

/* Strides of a dense mask with rows of `row` elements. */
static void hang_mask(qkv_attention_desc *d, qkv_mask_type type, const void *mask, int64_t row) {
    const int64_t stride[4] = { H * d->len_q * row, d->len_q * row, row, 1 };
    d->flags |= QKV_SET_MASK;
    d->mask_type = type;
    d->mask = mask;
    memcpy(d->mask_stride, stride, sizeof stride);
}

/* [b][h][i][j]: what the rules of the problem let be seen. */
static unsigned char *seen_by_definition(const problem *p) {
    const qkv_attention_desc *d = &p->d;
    unsigned char *mask = malloc((size_t)(B * H * d->len_q * d->len_k)), *next = mask;
    assert_non_null(mask);
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t i = 0; i < d->len_q; i++)
                for (int64_t j = 0; j < d->len_k; j++)
                    *next++ = (unsigned char)oracle_sees(d, b, h, i, j);
    return mask;
}

static void rules_are_a_mask(void) {
    static int32_t seg_q[B * MOST], seg_k[B * MOST];
    rng r = { seed };
    for (int turn = 0; turn < 12; turn++) {
        problem p =
            problem_new(&r, B, H, G, rng_between(&r, 1, 150), rng_between(&r, 1, MOST), 20, 33);
        const int64_t prefix[B] = { rng_between(&r, 0, p.d.len_k), rng_between(&r, 0, p.d.len_k) };
        for (int n = 0; n < B * MOST; n++) {
            seg_q[n] = (int32_t)(n / 70 % 3);
            seg_k[n] = (int32_t)rng_between(&r, 0, 2);
        }
        p.d.flags = QKV_SET_Q_OFFSET;
        p.d.q_offset = rng_between(&r, -20, p.d.len_k);
        if (turn % 4 == 0) p.d.flags |= QKV_SET_CAUSAL | QKV_SET_PREFIX_LEN;
        if (turn % 4 == 1 || turn > 8) p.d.flags |= QKV_SET_CHUNK;
        if (turn % 4 == 2 || turn > 8) p.d.flags |= QKV_SET_SEGMENTS;
        p.d.prefix_len = prefix;
        p.d.chunk = rng_between(&r, 1, 90);
        p.d.seg_q = seg_q;
        p.d.seg_k = seg_k;
        p.d.seg_q_stride = p.d.len_q;
        p.d.seg_k_stride = p.d.len_k;
        problem masked = twin_of(&p);
        unsigned char *mask = seen_by_definition(&p);
        masked.d.flags = 0;
        hang_mask(&masked.d, QKV_MASK_BOOL, mask, p.d.len_k);
        compare_and_free(&p, &masked);
        free(mask);
    }
}

static void bits_are_bytes(void) {
    rng r = { seed + 1 };
    for (int turn = 0; turn < 6; turn++) {
        problem p =
            problem_new(&r, B, H, G, rng_between(&r, 1, 80), rng_between(&r, 1, MOST), 16, 16);
        const int64_t row = (p.d.len_k + 7) / 8, n_bytes = B * H * p.d.len_q * row;
        unsigned char *bits = malloc((size_t)n_bytes);
        assert_non_null(bits);
        for (int64_t n = 0; n < n_bytes; n++)
            bits[n] = (unsigned char)(rng_next(&r) & (turn % 2 ? rng_next(&r) : 0xFF));
        problem bytes = twin_of(&p);
        hang_mask(&p.d, QKV_MASK_BITS, bits, row);
        unsigned char *mask = seen_by_definition(&p);
        hang_mask(&bytes.d, QKV_MASK_BOOL, mask, p.d.len_k);
        compare_and_free(&p, &bytes);
        free(mask);
        free(bits);
    }
}

static void alibi_is_an_additive_mask(void) {
    static const float slopes[H] = { 0.5f, -0.0625f, 1.0f / 3, 1e-3f };
    rng r = { seed + 2 };
    for (int turn = 0; turn < 4; turn++) {
        problem p =
            problem_new(&r, B, H, G, rng_between(&r, 1, 80), rng_between(&r, 1, MOST), 16, 16);
        const qkv_attention_desc *const d = &p.d;
        p.d.flags = QKV_SET_Q_OFFSET | QKV_SET_CAUSAL;
        p.d.q_offset = turn % 2 ? (int64_t)1 << 27 : rng_between(&r, -5, 50); /* not exact: 2^27 */
        float *mask = floats(B * H * d->len_q * d->len_k), *next = mask;
        for (int64_t b = 0; b < B; b++)
            for (int64_t h = 0; h < H; h++)
                for (int64_t i = 0; i < d->len_q; i++)
                    for (int64_t j = 0; j < d->len_k; j++)
                        *next++ = slopes[h] * (float)(j - i - d->q_offset);
        problem masked = twin_of(&p);
        hang_mask(&masked.d, QKV_MASK_F32, mask, d->len_k);
        p.d.flags |= QKV_SET_ALIBI;
        p.d.alibi_slopes = slopes;
        compare_and_free(&p, &masked);
        free(mask);
    }
}

/* Documents in one row, each causal: what they give alone, but for where blocks of keys begin. */
static void documents_are_alone(void) {
    enum { L = 290, D = 16 };
    static const int64_t cut[] = { 0, 1, 130, 131, 250, L };
    static int32_t segments[L];
    rng r = { seed + 3 };
    problem p = problem_new(&r, 1, 1, 1, L, L, D, D);
    for (int n = 0; n < 5; n++)
        for (int64_t i = cut[n]; i < cut[n + 1]; i++) segments[i] = 7 - n;
    p.d.flags = QKV_SET_CAUSAL | QKV_SET_SEGMENTS;
    p.d.seg_q = p.d.seg_k = segments;
    run(&p);
    for (int n = 0; n < 5; n++) {
        const int64_t from = cut[n] * D, len = cut[n + 1] - cut[n];
        problem alone = problem_new(&r, 1, 1, 1, len, len, D, D);
        alone.d.flags = QKV_SET_CAUSAL;
        memcpy(alone.q, p.q + from, (size_t)(len * D) * sizeof(float));
        memcpy(alone.k, p.k + from, (size_t)(len * D) * sizeof(float));
        memcpy(alone.v, p.v + from, (size_t)(len * D) * sizeof(float));
        memcpy(alone.d_o, p.d_o + from, (size_t)(len * D) * sizeof(float));
        run(&alone);
        for (int64_t e = 0; e < len * D; e++) {
            assert_true(fabsf(alone.o[e] - p.o[from + e]) <= 2e-6f);
            assert_true(fabsf(alone.d_q[e] - p.d_q[from + e]) <= 1e-5f);
            assert_true(fabsf(alone.d_k[e] - p.d_k[from + e]) <= 1e-5f);
            assert_true(fabsf(alone.d_v[e] - p.d_v[from + e]) <= 1e-5f);
        }
        problem_free(&alone);
    }
    problem_free(&p);
}

/* No sink is one of -inf; one of 30 takes nearly all; in a split it belongs to one part. */
static void sinks(void) {
    static const float none[H] = { -INFINITY, -INFINITY, -INFINITY, -INFINITY };
    static const float some[H] = { 0.5f, -3, 30, 2 };
    rng r = { seed + 4 };
    problem p = problem_new(&r, B, H, G, 40, 270, 16, 16), without = twin_of(&p);
    p.d.flags = QKV_SET_SINKS;
    p.d.sinks = none;
    run(&p);
    run(&without);
    same_bits("o", p.o, without.o, n_o(&p));
    same_bits("d_q", p.d_q, without.d_q, n_q(&p));
    p.d.sinks = some;
    run(&p);
    for (int64_t row = 0; row < rows_q(&p); row++) {
        const double sink = (double)some[row / 40 % H], lse = (double)without.lse[row];
        const double share = 1 / (1 + exp(sink - lse));
        assert_true(fabs((double)p.lse[row] - (lse - log(share))) <= 1e-5);
        for (int c = 0; c < 16; c++)
            assert_true(fabs((double)p.o[row * 16 + c] - share * (double)without.o[row * 16 + c]) <=
                        1e-6);
    }
    float *const o[2] = { floats(n_o(&p)), floats(n_o(&p)) };
    float *const lse[2] = { floats(rows_q(&p)), floats(rows_q(&p)) };
    const void *o_parts[2] = { o[0], o[1] };
    const float *lse_parts[2] = { lse[0], lse[1] };
    qkv_ctx *ctx = context_on(isa, 1);
    for (int part = 0; part < 2; part++) {
        qkv_attention_desc d = p.d;
        d.len_k = part ? 170 : 100;
        d.flags = part ? QKV_SET_SINKS : 0;
        assert_int_equal(qkv_attention_forward(ctx, &d, p.q, p.k + part * 100 * 16,
                                               p.v + part * 100 * 16, o[part], lse[part], NULL),
                         QKV_OK);
    }
    assert_int_equal(qkv_attention_merge(ctx, &p.d, 2, o_parts, lse_parts, without.o, without.lse),
                     QKV_OK);
    for (int64_t e = 0; e < n_o(&p); e++) assert_true(fabsf(without.o[e] - p.o[e]) <= 2e-6f);
    qkv_ctx_free(ctx);
    for (int part = 0; part < 2; part++) {
        free(o[part]);
        free(lse[part]);
    }
    float *const own[] = { without.o, without.lse, without.d_q, without.d_k, without.d_v };
    for (size_t n = 0; n < sizeof own / sizeof *own; n++) free(own[n]);
    problem_free(&p);
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        PROPERTY(rules_are_a_mask),
        PROPERTY(bits_are_bytes),
        PROPERTY(alibi_is_an_additive_mask),
        PROPERTY(documents_are_alone),
        PROPERTY(sinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
