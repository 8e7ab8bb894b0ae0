/*
 * The double oracle, forward and backward. Slow and plain on purpose; see oracle.h.
 */
#include "check/oracle.h"

#include <math.h>
#include <stdlib.h>

#include "check/elements.h"
#include "check/layout.h"
#include "check/oracle_row.h"
#include "check/rules.h"

static const double EPSILON = 0x1p-24;
static const double LEAST_NORMAL = 0x1p-126;
static const double UNDERFLOW_STEP = 0x1p-150; /* what rounding loses below the normal numbers */

int oracle_sees(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j) {
    return rule_sees(d, b, h, i, j);
}

/* ---- Forward --------------------------------------------------------------------------------- */

typedef struct forward_run {
    row r;
    bool whole; /* v is whole numbers, whose scale is put into the weight: that is rounded, too */
    oracle_forward *out;
} forward_run;

static bool drops(const qkv_attention_desc *d) {
    return d->flags & QKV_SET_DROPOUT && d->dropout < 1;
}

static bool rounds_weights(const qkv_attention_desc *d) {
    return d->arithmetic == QKV_CLASS_DP || d->arithmetic == QKV_CLASS_AMX;
}

bool oracle_rounds_gradients(const qkv_attention_desc *d) {
    return d->arithmetic == QKV_CLASS_DP && element_of_o(d) == ELEMENT_BF16;
}

/*
 * Most that n products lose in their sum below the normal numbers: half a unit in the last place
 * each, in classes dp and amx all there is, in class amx twice more for every 32 of the depth.
 */
static double lost_in(const qkv_attention_desc *d, int64_t n, int64_t depth) {
    if (!rounds_weights(d)) return UNDERFLOW_STEP * (double)n;
    if (d->arithmetic == QKV_CLASS_AMX) n += 2 * ((depth + 31) / 32);
    return LEAST_NORMAL * (double)n;
}

/*
 * Classes dp and amx: each weight is rounded by at most 2^-8 of itself, which moves their mean by
 * at most as much of the greatest value; with dropout the sum that is divided by moves on its own.
 */
static double rounded_weights(const qkv_attention_desc *d, double v_max) {
    return rounds_weights(d) ? (drops(d) ? 0x1p-7 : 0x1p-8) * v_max : 0;
}

/* Subnormal operands of classes dp and amx are zeros. */
static void flush_array(const qkv_attention_desc *d, char which, double *x) {
    int64_t size[4];
    layout_shape(d, which, size);
    for (int64_t n = 0; n < size[0] * size[1] * size[2] * size[3]; n++)
        if (fabs(x[n]) < LEAST_NORMAL) x[n] = 0;
}

static void flush(const qkv_attention_desc *d, operands *x) {
    flush_array(d, 'q', x->q);
    flush_array(d, 'k', x->k);
    flush_array(d, 'v', x->v);
}

static void forward_row(const qkv_attention_desc *d, const operands *x, int64_t b, int64_t h,
                        int64_t i, void *argument) {
    forward_run *const run = argument;
    const row *const r = &run->r;
    oracle_forward *const out = run->out;
    const int64_t n = oracle_row_q(d, b, h, i);
    row_run(d, x, b, h, i, &run->r);
    row_values(d, x, b, h, r, out->o + n * d->head_dim_v);
    out->lse[n] = r->lse;
    const double products = 4 * sqrt((double)d->head_dim) * r->magnitude + 4 * r->bias;
    const double lost = lost_in(d, d->head_dim, d->head_dim) * fabs(rule_scale(d));
    const double kept = drops(d) ? 1 - (double)d->dropout : 1;
    out->o_bound[n] =
        (EPSILON * (products + 4 * sqrt((double)r->n_visible) + 16) + 2 * lost) * r->v_max +
        rounded_weights(d, r->v_max) + lost_in(d, r->n_visible + 4, d->len_k) / kept;
    out->lse_bound[n] = EPSILON * (products + 4 * (r->n_visible ? fabs(r->lse) : 0) + 16) + lost;
    if (run->whole) out->o_bound[n] += 128 * UNDERFLOW_STEP * (double)r->n_visible;
    out->has_bound[n] = r->in_range;
}

void oracle_forward_run(const qkv_attention_desc *d, const oracle_inputs *in, oracle_forward *out) {
    operands x = operands_new(d, in);
    forward_run run = { row_new(d), in->whole, out };
    if (rounds_weights(d)) flush(d, &x);
    for_each_row(d, &x, forward_row, &run);
    row_free(&run.r);
    operands_free(&x);
}

/* ---- Backward -------------------------------------------------------------------------------- */

typedef struct backward_run {
    row r;
    double *o;
    oracle_backward *out;
} backward_run;

/* What weights below 2^-126, which count as 0, can take from a gradient. */
static void note_flushed(oracle_backward *out, double d_s, const double *x, int64_t n) {
    double most = 1;
    for (int64_t c = 0; c < n; c++) most = fabs(x[c]) > most ? fabs(x[c]) : most;
    if (isfinite(d_s * most)) out->flushed += 0x1p-126 * fabs(d_s) * most;
}

