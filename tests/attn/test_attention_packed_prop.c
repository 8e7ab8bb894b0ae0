/*
 * Packed sequences: each has the bits that it has alone, forward and backward, whatever lies beside
 * it and however many threads there are; nothing outside of what a call may write is written.
 * Every instruction set in turn.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/every_isa.h"

enum { MOST = 9, LONGEST = 420 };

static uint64_t seed = 20261123;

/* A batch of sequences in arrays [head][row][channel], or [row][head][channel] if `rows_first`. */
typedef struct packed {
    qkv_attention_desc d;
    qkv_attention_grads g;
    int64_t cu_q[MOST + 1], cu_k[MOST + 1], q_len[MOST], kv_len[MOST], offsets[MOST];
    int64_t prefix[MOST];
    int32_t seg_q[MOST * LONGEST], seg_k[MOST * LONGEST];
    float slopes[8], sinks[8];
    float *q, *k, *v, *d_o, *d_lse, *o, *lse, *d_q, *d_k, *d_v;
    unsigned char *mask;
} packed;

static void set_stride(int64_t stride[3], int64_t heads, int64_t rows, int64_t dim,
                       bool rows_first) {
    stride[0] = 0;
    stride[1] = rows_first ? dim : rows * dim;
    stride[2] = rows_first ? heads * dim : dim;
}

static void cut(rng *r, int64_t *cu, int64_t n, int64_t longest) {
    cu[0] = 0;
    for (int64_t b = 0; b < n; b++) {
        const int64_t most = rng_chance(r, 30) ? longest : 40;
        cu[b + 1] = cu[b] + (rng_chance(r, 20) ? 0 : rng_between(r, 0, most));
    }
}

static void set_options(packed *p, rng *r, int turn) {
    qkv_attention_desc *d = &p->d;
    d->flags = QKV_SET_CU_SEQLENS;
    d->cu_seqlens_q = p->cu_q, d->cu_seqlens_k = p->cu_k;
    for (int64_t b = 0; b < d->n_batch; b++) {
        p->q_len[b] = rng_between(r, 0, p->cu_q[b + 1] - p->cu_q[b]);
        p->kv_len[b] = rng_between(r, 0, p->cu_k[b + 1] - p->cu_k[b]);
        p->offsets[b] = rng_between(r, -20, 60);
        p->prefix[b] = rng_between(r, 0, d->len_k);
    }
    d->q_len = p->q_len, d->kv_len = p->kv_len, d->q_offsets = p->offsets;
    d->prefix_len = p->prefix, d->alibi_slopes = p->slopes, d->sinks = p->sinks;
    d->seg_q = p->seg_q, d->seg_k = p->seg_k, d->seg_q_stride = d->seg_k_stride = LONGEST;
    d->mask = p->mask, d->mask_type = QKV_MASK_BOOL, d->mask_len_k = d->len_k;
    d->mask_stride[0] = d->len_q * d->len_k, d->mask_stride[1] = 0;
    d->mask_stride[2] = d->len_k, d->mask_stride[3] = 1;
    d->softcap = 4, d->window_left = 50, d->window_right = 7, d->chunk = 37;
    const uint32_t options[] = { QKV_SET_Q_LEN,    QKV_SET_KV_LEN, QKV_SET_Q_OFFSET, QKV_SET_CAUSAL,
                                 QKV_SET_SEGMENTS, QKV_SET_ALIBI,  QKV_SET_SINKS,    QKV_SET_MASK,
                                 QKV_SET_SOFTCAP,  QKV_SET_WINDOW, QKV_SET_CHUNK };
    for (size_t n = 0; turn && n < sizeof options / sizeof *options; n++)
        if (rng_chance(r, 25)) d->flags |= options[n];
    if (d->flags & QKV_SET_CAUSAL && rng_chance(r, 40)) d->flags |= QKV_SET_PREFIX_LEN;
}

