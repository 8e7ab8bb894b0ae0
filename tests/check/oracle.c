/*
 * The double oracle. Slow and plain on purpose; see oracle.h. The formulas are those of
 * include/qkv/qkv.h, in their order.
 */
#include "check/oracle.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double EPSILON = 0x1p-24;
static const double UNDERFLOW_STEP = 0x1p-150; /* what rounding loses below the normal numbers */

static void *zeros(int64_t n, size_t size) {
    void *p = calloc((size_t)(n > 0 ? n : 1), size);
    if (!p) {
        fputs("oracle: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

static int64_t rows_q(const qkv_attention_desc *d) { return d->n_batch * d->n_heads * d->len_q; }
static int64_t rows_k(const qkv_attention_desc *d) { return d->n_batch * d->n_kv_heads * d->len_k; }
static int64_t row_q(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i) {
    return (b * d->n_heads + h) * d->len_q + i;
}
static int64_t row_k(const qkv_attention_desc *d, int64_t b, int64_t g, int64_t j) {
    return (b * d->n_kv_heads + g) * d->len_k + j;
}
static const float *at(const float *x, const int64_t s[3], int64_t b, int64_t h, int64_t i) {
    return x + b * s[0] + h * s[1] + i * s[2];
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static double scale_of(const qkv_attention_desc *d) {
    if (d->flags & QKV_SET_SCALE) return (double)d->scale;
    return d->head_dim ? 1 / sqrt((double)d->head_dim) : 1;
}

static int64_t position_of(const qkv_attention_desc *d, int64_t b, int64_t i) {
    if (!(d->flags & QKV_SET_Q_OFFSET)) return i;
    return i + (d->q_offsets ? d->q_offsets[b] : d->q_offset);
}

static int64_t mask_index(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j) {
    const int64_t key = d->mask_len_k == 1 ? 0 : j;
    return b * d->mask_stride[0] + h * d->mask_stride[1] + i * d->mask_stride[2] +
           key * d->mask_stride[3];
}

static double mask_bias(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j) {
    if (!(d->flags & QKV_SET_MASK) || d->mask_type != QKV_MASK_F32) return 0;
    return (double)((const float *)d->mask)[mask_index(d, b, h, i, j)];
}

static double alibi(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j) {
    if (!(d->flags & QKV_SET_ALIBI)) return 0;
    return (double)d->alibi_slopes[h] * (double)(j - position_of(d, b, i));
}

static double sink_of(const qkv_attention_desc *d, int64_t h) {
    return d->flags & QKV_SET_SINKS ? (double)d->sinks[h] : -INFINITY;
}

static int64_t queries_of(const qkv_attention_desc *d, int64_t b) {
    return d->flags & QKV_SET_Q_LEN ? d->q_len[b] : d->len_q;
}

int oracle_sees(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j) {
    const int64_t position = position_of(d, b, i);
    const bool in_prefix = d->flags & QKV_SET_PREFIX_LEN && j < d->prefix_len[b];
    if ((d->flags & QKV_SET_CAUSAL) && j > position && !in_prefix) return 0;
    if (d->flags & QKV_SET_CHUNK) {
        const double chunk = (double)d->chunk;
        if (floor((double)position / chunk) != floor((double)j / chunk)) return 0;
    }
    if (d->flags & QKV_SET_WINDOW) {
        if (d->window_left >= 0 && position - j > d->window_left) return 0;
        if (d->window_right >= 0 && j - position > d->window_right) return 0;
    }
    if ((d->flags & QKV_SET_KV_LEN) && j >= d->kv_len[b]) return 0;
    if (d->flags & QKV_SET_SEGMENTS &&
        d->seg_q[b * d->seg_q_stride + i] != d->seg_k[b * d->seg_k_stride + j])
        return 0;
    if (d->flags & QKV_SET_MASK) {
        if (d->mask_len_k > 1 && j >= d->mask_len_k) return 0;
        if (d->mask_type == QKV_MASK_BITS) {
            const int64_t row =
                b * d->mask_stride[0] + h * d->mask_stride[1] + i * d->mask_stride[2];
            const int64_t key = d->mask_len_k == 1 ? 0 : j;
            return ((const unsigned char *)d->mask)[row + key / 8] >> key % 8 & 1;
        }
        if (d->mask_type == QKV_MASK_BOOL)
            return ((const unsigned char *)d->mask)[mask_index(d, b, h, i, j)] != 0;
        return !(mask_bias(d, b, h, i, j) == -INFINITY);
    }
    return 1;
}

/* ---- One row of scores and weights ----------------------------------------------------------- */

typedef struct row {
    int *sees;
    double *s, *p, *t; /* score, weight, derivative of the soft cap */
    double lse;
    int64_t n_visible;
    double magnitude, bias, v_max; /* largest |scale| sum|q||k|, |bias|, |v| over visible keys */
} row;

static row row_new(const qkv_attention_desc *d) {
    return (row){ .sees = zeros(d->len_k, sizeof(int)),
                  .s = zeros(d->len_k, sizeof(double)),
                  .p = zeros(d->len_k, sizeof(double)),
                  .t = zeros(d->len_k, sizeof(double)) };
}

static void row_free(row *r) {
    free(r->sees);
    free(r->s);
    free(r->p);
    free(r->t);
}

static double largest(double a, double b) { return b > a ? b : a; }

/*
 * An f32 score that overflows is an infinity; in log2 units where there is neither soft cap nor
 * anything added.
 */
static double as_f32_range(const qkv_attention_desc *d, int64_t h, double s) {
    const bool additive = d->flags & QKV_SET_MASK && d->mask_type == QKV_MASK_F32;
    const bool alibi_too = d->flags & QKV_SET_ALIBI && d->alibi_slopes[h] != 0;
    const bool raw = !additive && !alibi_too && !(d->flags & QKV_SET_SOFTCAP);
    return fabs(s) > (raw ? FLT_MAX / 1.44269504 : FLT_MAX) ? copysign(INFINITY, s) : s;
}

static void row_score(const qkv_attention_desc *d, const oracle_inputs *in, int64_t b, int64_t h,
                      int64_t i, int64_t j, row *r) {
    const int64_t g = h / (d->n_heads / d->n_kv_heads);
    const float *q = at(in->q, d->q_stride, b, h, i), *k = at(in->k, d->k_stride, b, g, j);
    const float *v = at(in->v, d->v_stride, b, g, j);
    double s = 0, size = 0;
    for (int64_t c = 0; c < d->head_dim; c++) {
        s += (double)q[c] * (double)k[c];
        size += fabs((double)q[c] * (double)k[c]);
    }
    const double scale = scale_of(d);
    s = scale == 0 && isfinite(s) ? 0 : as_f32_range(d, h, scale * s);
    r->t[j] = 1;
    if (d->flags & QKV_SET_SOFTCAP) {
        const double cap = (double)d->softcap, tanh_s = tanh(s / cap);
        s = cap * tanh_s;
        r->t[j] = 1 - tanh_s * tanh_s;
    }
    const double mask = mask_bias(d, b, h, i, j), slope = alibi(d, b, h, i, j);
    r->s[j] = as_f32_range(d, h, s + (mask + slope));
    r->magnitude = largest(r->magnitude, fabs(scale) * size);
    r->bias = largest(r->bias, fabs(mask) + fabs(slope));
    for (int64_t c = 0; c < d->head_dim_v; c++) r->v_max = largest(r->v_max, fabs((double)v[c]));
}

static void row_run(const qkv_attention_desc *d, const oracle_inputs *in, int64_t b, int64_t h,
                    int64_t i, row *r) {
    const double sink = sink_of(d, h);
    double m = sink, sum = 0;
    int has_nan = isnan(sink);
    r->n_visible = 0;
    r->magnitude = r->bias = r->v_max = 0;
    for (int64_t j = 0; j < d->len_k; j++) {
        r->p[j] = r->s[j] = r->t[j] = 0;
        r->sees[j] = oracle_sees(d, b, h, i, j);
        if (!r->sees[j]) continue;
        r->n_visible++;
        row_score(d, in, b, h, i, j, r);
        has_nan |= isnan(r->s[j]);
        m = largest(m, r->s[j]);
    }
    if (r->n_visible == 0) {
        r->lse = sink;
        return;
    }
    if (isfinite(sink)) r->bias = largest(r->bias, fabs(sink));
    if (has_nan || isinf(m)) m = NAN; /* a visible NaN, a +inf, or nothing but -inf */
    for (int64_t j = 0; j < d->len_k; j++)
        if (r->sees[j]) sum += r->p[j] = exp(r->s[j] - m);
    sum += exp(sink - m);
    for (int64_t j = 0; j < d->len_k; j++) r->p[j] = r->sees[j] ? r->p[j] / sum : 0;
    r->lse = m + log(sum);
}

/* ---- Forward --------------------------------------------------------------------------------- */

static void weighted_values(const qkv_attention_desc *d, const float *v, const int64_t stride[3],
                            int64_t b, int64_t g, const row *r, double *o) {
    for (int64_t c = 0; c < d->head_dim_v; c++) o[c] = 0;
    for (int64_t j = 0; j < d->len_k; j++) {
        const float *x = at(v, stride, b, g, j);
        for (int64_t c = 0; r->sees[j] && c < d->head_dim_v; c++) o[c] += r->p[j] * (double)x[c];
    }
}

void oracle_forward_run(const qkv_attention_desc *d, const oracle_inputs *in, oracle_forward *out) {
    row r = row_new(d);
    for (int64_t b = 0; b < d->n_batch; b++)
        for (int64_t h = 0; h < d->n_heads; h++)
            for (int64_t i = 0; i < queries_of(d, b); i++) {
                const int64_t n = row_q(d, b, h, i);
                row_run(d, in, b, h, i, &r);
                weighted_values(d, in->v, d->v_stride, b, h / (d->n_heads / d->n_kv_heads), &r,
                                out->o + n * d->head_dim_v);
                out->lse[n] = r.lse;
                const double operands = 4 * sqrt((double)d->head_dim) * r.magnitude + 4 * r.bias;
                out->o_bound[n] =
                    EPSILON * (operands + 4 * sqrt((double)r.n_visible) + 16) * r.v_max +
                    UNDERFLOW_STEP * (double)(r.n_visible + 4);
                out->lse_bound[n] = EPSILON * (operands + 4 * (r.n_visible ? fabs(r.lse) : 0) + 16);
            }
    row_free(&r);
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* What weights below 2^-126, which count as 0, can take from a gradient. */
static void note_flushed(oracle_backward *out, double d_s, const float *x, int64_t n) {
    double most = 1;
    for (int64_t c = 0; c < n; c++) most = largest(most, fabs((double)x[c]));
    if (isfinite(d_s * most)) out->flushed += 0x1p-126 * fabs(d_s) * most;
}

/* The part of the gradients that goes through query i, once its weights are known. */
static void row_backward(const qkv_attention_desc *d, const oracle_inputs *in, int64_t b, int64_t h,
                         int64_t i, const row *r, const double *o, oracle_backward *out) {
    const int64_t g = h / (d->n_heads / d->n_kv_heads);
    const float *q = at(in->q, d->q_stride, b, h, i);
    const float *d_o = at(in->d_o, in->d_o_stride, b, h, i);
    double *d_q = out->d_q + row_q(d, b, h, i) * d->head_dim;
    double delta = in->d_lse ? -(double)*at(in->d_lse, d->lse_stride, b, h, i) : 0;
    for (int64_t c = 0; c < d->head_dim_v; c++) delta += (double)d_o[c] * o[c];
    if (!(sink_of(d, h) == -INFINITY)) {
        out->d_sinks[h] -= exp(sink_of(d, h) - r->lse) * delta;
        note_flushed(out, delta, NULL, 0);
    }
    for (int64_t j = 0; j < d->len_k; j++) {
        if (!r->sees[j]) continue;
        const float *k = at(in->k, d->k_stride, b, g, j), *v = at(in->v, d->v_stride, b, g, j);
        double *d_k = out->d_k + row_k(d, b, g, j) * d->head_dim;
        double *d_v = out->d_v + row_k(d, b, g, j) * d->head_dim_v;
        double d_p = 0;
        for (int64_t c = 0; c < d->head_dim_v; c++) {
            d_p += (double)d_o[c] * (double)v[c];
            d_v[c] += r->p[j] * (double)d_o[c];
        }
        const double slope = scale_of(d) * (d_p - delta) * r->t[j], ds = slope * r->p[j];
        if (r->p[j] < 0x1p-120) {
            note_flushed(out, slope, k, d->head_dim);
            note_flushed(out, slope, q, d->head_dim);
            note_flushed(out, 1, d_o, d->head_dim_v);
        }
        for (int64_t c = 0; c < d->head_dim; c++) {
            d_q[c] += ds * (double)k[c];
            d_k[c] += ds * (double)q[c];
        }
    }
}

void oracle_backward_run(const qkv_attention_desc *d, const oracle_inputs *in,
                         oracle_backward *out) {
    row r = row_new(d);
    double *o = zeros(d->head_dim_v, sizeof *o);
    for (int64_t b = 0; b < d->n_batch; b++)
        for (int64_t h = 0; h < d->n_heads; h++)
            for (int64_t i = 0; i < queries_of(d, b); i++) {
                row_run(d, in, b, h, i, &r);
                weighted_values(d, in->v, d->v_stride, b, h / (d->n_heads / d->n_kv_heads), &r, o);
                row_backward(d, in, b, h, i, &r, o, out);
            }
    free(o);
    row_free(&r);
}

/* ---- The same in f32 ------------------------------------------------------------------------- */

typedef struct textbook {
    bool backwards; /* sums over channels */
    int ulps;       /* by which lse and o are moved, o up and down in turn */
    float *d_q, *d_k, *d_v, *d_sinks;
} textbook;

static float moved(float x, int ulps) {
    for (; ulps > 0; ulps--) x = nextafterf(x, INFINITY);
    for (; ulps < 0; ulps++) x = nextafterf(x, -INFINITY);
    return x;
}

static float dot_f32(const textbook *t, const float *x, const float *y, int64_t n, int ulps) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = t->backwards ? n - 1 - i : i;
        sum += x[c] * moved(y[c], c % 2 ? ulps : -ulps);
    }
    return sum;
}

static float score_f32(const qkv_attention_desc *d, float s, float extra, float *t) {
    s *= (float)scale_of(d);
    *t = 1;
    if (d->flags & QKV_SET_SOFTCAP) {
        const float tanh_s = tanhf(s / d->softcap);
        s = d->softcap * tanh_s;
        *t = 1 - tanh_s * tanh_s;
    }
    return s + extra;
}

static void row_textbook(const qkv_attention_desc *d, const oracle_inputs *in, int64_t b, int64_t h,
                         int64_t i, const textbook *out) {
    const int64_t g = h / (d->n_heads / d->n_kv_heads);
    const float *q = at(in->q, d->q_stride, b, h, i), *o = at(in->o, d->o_stride, b, h, i);
    const float *d_o = at(in->d_o, in->d_o_stride, b, h, i);
    const float lse = moved(*at(in->lse, d->lse_stride, b, h, i), out->ulps);
    float *d_q = out->d_q + row_q(d, b, h, i) * d->head_dim;
    float delta = dot_f32(out, d_o, o, d->head_dim_v, out->ulps);
    if (in->d_lse) delta -= *at(in->d_lse, d->lse_stride, b, h, i);
    if (d->flags & QKV_SET_SINKS && !(d->sinks[h] == -INFINITY))
        out->d_sinks[h] -= expf(d->sinks[h] - lse) * delta;
    for (int64_t j = 0; j < d->len_k; j++) {
        if (!oracle_sees(d, b, h, i, j)) continue;
        const float *k = at(in->k, d->k_stride, b, g, j), *v = at(in->v, d->v_stride, b, g, j);
        float *d_k = out->d_k + row_k(d, b, g, j) * d->head_dim;
        float *d_v = out->d_v + row_k(d, b, g, j) * d->head_dim_v;
        float t;
        const float extra = (float)mask_bias(d, b, h, i, j) + (float)alibi(d, b, h, i, j);
        const float s = score_f32(d, dot_f32(out, q, k, d->head_dim, 0), extra, &t);
        const float p = expf(s - lse), d_p = dot_f32(out, d_o, v, d->head_dim_v, 0);
        const float ds = p * (d_p - delta) * t * (float)scale_of(d);
        for (int64_t c = 0; c < d->head_dim_v; c++) d_v[c] += p * d_o[c];
        for (int64_t c = 0; c < d->head_dim; c++) {
            d_q[c] += ds * k[c];
            d_k[c] += ds * q[c];
        }
    }
}

static void widen(const float *x, int64_t n, double *y) {
    for (int64_t c = 0; c < n; c++) y[c] = (double)x[c];
}

void oracle_textbook_f32(const qkv_attention_desc *d, const oracle_inputs *in, int which,
                         oracle_backward *out) {
    static const int ulps[ORACLE_TEXTBOOKS] = { 0, 0, 1, -1 };
    const int64_t n_q = rows_q(d) * d->head_dim, n_k = rows_k(d) * d->head_dim;
    const int64_t n_v = rows_k(d) * d->head_dim_v;
    const textbook t = { .backwards = which % 2,
                         .ulps = ulps[which],
                         .d_q = zeros(n_q, sizeof(float)),
                         .d_k = zeros(n_k, sizeof(float)),
                         .d_v = zeros(n_v, sizeof(float)),
                         .d_sinks = zeros(d->n_heads, sizeof(float)) };
    for (int64_t b = 0; b < d->n_batch; b++)
        for (int64_t h = 0; h < d->n_heads; h++)
            for (int64_t i = 0; i < queries_of(d, b); i++) row_textbook(d, in, b, h, i, &t);
    widen(t.d_q, n_q, out->d_q);
    widen(t.d_k, n_k, out->d_k);
    widen(t.d_v, n_v, out->d_v);
    widen(t.d_sinks, d->n_heads, out->d_sinks);
    free(t.d_sinks);
    free(t.d_q);
    free(t.d_k);
    free(t.d_v);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

oracle_forward oracle_forward_new(const qkv_attention_desc *d) {
    return (oracle_forward){ .o = zeros(rows_q(d) * d->head_dim_v, sizeof(double)),
                             .lse = zeros(rows_q(d), sizeof(double)),
                             .o_bound = zeros(rows_q(d), sizeof(double)),
                             .lse_bound = zeros(rows_q(d), sizeof(double)) };
}

void oracle_forward_free(oracle_forward *f) {
    free(f->o);
    free(f->lse);
    free(f->o_bound);
    free(f->lse_bound);
}

oracle_backward oracle_backward_new(const qkv_attention_desc *d) {
    return (oracle_backward){ .d_q = zeros(rows_q(d) * d->head_dim, sizeof(double)),
                              .d_k = zeros(rows_k(d) * d->head_dim, sizeof(double)),
                              .d_v = zeros(rows_k(d) * d->head_dim_v, sizeof(double)),
                              .d_sinks = zeros(d->n_heads, sizeof(double)) };
}

void oracle_backward_free(oracle_backward *g) {
    free(g->d_q);
    free(g->d_k);
    free(g->d_v);
    free(g->d_sinks);
}
