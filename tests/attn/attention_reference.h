/*
 * Attention with dropout and the gradient of an additive mask, in double, one weight at a time:
 *
 *     w = keep p / (1 - dropout)   o = sum_j w v   d_v = sum_i w d_o   d_mask = ds
 *     ds = w <d_o, v> - p delta    delta = sum_j w <d_o, v> - d_lse
 *
 * The oracle decides which keys are seen and which weights are kept.
 */
#ifndef QKV_TESTS_ATTENTION_REFERENCE_H
#define QKV_TESTS_ATTENTION_REFERENCE_H

#include <math.h>
#include <string.h>

#include "attn/attention_problem.h"
#include "check/philox.h"

/*
 * Dense; d_mask [b][h][i][j] is not summed. o_bound: per row, the largest error of o (numerics.md).
 */
typedef struct reference {
    double *o, *lse, *o_bound, *d_q, *d_k, *d_v, *d_mask;
} reference;

static inline double *doubles(int64_t n) {
    double *x = calloc((size_t)n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

static inline reference reference_new(const problem *p) {
    return (reference){ .o = doubles(n_o(p)),
                        .lse = doubles(rows_q(p)),
                        .o_bound = doubles(rows_q(p)),
                        .d_q = doubles(n_q(p)),
                        .d_k = doubles(n_k(p)),
                        .d_v = doubles(n_v(p)),
                        .d_mask = doubles(rows_q(p) * p->d.len_k) };
}

static inline void reference_free(reference *r) {
    double *const all[] = { r->o, r->lse, r->o_bound, r->d_q, r->d_k, r->d_v, r->d_mask };
    for (size_t n = 0; n < sizeof all / sizeof *all; n++) free(all[n]);
}

static inline double reference_dot(const float *x, const float *y, int64_t n, bool sizes) {
    double sum = 0;
    for (int64_t c = 0; c < n; c++) {
        const double product = (double)x[c] * (double)y[c];
        sum += sizes ? fabs(product) : product;
    }
    return sum;
}

/* One key of a row. */
typedef struct reference_pair {
    bool sees;
    double keep, s, t, p, w, d_p; /* keep: as dropout_factor */
} reference_pair;

static inline double reference_scale(const qkv_attention_desc *d) {
    if (d->flags & QKV_SET_SCALE) return (double)d->scale;
    return d->head_dim ? 1 / sqrt((double)d->head_dim) : 1;
}

/* Scores of row i; returns the greatest sum of what the bound is made of. */
static inline double reference_scores(const problem *p, int64_t b, int64_t h, int64_t i,
                                      reference_pair *pair) {
    const qkv_attention_desc *d = &p->d;
    const int64_t g = h / (d->n_heads / d->n_kv_heads), row_k = (b * d->n_kv_heads + g) * d->len_k;
    const float *q = p->q + ((b * d->n_heads + h) * d->len_q + i) * d->head_dim;
    double size = 0;
    for (int64_t j = 0; j < d->len_k; j++) {
        const float *k = p->k + (row_k + j) * d->head_dim;
        reference_pair x = { .sees = oracle_sees(d, b, h, i, j), .t = 1 };
        double bias = 0;
        x.s = reference_scale(d) * reference_dot(q, k, d->head_dim, false);
        if (d->flags & QKV_SET_SOFTCAP) {
            const double tanh_s = tanh(x.s / (double)d->softcap);
            x.s = (double)d->softcap * tanh_s;
            x.t = 1 - tanh_s * tanh_s;
        }
        if (x.sees && d->flags & QKV_SET_MASK && d->mask_type == QKV_MASK_F32) {
            const int64_t *s = d->mask_stride, key = d->mask_len_k == 1 ? 0 : j;
            bias = (double)((const float *)d->mask)[b * s[0] + h * s[1] + i * s[2] + key * s[3]];
        }
        x.s += bias;
        x.keep = dropout_factor(d, b, h, i, j);
        pair[j] = x;
        if (!x.sees) continue;
        const double products = reference_dot(q, k, d->head_dim, true) * fabs(reference_scale(d));
        size = fmax(size, 4 * sqrt((double)d->head_dim) * products + 4 * fabs(bias));
    }
    return size;
}

static inline double reference_weights(const qkv_attention_desc *d, reference_pair *pair) {
    double m = -INFINITY, sum = 0;
    for (int64_t j = 0; j < d->len_k; j++)
        if (pair[j].sees) m = fmax(m, pair[j].s);
    for (int64_t j = 0; j < d->len_k; j++)
        if (pair[j].sees) sum += exp(pair[j].s - m);
    for (int64_t j = 0; j < d->len_k; j++) {
        pair[j].p = pair[j].sees ? exp(pair[j].s - m) / sum : 0;
        pair[j].w = pair[j].p * pair[j].keep;
    }
    return sum > 0 ? m + log(sum) : -INFINITY;
}

static inline void reference_row(const problem *p, const float *d_lse, int64_t b, int64_t h,
                                 int64_t i, reference_pair *pair, reference *r) {
    const qkv_attention_desc *d = &p->d;
    const int64_t g = h / (d->n_heads / d->n_kv_heads), row_k = (b * d->n_kv_heads + g) * d->len_k;
    const int64_t row = (b * d->n_heads + h) * d->len_q + i, dim = d->head_dim, dv = d->head_dim_v;
    const double size = reference_scores(p, b, h, i, pair);
    double v_max = 0, delta = d_lse ? -(double)d_lse[row] : 0;
    r->lse[row] = reference_weights(d, pair);
    for (int64_t j = 0; j < d->len_k; j++) {
        const float *v = p->v + (row_k + j) * dv;
        for (int64_t c = 0; c < dv; c++) {
            r->o[row * dv + c] += pair[j].w * (double)v[c];
            r->d_v[(row_k + j) * dv + c] += pair[j].w * (double)p->d_o[row * dv + c];
            v_max = fmax(v_max, fabs((double)v[c]));
        }
        pair[j].d_p = reference_dot(p->d_o + row * dv, v, dv, false);
        delta += pair[j].w * pair[j].d_p;
    }
    const double kept = d->flags & QKV_SET_DROPOUT ? 1 - (double)d->dropout : 1;
    r->o_bound[row] = 0x1p-24 * (size + 4 * sqrt((double)d->len_k) + 16) * v_max / kept;
    for (int64_t j = 0; j < d->len_k; j++) {
        const double ds = pair[j].w * pair[j].d_p - pair[j].p * delta;
        r->d_mask[row * d->len_k + j] = ds;
        for (int64_t c = 0; c < dim; c++) {
            const double to_s = ds * pair[j].t * reference_scale(d);
            r->d_q[row * dim + c] += to_s * (double)p->k[(row_k + j) * dim + c];
            r->d_k[(row_k + j) * dim + c] += to_s * (double)p->q[row * dim + c];
        }
    }
}

/* Arrays are dense; d_lse is nullable. */
static inline void reference_run(const problem *p, const float *d_lse, reference *r) {
    reference_pair *pair = calloc((size_t)p->d.len_k + 1, sizeof *pair);
    assert_non_null(pair);
    for (int64_t b = 0; b < p->d.n_batch; b++)
        for (int64_t h = 0; h < p->d.n_heads; h++)
            for (int64_t i = 0; i < p->d.len_q; i++) {
                if (p->d.flags & QKV_SET_Q_LEN && i >= p->d.q_len[b]) continue;
                reference_row(p, d_lse, b, h, i, pair, r);
            }
    free(pair);
}

#endif