static void make_arrays(packed *p, rng *r, bool rows_first) {
    qkv_attention_desc *d = &p->d;
    const int64_t n_q = p->cu_q[d->n_batch], n_k = p->cu_k[d->n_batch], h = d->n_heads;
    const int64_t g = d->n_kv_heads;
    set_stride(d->q_stride, h, n_q, d->head_dim, rows_first);
    set_stride(d->k_stride, g, n_k, d->head_dim, rows_first);
    set_stride(d->v_stride, g, n_k, d->head_dim_v, rows_first);
    set_stride(d->o_stride, h, n_q, d->head_dim_v, rows_first);
    set_stride(d->lse_stride, h, n_q, 1, rows_first);
    qkv_attention_grads_contiguous(&p->g, d);
    memcpy(p->g.d_o_stride, d->o_stride, sizeof d->o_stride);
    memcpy(p->g.d_q_stride, d->q_stride, sizeof d->q_stride);
    memcpy(p->g.d_k_stride, d->k_stride, sizeof d->k_stride);
    memcpy(p->g.d_v_stride, d->v_stride, sizeof d->v_stride);
    p->q = normals(r, h * n_q * d->head_dim), p->k = normals(r, g * n_k * d->head_dim);
    p->v = normals(r, g * n_k * d->head_dim_v), p->d_o = normals(r, h * n_q * d->head_dim_v);
    p->d_lse = normals(r, h * n_q);
    p->o = normals(r, h * n_q * d->head_dim_v), p->lse = normals(r, h * n_q);
    p->d_q = normals(r, h * n_q * d->head_dim), p->d_k = normals(r, g * n_k * d->head_dim);
    p->d_v = normals(r, g * n_k * d->head_dim_v);
    p->g.d_o = p->d_o, p->g.d_lse = p->d_lse;
    p->g.d_q = p->d_q, p->g.d_k = p->d_k, p->g.d_v = p->d_v;
}

static packed *packed_new(rng *r, int turn) {
    packed *p = calloc(1, sizeof *p);
    assert_non_null(p);
    const int64_t n = rng_between(r, 1, MOST), g = rng_between(r, 1, 3);
    cut(r, p->cu_q, n, LONGEST);
    memcpy(p->cu_k, p->cu_q, sizeof p->cu_q);
    if (turn % 3 == 2) cut(r, p->cu_k, n, LONGEST);
    qkv_attention_desc_contiguous(&p->d, n, g * rng_between(r, 1, 2), g, LONGEST, LONGEST,
                                  turn % 2 ? 16 : rng_between(r, 1, 40),
                                  turn % 2 ? 32 : rng_between(r, 1, 40));
    p->mask = malloc(MOST * LONGEST * LONGEST);
    assert_non_null(p->mask);
    for (int64_t e = 0; e < MOST * LONGEST * LONGEST; e++) p->mask[e] = rng_chance(r, 60);
    for (int e = 0; e < MOST * LONGEST; e++) {
        p->seg_q[e] = (int32_t)rng_between(r, 0, 2);
        p->seg_k[e] = e / 50 % 3;
    }
    for (int h = 0; h < 8; h++) p->slopes[h] = rng_normal(r) / 16, p->sinks[h] = rng_normal(r);
    make_arrays(p, r, rng_chance(r, 50));
    set_options(p, r, turn);
    return p;
}

static void packed_free(packed *p) {
    float *const all[] = {
        p->q, p->k, p->v, p->d_o, p->d_lse, p->o, p->lse, p->d_q, p->d_k, p->d_v
    };
    for (size_t n = 0; n < sizeof all / sizeof *all; n++) free(all[n]);
    free(p->mask);
    free(p);
}

/* The descriptor of sequence b alone. */
static qkv_attention_desc alone(const packed *p, int64_t b) {
    qkv_attention_desc d = p->d;
    d.flags &= ~(uint32_t)QKV_SET_CU_SEQLENS;
    d.n_batch = 1;
    d.len_q = p->cu_q[b + 1] - p->cu_q[b];
    d.len_k = p->cu_k[b + 1] - p->cu_k[b];
    if (d.mask_len_k > d.len_k) d.mask_len_k = d.len_k;
    if (d.len_k == 1) d.mask_stride[3] = 1;
    d.q_len += b, d.kv_len += b, d.q_offsets += b;
    d.seg_q += b * LONGEST, d.seg_k += b * LONGEST;
    d.mask = (const unsigned char *)d.mask + b * d.mask_stride[0];
    return d;
}

