/*
 * One row: scores of the keys that it sees, their weights, their sum. The formulas are those of
 * include/qkv/qkv.h, in their order.
 */
#include "check/oracle_row.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "check/philox.h"
#include "check/rules.h"

row row_new(const qkv_attention_desc *d) {
    return (row){ .sees = oracle_zeros(d->len_k, sizeof(bool)),
                  .s = oracle_zeros(d->len_k, sizeof(double)),
                  .p = oracle_zeros(d->len_k, sizeof(double)),
                  .t = oracle_zeros(d->len_k, sizeof(double)),
                  .keep = oracle_zeros(d->len_k, sizeof(double)) };
}

void row_free(row *r) {
    free(r->sees);
    free(r->s);
    free(r->p);
    free(r->t);
    free(r->keep);
}

static const double IN_RANGE = 1e37;

static double largest(double a, double b) { return b > a ? b : a; }

/*
 * An f32 score that overflows is an infinity; in log2 units where there is neither soft cap nor
 * anything added.
 */
static double as_f32_range(const qkv_attention_desc *d, int64_t h, double s) {
    const bool alibi = d->flags & QKV_SET_ALIBI && d->alibi_slopes[h] != 0;
    const uint32_t finishing = QKV_SET_SOFTCAP | QKV_SET_DISTANCE_BIAS;
    const bool raw = !rule_adds(d) && !alibi && !(d->flags & finishing);
    return fabs(s) > (raw ? FLT_MAX / 1.44269504 : FLT_MAX) ? copysign(INFINITY, s) : s;
}

static void row_score(const qkv_attention_desc *d, const operands *x, int64_t b, int64_t h,
                      int64_t i, int64_t j, row *r) {
    const double *const q = x->q + oracle_row_q(d, b, h, i) * d->head_dim;
    const double *const k = x->k + oracle_row_k(d, b, h, j) * d->head_dim;
    const double *const v = x->v + oracle_row_k(d, b, h, j) * d->head_dim_v;
    double s = 0, size = 0;
    for (int64_t c = 0; c < d->head_dim; c++) {
        s += q[c] * k[c];
        size += fabs(q[c] * k[c]);
    }
    const double scale = rule_scale(d);
    s = scale == 0 && isfinite(s) ? 0 : as_f32_range(d, h, scale * s);
    r->t[j] = 1;
    if (d->flags & QKV_SET_SOFTCAP) {
        const double cap = (double)d->softcap, tanh_s = tanh(s / cap);
        s = cap * tanh_s;
        r->t[j] = 1 - tanh_s * tanh_s;
    }
    const double mask = rule_bias(d, b, h, i, j), slope = rule_distance(d, b, h, i, j);
    const double distance = rule_distance_bias(d, b, h, i, j);
    r->s[j] = as_f32_range(d, h, s + (mask + slope + distance));
    r->keep[j] = dropout_factor(d, b, h, i, j);
    r->in_range &= size < IN_RANGE && fabs(scale) * size < IN_RANGE;
    r->magnitude = largest(r->magnitude, fabs(scale) * size);
    r->bias = largest(r->bias, fabs(mask) + fabs(slope) + fabs(distance));
    for (int64_t c = 0; c < d->head_dim_v; c++)
        if (r->keep[j] > 0) r->v_max = largest(r->v_max, fabs(v[c]) * r->keep[j]);
}

void row_run(const qkv_attention_desc *d, const operands *x, int64_t b, int64_t h, int64_t i,
             row *r) {
    const double sink = rule_sink(d, h);
    double m = sink, sum = 0;
    bool has_nan = isnan(sink);
    r->n_visible = 0;
    r->magnitude = r->bias = r->v_max = 0;
    r->in_range = true;
    for (int64_t j = 0; j < d->len_k; j++) {
        r->p[j] = r->s[j] = r->t[j] = r->keep[j] = 0;
        r->sees[j] = rule_sees(d, b, h, i, j);
        if (!r->sees[j]) continue;
        r->n_visible++;
        row_score(d, x, b, h, i, j, r);
        has_nan |= isnan(r->s[j]);
        m = largest(m, r->s[j]);
    }
    if (r->n_visible == 0) {
        r->lse = sink;
        return;
    }
    if (isfinite(sink)) r->bias = largest(r->bias, fabs(sink));
    r->in_range &= r->bias < IN_RANGE && 256 * (double)r->n_visible * r->v_max < IN_RANGE;
    if (has_nan || isinf(m)) m = NAN; /* a visible NaN, a +inf, or nothing but -inf */
    for (int64_t j = 0; j < d->len_k; j++)
        if (r->sees[j]) sum += r->p[j] = exp(r->s[j] - m);
    sum += exp(sink - m);
    for (int64_t j = 0; j < d->len_k; j++) r->p[j] = r->sees[j] ? r->p[j] / sum : 0;
    r->lse = m + log(sum);
}

void row_values(const qkv_attention_desc *d, const operands *x, int64_t b, int64_t h, const row *r,
                double *o) {
    for (int64_t c = 0; c < d->head_dim_v; c++) o[c] = 0;
    for (int64_t j = 0; j < d->len_k; j++) {
        if (!r->sees[j] || r->keep[j] == 0) continue; /* a dropped weight is exactly 0 */
        const double *const v = x->v + oracle_row_k(d, b, h, j) * d->head_dim_v;
        for (int64_t c = 0; c < d->head_dim_v; c++) o[c] += r->p[j] * r->keep[j] * v[c];
    }
    /* The sum of all weights is in every o, but for one that is 0 by decree. */
    const bool none = d->flags & QKV_SET_DROPOUT && d->dropout == 1;
    for (int64_t c = 0; isnan(r->lse) && r->n_visible && !none && c < d->head_dim_v; c++)
        o[c] = NAN;
}
