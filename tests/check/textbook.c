/*
 * The textbook's formulas in f32: the yardstick for gradients. See oracle.h.
 */
#include <math.h>
#include <stdlib.h>

#include "check/elements.h"
#include "check/oracle_row.h"
#include "check/philox.h"
#include "check/rules.h"

typedef struct textbook {
    bool backwards; /* sums over channels */
    int ulps;       /* by which lse and o are moved, o up and down in turn */
    float *d_q, *d_k, *d_v, *d_sinks, *d_mask;
} textbook;

static float moved(elem_type type, float x, int ulps) {
    if (!isfinite(x) || ulps == 0) return x;
    return (float)element_rounded(type, (double)x + ulps * element_ulp(type, (double)x));
}

/* y has been rounded to a type, and may have been another number of it. */
static float dot_f32(const textbook *t, const double *x, const double *y, int64_t n, elem_type type,
                     int ulps) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = t->backwards ? n - 1 - i : i;
        sum += (float)x[c] * moved(type, (float)y[c], c % 2 ? ulps : -ulps);
    }
    return sum;
}

static float score_f32(const qkv_attention_desc *d, float s, float extra, float *t) {
    s *= (float)rule_scale(d);
    *t = 1;
    if (d->flags & QKV_SET_SOFTCAP) {
        const float tanh_s = tanhf(s / d->softcap);
        s = d->softcap * tanh_s;
        *t = 1 - tanh_s * tanh_s;
    }
    return s + extra;
}

/* In class dp: rounded to bf16, as factors of the gradients' products are. */
static float rounded(const qkv_attention_desc *d, float x) {
    return oracle_rounds_gradients(d) ? (float)element_rounded(ELEMENT_BF16, (double)x) : x;
}

static void textbook_pair(const qkv_attention_desc *d, const operands *x, int64_t b, int64_t h,
                          int64_t i, int64_t j, float lse, float delta, const textbook *out) {
    const int64_t at_q = oracle_row_q(d, b, h, i), at_k = oracle_row_k(d, b, h, j);
    const double *const q = x->q + at_q * d->head_dim, *const d_o = x->d_o + at_q * d->head_dim_v;
    const double *const k = x->k + at_k * d->head_dim, *const v = x->v + at_k * d->head_dim_v;
    const float keep = (float)dropout_factor(d, b, h, i, j);
    float t;
    const float extra = (float)rule_bias(d, b, h, i, j) + (float)rule_distance(d, b, h, i, j) +
                        (float)rule_distance_bias(d, b, h, i, j);
    const float s = score_f32(d, dot_f32(out, q, k, d->head_dim, ELEMENT_F32, 0), extra, &t);
    const float p = expf(s - lse);
    const float d_p = keep > 0 ? dot_f32(out, d_o, v, d->head_dim_v, ELEMENT_F32, 0) * keep : 0;
    const float d_s = p * (d_p - delta), ds = rounded(d, d_s * t) * (float)rule_scale(d);
    if (out->d_mask) out->d_mask[at_q * d->len_k + j] = d_s;
    for (int64_t c = 0; keep > 0 && c < d->head_dim_v; c++)
        out->d_v[at_k * d->head_dim_v + c] += rounded(d, p) * keep * (float)d_o[c];
    for (int64_t c = 0; c < d->head_dim; c++) {
        out->d_q[at_q * d->head_dim + c] += ds * (float)k[c];
        out->d_k[at_k * d->head_dim + c] += ds * (float)q[c];
    }
}

static void textbook_row(const qkv_attention_desc *d, const operands *x, int64_t b, int64_t h,
                         int64_t i, void *argument) {
    const textbook *const out = argument;
    const int64_t n = oracle_row_q(d, b, h, i);
    const double *const o = x->o + n * d->head_dim_v, *const d_o = x->d_o + n * d->head_dim_v;
    const float lse = moved(ELEMENT_F32, (float)x->lse[n], out->ulps);
    float delta = dot_f32(out, d_o, o, d->head_dim_v, element_of_o(d), out->ulps);
    if (x->d_lse) delta -= (float)x->d_lse[n];
    if (!(rule_sink(d, h) == -INFINITY)) out->d_sinks[h] -= expf(d->sinks[h] - lse) * delta;
    for (int64_t j = 0; j < d->len_k; j++)
        if (rule_sees(d, b, h, i, j)) textbook_pair(d, x, b, h, i, j, lse, delta, out);
}

static void widen(float *x, int64_t n, double *y) {
    for (int64_t c = 0; c < n; c++) y[c] = (double)x[c];
    free(x);
}

void oracle_textbook_f32(const qkv_attention_desc *d, const oracle_inputs *in, int which,
                         oracle_backward *out) {
    static const int ulps[ORACLE_TEXTBOOKS] = { 0, 0, 1, -1 };
    const int64_t rows_q = d->n_batch * d->n_heads * d->len_q;
    const int64_t rows_k = d->n_batch * d->n_kv_heads * d->len_k;
    operands x = operands_new(d, in);
    textbook t = { .backwards = which % 2,
                   .ulps = ulps[which],
                   .d_q = oracle_zeros(rows_q * d->head_dim, sizeof(float)),
                   .d_k = oracle_zeros(rows_k * d->head_dim, sizeof(float)),
                   .d_v = oracle_zeros(rows_k * d->head_dim_v, sizeof(float)),
                   .d_sinks = oracle_zeros(d->n_heads, sizeof(float)),
                   .d_mask = out->d_mask ? oracle_zeros(rows_q * d->len_k, sizeof(float)) : NULL };
    for_each_row(d, &x, textbook_row, &t);
    widen(t.d_q, rows_q * d->head_dim, out->d_q);
    widen(t.d_k, rows_k * d->head_dim, out->d_k);
    widen(t.d_v, rows_k * d->head_dim_v, out->d_v);
    widen(t.d_sinks, d->n_heads, out->d_sinks);
    if (t.d_mask) widen(t.d_mask, rows_q * d->len_k, out->d_mask);
    operands_free(&x);
}