static int64_t shorter(int64_t x, int64_t most) { return x < most ? x : most; }

/* Sequence after sequence into the arrays of `to`, which has the same inputs. */
static void run_alone(qkv_ctx *ctx, packed *to) {
    for (int64_t b = 0; b < to->d.n_batch; b++) {
        qkv_attention_desc d = alone(to, b);
        qkv_attention_grads g = to->g;
        const int64_t i = to->cu_q[b], j = to->cu_k[b];
        const int64_t prefix = shorter(to->prefix[b], d.len_k);
        d.prefix_len = &prefix;
        float *const o = to->o + i * d.o_stride[2], *const lse = to->lse + i * d.lse_stride[2];
        const float *const q = to->q + i * d.q_stride[2], *const k = to->k + j * d.k_stride[2];
        const float *const v = to->v + j * d.v_stride[2];
        g.d_o = to->d_o + i * g.d_o_stride[2], g.d_lse = to->d_lse + i * d.lse_stride[2];
        g.d_q = to->d_q + i * g.d_q_stride[2], g.d_k = to->d_k + j * g.d_k_stride[2];
        g.d_v = to->d_v + j * g.d_v_stride[2];
        if (qkv_attention_forward(ctx, &d, q, k, v, o, lse, NULL) != QKV_OK ||
            qkv_attention_backward(ctx, &d, q, k, v, o, lse, &g, NULL) != QKV_OK)
            fail_msg("%s", qkv_ctx_message(ctx));
    }
}

