/*
 * A decode problem for tests of qkv_attention_decode: a few queries, many keys, any pair of rules.
 * K and V are dense, and once more in shuffled pages with gaps that must not be read.
 */
#ifndef QKV_TESTS_DECODE_CASE_H
#define QKV_TESTS_DECODE_CASE_H

#include <math.h>
#include <string.h>

#include <qkv/kv.h>

#include "attn/every_isa.h"

enum {
    RULE_CAUSAL,
    RULE_WINDOW,
    RULE_CHUNK,
    RULE_PREFIX,
    RULE_KV_LEN,
    RULE_BOOL,
    RULE_BITS,
    RULE_ADDED,
    RULE_SEGMENTS,
    RULE_ALIBI,
    RULE_SINKS,
    RULE_SOFTCAP,
    RULE_GQA,
    RULE_DV,
    RULES
};

static const char *const rule_names[RULES] = { "causal", "window",  "chunk", "prefix",   "kv_len",
                                               "bool",   "bits",    "added", "segments", "alibi",
                                               "sinks",  "softcap", "gqa",   "dv" };

enum { DECODE_BATCH = 2 };

typedef struct decode_case {
    problem p;
    int64_t kv_len[DECODE_BATCH], q_offsets[DECODE_BATCH], prefix_len[DECODE_BATCH];
    int32_t *seg_q, *seg_k;
    float *slopes, *sinks;
    void *mask;
    float *k_pages, *v_pages;
    int32_t *pages;
    int64_t page_len, n_pages, pages_row;
} decode_case;

/* A view of the dense arrays, or of the pages. */
static inline qkv_kv_view decode_view(const decode_case *c, bool paged) {
    const qkv_attention_desc *d = &c->p.d;
    qkv_kv_view view;
    qkv_kv_view_contiguous(&view, d, QKV_F32);
    view.k = paged ? c->k_pages : c->p.k;
    view.v = paged ? c->v_pages : c->p.v;
    if (!paged) return view;
    const int64_t k = c->page_len * d->head_dim, v = c->page_len * d->head_dim_v;
    view.k_stride[0] = d->n_kv_heads * k;
    view.k_stride[1] = k;
    view.v_stride[0] = d->n_kv_heads * v;
    view.v_stride[1] = v;
    view.page_len = c->page_len;
    view.n_pages = c->n_pages;
    view.pages = c->pages;
    view.pages_stride = c->pages_row;
    return view;
}

/* Copies K and V into pages in random order; elements that are no token of a sequence are NaN. */
static inline void decode_case_page(decode_case *c, rng *r) {
    const qkv_attention_desc *d = &c->p.d;
    c->page_len = 16 * rng_between(r, 1, 5);
    c->pages_row = (d->len_k + c->page_len - 1) / c->page_len;
    c->n_pages = d->n_batch * c->pages_row + 3;
    const int64_t rows = c->n_pages * d->n_kv_heads * c->page_len;
    c->k_pages = floats(rows * d->head_dim);
    c->v_pages = floats(rows * d->head_dim_v);
    c->pages = malloc((size_t)(d->n_batch * c->pages_row + 1) * sizeof *c->pages);
    assert_non_null(c->pages);
    for (int64_t e = 0; e < rows * d->head_dim; e++) c->k_pages[e] = NAN;
    for (int64_t e = 0; e < rows * d->head_dim_v; e++) c->v_pages[e] = NAN;
    const int64_t used = d->n_batch * c->pages_row;
    for (int64_t n = 0; n < used; n++) c->pages[n] = (int32_t)(n + 2);
    for (int64_t n = used - 1; n > 0; n--) {
        const int64_t m = rng_between(r, 0, n);
        const int32_t swap = c->pages[n];
        c->pages[n] = c->pages[m];
        c->pages[m] = swap;
    }
    const qkv_kv_view view = decode_view(c, true);
    for (int64_t b = 0; b < d->n_batch; b++)
        for (int64_t g = 0; g < d->n_kv_heads; g++)
            for (int64_t j = 0; j < d->len_k; j++) {
                const int64_t page = c->pages[b * c->pages_row + j / c->page_len];
                const int64_t row = (b * d->n_kv_heads + g) * d->len_k + j, at = j % c->page_len;
                memcpy(c->k_pages + page * view.k_stride[0] + g * view.k_stride[1] +
                           at * d->head_dim,
                       c->p.k + row * d->head_dim, (size_t)d->head_dim * sizeof(float));
                memcpy(c->v_pages + page * view.v_stride[0] + g * view.v_stride[1] +
                           at * d->head_dim_v,
                       c->p.v + row * d->head_dim_v, (size_t)d->head_dim_v * sizeof(float));
            }
}

static inline void decode_case_mask(decode_case *c, rng *r, int rule) {
    qkv_attention_desc *d = &c->p.d;
    const int64_t row = rule == RULE_BITS ? (d->len_k + 7) / 8 : d->len_k;
    const int64_t n = d->n_batch * d->n_heads * d->len_q * row;
    const int64_t stride[4] = { d->n_heads * d->len_q * row, d->len_q * row, row, 1 };
    d->flags |= QKV_SET_MASK;
    d->mask_type = rule == RULE_BOOL   ? QKV_MASK_BOOL
                   : rule == RULE_BITS ? QKV_MASK_BITS
                                       : QKV_MASK_F32;
    memcpy(d->mask_stride, stride, sizeof stride);
    if (rule == RULE_ADDED) {
        float *x = floats(n);
        for (int64_t e = 0; e < n; e++) x[e] = rng_chance(r, 30) ? -INFINITY : rng_normal(r);
        c->mask = x;
    } else {
        unsigned char *x = malloc((size_t)n + 1);
        assert_non_null(x);
        for (int64_t e = 0; e < n; e++)
            x[e] = rule == RULE_BITS ? (unsigned char)rng_next(r) : rng_chance(r, 60);
        c->mask = x;
    }
    d->mask = c->mask;
}