/* What goes through query i and key j. */
static void backward_pair(const qkv_attention_desc *d, const operands *x, int64_t b, int64_t h,
                          int64_t i, int64_t j, double delta, const backward_run *run) {
    const int64_t at_q = oracle_row_q(d, b, h, i), at_k = oracle_row_k(d, b, h, j);
    const double *const q = x->q + at_q * d->head_dim, *const d_o = x->d_o + at_q * d->head_dim_v;
    const double *const k = x->k + at_k * d->head_dim, *const v = x->v + at_k * d->head_dim_v;
    oracle_backward *const out = run->out;
    double *const d_k = out->d_k + at_k * d->head_dim, *const d_v = out->d_v + at_k * d->head_dim_v;
    double *const d_q = out->d_q + at_q * d->head_dim;
    const double p = run->r.p[j], keep = run->r.keep[j];
    double d_p = 0;
    for (int64_t c = 0; c < d->head_dim_v; c++) {
        d_p += keep > 0 ? d_o[c] * v[c] * keep : 0;
        d_v[c] += keep > 0 ? p * keep * d_o[c] : 0;
    }
    const double slope = (d_p - delta) * run->r.t[j], ds = rule_scale(d) * slope * p;
    if (out->d_mask) out->d_mask[at_q * d->len_k + j] = (d_p - delta) * p;
    if (p < 0x1p-120) {
        note_flushed(out, rule_scale(d) * slope, k, d->head_dim);
        note_flushed(out, rule_scale(d) * slope, q, d->head_dim);
        note_flushed(out, keep, d_o, d->head_dim_v);
        if (out->d_mask) note_flushed(out, d_p - delta, NULL, 0);
    }
    for (int64_t c = 0; c < d->head_dim; c++) {
        d_q[c] += ds * k[c];
        d_k[c] += ds * q[c];
    }
}

static void backward_row(const qkv_attention_desc *d, const operands *x, int64_t b, int64_t h,
                         int64_t i, void *argument) {
    backward_run *const run = argument;
    const int64_t n = oracle_row_q(d, b, h, i);
    row_run(d, x, b, h, i, &run->r);
    row_values(d, x, b, h, &run->r, run->o);
    double delta = x->d_lse ? -x->d_lse[n] : 0;
    for (int64_t c = 0; c < d->head_dim_v; c++) delta += x->d_o[n * d->head_dim_v + c] * run->o[c];
    if (!(rule_sink(d, h) == -INFINITY)) {
        run->out->d_sinks[h] -= exp(rule_sink(d, h) - run->r.lse) * delta;
        note_flushed(run->out, delta, NULL, 0);
    }
    for (int64_t j = 0; j < d->len_k; j++)
        if (run->r.sees[j]) backward_pair(d, x, b, h, i, j, delta, run);
}

/*
 * Class dp: each step of a chain may lose a sum below the normal numbers, and each factor may be
 * lost.
 */
static double lost_in_gradients(const qkv_attention_desc *d) {
    const double heads = d->n_kv_heads ? (double)d->n_heads / (double)d->n_kv_heads : 0;
    const double steps = heads * (double)d->len_q + (double)d->len_k;
    return LEAST_NORMAL * (2 * steps + (double)(d->head_dim + d->head_dim_v)) *
           fmax(1, fabs(rule_scale(d))) / (drops(d) ? 1 - (double)d->dropout : 1);
}

void oracle_backward_run(const qkv_attention_desc *d, const oracle_inputs *in,
                         oracle_backward *out) {
    operands x = operands_new(d, in);
    if (oracle_rounds_gradients(d)) {
        flush(d, &x);
        flush_array(d, 'o', x.d_o);
    }
    backward_run run = { row_new(d), oracle_zeros(d->head_dim_v, sizeof(double)), out };
    for_each_row(d, &x, backward_row, &run);
    if (oracle_rounds_gradients(d)) out->flushed += lost_in_gradients(d);
    free(run.o);
    row_free(&run.r);
    operands_free(&x);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static double *of_size(int64_t a, int64_t b, int64_t c, int64_t dim) {
    return oracle_zeros(a * b * c * dim, sizeof(double));
}

oracle_forward oracle_forward_new(const qkv_attention_desc *d) {
    return (oracle_forward){ .o = of_size(d->n_batch, d->n_heads, d->len_q, d->head_dim_v),
                             .lse = of_size(d->n_batch, d->n_heads, d->len_q, 1),
                             .o_bound = of_size(d->n_batch, d->n_heads, d->len_q, 1),
                             .lse_bound = of_size(d->n_batch, d->n_heads, d->len_q, 1),
                             .has_bound =
                                 oracle_zeros(d->n_batch * d->n_heads * d->len_q, sizeof(bool)) };
}

void oracle_forward_free(oracle_forward *f) {
    free(f->o);
    free(f->lse);
    free(f->o_bound);
    free(f->lse_bound);
    free(f->has_bound);
}

oracle_backward oracle_backward_new(const qkv_attention_desc *d) {
    return (oracle_backward){
        .d_q = of_size(d->n_batch, d->n_heads, d->len_q, d->head_dim),
        .d_k = of_size(d->n_batch, d->n_kv_heads, d->len_k, d->head_dim),
        .d_v = of_size(d->n_batch, d->n_kv_heads, d->len_k, d->head_dim_v),
        .d_sinks = of_size(1, 1, 1, d->n_heads),
        .d_mask = rule_adds(d) || d->flags & QKV_SET_DISTANCE_BIAS
                      ? of_size(d->n_batch, d->n_heads, d->len_q, d->len_k)
                      : NULL,
    };
}

void oracle_backward_free(oracle_backward *g) {
    free(g->d_q);
    free(g->d_k);
    free(g->d_v);
    free(g->d_sinks);
    free(g->d_mask);
    free(g->d_mask_sum);
    free(g->d_distance);
}