static void run_packed(qkv_ctx *ctx, packed *p) {
    if (qkv_attention_forward(ctx, &p->d, p->q, p->k, p->v, p->o, p->lse, NULL) != QKV_OK ||
        qkv_attention_backward(ctx, &p->d, p->q, p->k, p->v, p->o, p->lse, &p->g, NULL) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
}

static float *copy_of(const float *x, int64_t n) {
    float *y = floats(n);
    memcpy(y, x, (size_t)n * sizeof *x);
    return y;
}

/* The same inputs, and outputs that hold the same before the call. */
static packed *twin_of(const packed *p) {
    packed *t = malloc(sizeof *t);
    assert_non_null(t);
    *t = *p;
    const qkv_attention_desc *d = &p->d;
    const int64_t q = p->cu_q[d->n_batch] * d->n_heads, k = p->cu_k[d->n_batch] * d->n_kv_heads;
    t->o = copy_of(p->o, q * d->head_dim_v), t->lse = copy_of(p->lse, q);
    t->g.d_q = t->d_q = copy_of(p->d_q, q * d->head_dim);
    t->g.d_k = t->d_k = copy_of(p->d_k, k * d->head_dim);
    t->g.d_v = t->d_v = copy_of(p->d_v, k * d->head_dim_v);
    return t;
}

static void sequences_are_what_they_are_alone(void) {
    rng r = { seed };
    for (int turn = 0; turn < 40; turn++) {
        if (!takes_turn(isa_at, turn)) continue;
        packed *p = packed_new(&r, turn), *t = twin_of(p);
        const qkv_attention_desc *d = &p->d;
        const int64_t q = p->cu_q[d->n_batch] * d->n_heads, k = p->cu_k[d->n_batch] * d->n_kv_heads;
        qkv_ctx *ctx = context_on(isa, 1 + turn % 4), *one = context_on(isa, 1);
        run_packed(ctx, p);
        run_alone(one, t);
        same_bits("o", p->o, t->o, q * d->head_dim_v);
        same_bits("lse", p->lse, t->lse, q);
        same_bits("d_q", p->d_q, t->d_q, q * d->head_dim);
        same_bits("d_k", p->d_k, t->d_k, k * d->head_dim);
        same_bits("d_v", p->d_v, t->d_v, k * d->head_dim_v);
        qkv_ctx_free(ctx);
        qkv_ctx_free(one);
        float *const own[] = { t->o, t->lse, t->d_q, t->d_k, t->d_v };
        for (size_t n = 0; n < sizeof own / sizeof *own; n++) free(own[n]);
        free(t);
        packed_free(p);
    }
}

/* Merging packed parts is merging their sequences. */
static void merged_as_one(void) {
    rng r = { seed + 1 };
    packed *p = packed_new(&r, 3), *t = twin_of(p);
    const qkv_attention_desc *d = &p->d;
    const int64_t rows = p->cu_q[d->n_batch] * d->n_heads;
    const void *o_parts[] = { p->d_o, p->o };
    const float *lse_parts[] = { p->d_lse, p->lse };
    qkv_ctx *ctx = context_on(isa, 2);
    qkv_attention_desc whole = *d;
    whole.flags = 0, whole.n_batch = 1, whole.len_q = p->cu_q[d->n_batch];
    assert_int_equal(qkv_attention_merge(ctx, d, 2, o_parts, lse_parts, p->o, p->lse), QKV_OK);
    o_parts[1] = t->o, lse_parts[1] = t->lse;
    assert_int_equal(qkv_attention_merge(ctx, &whole, 2, o_parts, lse_parts, t->o, t->lse), QKV_OK);
    same_bits("o", p->o, t->o, rows * d->head_dim_v);
    same_bits("lse", p->lse, t->lse, rows);
    qkv_ctx_free(ctx);
    float *const own[] = { t->o, t->lse, t->d_q, t->d_k, t->d_v };
    for (size_t n = 0; n < sizeof own / sizeof *own; n++) free(own[n]);
    free(t);
    packed_free(p);
}

/* Room for sequences that are not there costs nothing: this would take hours. */
static void absent_tokens_cost_nothing(void) {
    enum { N = 3, D = 8 };
    static float x[2 * N * D], y[2 * N * D], lse[2 * N], d_q[2 * N * D], d_k[2 * N * D],
        d_v[2 * N * D];
    static const int64_t cu[] = { 0, 1, 1, N };
    rng r = { seed + 2 };
    qkv_attention_desc d;
    qkv_attention_grads g;
    for (int e = 0; e < 2 * N * D; e++) x[e] = rng_normal(&r);
    qkv_attention_desc_contiguous(&d, 3, 2, 2, (int64_t)1 << 36, (int64_t)1 << 14, D, D);
    set_stride(d.q_stride, 2, N, D, true);
    set_stride(d.lse_stride, 2, N, 1, true);
    memcpy(d.k_stride, d.q_stride, sizeof d.q_stride);
    memcpy(d.v_stride, d.q_stride, sizeof d.q_stride);
    memcpy(d.o_stride, d.q_stride, sizeof d.q_stride);
    qkv_attention_grads_contiguous(&g, &d);
    memcpy(g.d_o_stride, d.q_stride, sizeof d.q_stride);
    memcpy(g.d_q_stride, d.q_stride, sizeof d.q_stride);
    memcpy(g.d_k_stride, d.q_stride, sizeof d.q_stride);
    memcpy(g.d_v_stride, d.q_stride, sizeof d.q_stride);
    g.d_o = x, g.d_q = d_q, g.d_k = d_k, g.d_v = d_v;
    d.flags = QKV_SET_CU_SEQLENS;
    d.cu_seqlens_q = d.cu_seqlens_k = cu;
    for (int threads = 1; threads <= 4; threads += 3) {
        qkv_ctx *ctx = context_on(isa, threads);
        assert_int_equal(qkv_attention_forward(ctx, &d, x, x, x, y, lse, NULL), QKV_OK);
        assert_int_equal(qkv_attention_backward(ctx, &d, x, x, x, y, lse, &g, NULL), QKV_OK);
        for (int e = 0; e < 2 * D; e++) assert_true(y[e] == x[e]); /* the first sees itself only */
        qkv_ctx_free(ctx);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        PROPERTY(sequences_are_what_they_are_alone),
        PROPERTY(merged_as_one),
        PROPERTY(absent_tokens_cost_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