static inline void decode_case_rule(decode_case *c, rng *r, int rule) {
    qkv_attention_desc *d = &c->p.d;
    switch (rule) {
    case RULE_PREFIX:
        d->flags |= QKV_SET_PREFIX_LEN;
        for (int b = 0; b < d->n_batch; b++) c->prefix_len[b] = rng_between(r, 0, d->len_k);
        d->prefix_len = c->prefix_len; /* fall through */
    case RULE_CAUSAL:
        d->flags |= QKV_SET_CAUSAL | QKV_SET_Q_OFFSET;
        for (int b = 0; b < d->n_batch; b++) c->q_offsets[b] = rng_between(r, -1, d->len_k);
        d->q_offsets = c->q_offsets;
        return;
    case RULE_WINDOW:
        d->flags |= QKV_SET_WINDOW | QKV_SET_Q_OFFSET;
        d->window_left = rng_between(r, -1, 700);
        d->window_right = rng_between(r, -1, 300);
        d->q_offset = rng_between(r, 0, d->len_k);
        return;
    case RULE_CHUNK:
        d->flags |= QKV_SET_CHUNK | QKV_SET_Q_OFFSET;
        d->chunk = rng_between(r, 1, 800);
        d->q_offset = rng_between(r, 0, d->len_k);
        return;
    case RULE_KV_LEN:
        d->flags |= QKV_SET_KV_LEN;
        for (int b = 0; b < d->n_batch; b++) c->kv_len[b] = rng_between(r, 0, d->len_k);
        d->kv_len = c->kv_len;
        return;
    case RULE_BOOL:
    case RULE_BITS:
    case RULE_ADDED: decode_case_mask(c, r, rule); return;
    case RULE_SEGMENTS:
        d->flags |= QKV_SET_SEGMENTS;
        d->seg_q_stride = d->len_q;
        d->seg_k_stride = d->len_k;
        for (int64_t e = 0; e < d->n_batch * d->len_q; e++)
            c->seg_q[e] = (int32_t)rng_between(r, 0, 2);
        for (int64_t e = 0; e < d->n_batch * d->len_k; e++) c->seg_k[e] = (int32_t)(e / 50 % 3);
        d->seg_q = c->seg_q;
        d->seg_k = c->seg_k;
        return;
    case RULE_ALIBI:
        d->flags |= QKV_SET_ALIBI;
        d->alibi_slopes = c->slopes;
        return;
    case RULE_SINKS:
        d->flags |= QKV_SET_SINKS;
        d->sinks = c->sinks;
        return;
    case RULE_SOFTCAP:
        d->flags |= QKV_SET_SOFTCAP;
        d->softcap = 1.5f;
        return;
    default: return;
    }
}

/* A case with rules a and b, which may be the same; len_k is at most `most`. */
static inline decode_case decode_case_new(rng *r, int a, int b, int64_t most) {
    decode_case c = { 0 };
    const int64_t n_kv = rng_between(r, 1, 2), len_k = rng_between(r, 1, most);
    const int64_t group = a == RULE_GQA || b == RULE_GQA ? rng_between(r, 2, 9) : 1;
    const int64_t dim = rng_between(r, 0, 3) ? 16 * rng_between(r, 1, 4) : rng_between(r, 1, 70);
    const int64_t dim_v = a == RULE_DV || b == RULE_DV ? rng_between(r, 0, 90) : dim;
    c.p = problem_new(r, DECODE_BATCH, n_kv * group, n_kv, rng_between(r, 1, 5), len_k, dim, dim_v);
    c.slopes = normals(r, n_kv * group);
    c.sinks = normals(r, n_kv * group);
    c.slopes[0] = 0;
    c.seg_q = calloc((size_t)(DECODE_BATCH * c.p.d.len_q), sizeof *c.seg_q);
    c.seg_k = calloc((size_t)(DECODE_BATCH * len_k), sizeof *c.seg_k);
    assert_true(c.seg_q && c.seg_k);
    decode_case_page(&c, r);
    return c;
}

/* To be called when the case does not move any more: the descriptor points into it. */
static inline void decode_case_rules(decode_case *c, rng *r, int a, int b) {
    decode_case_rule(c, r, a);
    if (b != a) decode_case_rule(c, r, b);
}

static inline void decode_case_free(decode_case *c) {
    void *const all[] = { c->seg_q, c->seg_k,   c->slopes,  c->sinks,
                          c->mask,  c->k_pages, c->v_pages, c->pages };
    for (size_t n = 0; n < sizeof all / sizeof *all; n++) free(all[n]);
    problem_free(&c->p);
}

static inline void decode_or_fail(qkv_ctx *ctx, const qkv_attention_desc *d, const float *q,
                                  const qkv_kv_view *view, float *o, float *lse) {
    if (qkv_attention_decode(ctx, d, q, view, o, lse, NULL) != QKV_OK)
        fail_msg("%s", qkv_ctx_message(ctx));
}

#endif
