/* The calls of qkv/layers.h on rows: activations, layer norm, sums, dropout. */
#include <string.h>

#include "layer/act.h"
#include "layer/call.h"
#include "layer/dropout.h"
#include "layer/layernorm.h"
#include "layer/rows.h"
#include "qkv/layers.h"

/* ---- Activations ----------------------------------------------------------------------------- */

_Static_assert((int)QKV_ACTIVATION_GELU == (int)QKVI_GELU &&
                   (int)QKV_ACTIVATION_GELU_TANH == (int)QKVI_GELU_TANH &&
                   (int)QKV_ACTIVATION_RELU == (int)QKVI_RELU &&
                   (int)QKV_ACTIVATION_SILU == (int)QKVI_SILU &&
                   (int)QKV_ACTIVATION_QUICK_GELU == (int)QKVI_QUICK_GELU &&
                   (int)QKV_ACTIVATION_TANH == (int)QKVI_TANH,
               "the public numbers are ours");

static qkv_status check_activation(qkv_ctx *ctx, qkv_activation activation, int64_t n_rows,
                                   int64_t n) {
    if ((unsigned)activation >= QKVI_N_ACTS)
        return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "activation = %d is no qkv_activation",
                             (int)activation);
    return qkvi_call_rows(ctx, n_rows, n);
}

static qkv_status act_forward(qkv_ctx *ctx, qkv_activation activation, int64_t n_rows, int64_t n,
                              const float *x, float *y) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(check_activation(ctx, activation, n_rows, n));
    qkvi_call_input(&all, "x", x, n_rows, n)->twin = y;
    qkvi_call_output(&all, "y", y, n_rows, n);
    QKV_TRY(qkvi_call_arrays(ctx, &all));
    qkvi_act_forward(ctx, (qkvi_act)activation, n_rows, n, x, y);
    return QKV_OK;
}

qkv_status qkv_activation_forward(qkv_ctx *ctx, qkv_activation activation, int64_t n_rows,
                                  int64_t n, const float *x, float *y) {
    QKV_TRY(qkvi_ctx_begin(ctx));
    return qkvi_ctx_end(ctx, act_forward(ctx, activation, n_rows, n, x, y));
}

static qkv_status act_backward(qkv_ctx *ctx, qkv_activation activation, int64_t n_rows, int64_t n,
                               const float *x, const float *d_y, float *d_x) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(check_activation(ctx, activation, n_rows, n));
    qkvi_call_input(&all, "x", x, n_rows, n);
    qkvi_call_input(&all, "d_y", d_y, n_rows, n)->twin = d_x;
    qkvi_call_output(&all, "d_x", d_x, n_rows, n);
    QKV_TRY(qkvi_call_arrays(ctx, &all));
    qkvi_act_backward(ctx, (qkvi_act)activation, n_rows, n, x, d_y, d_x);
    return QKV_OK;
}

qkv_status qkv_activation_backward(qkv_ctx *ctx, qkv_activation activation, int64_t n_rows,
                                   int64_t n, const float *x, const float *d_y, float *d_x) {
    QKV_TRY(qkvi_ctx_begin(ctx));
    return qkvi_ctx_end(ctx, act_backward(ctx, activation, n_rows, n, x, d_y, d_x));
}

/* ---- Layer norm ------------------------------------------------------------------------------ */

static qkv_status norm_forward(qkv_ctx *ctx, const qkvi_layernorm *layer, int64_t n_rows, float eps,
                               const float *x, float *y, float *stats) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(qkvi_call_rows(ctx, n_rows, layer->n));
    QKV_TRY(qkvi_call_number(ctx, "eps", (double)eps));
    qkvi_call_input(&all, "x", x, n_rows, layer->n)->twin = y;
    qkvi_call_input(&all, "gamma", layer->gamma, 1, layer->n);
    qkvi_call_input(&all, "beta", layer->beta, 1, layer->n);
    qkvi_call_output(&all, "y", y, n_rows, layer->n);
    qkvi_call_output(&all, "stats", stats, n_rows, 2);
    QKV_TRY(qkvi_call_arrays(ctx, &all));
    /* without a residual x is only read */
    qkvi_layernorm_forward(ctx, layer, eps, n_rows, NULL, (float *)x, y, stats);
    return QKV_OK;
}

qkv_status qkv_layer_norm_forward(qkv_ctx *ctx, int64_t n_rows, int64_t n, float eps,
                                  const float *x, const float *gamma, const float *beta, float *y,
                                  float *stats) {
    const qkvi_layernorm layer = { n, (float *)gamma, (float *)beta,
                                   QKVI_LAYER_NORM }; /* only read */
    QKV_TRY(qkvi_ctx_begin(ctx));
    return qkvi_ctx_end(ctx, norm_forward(ctx, &layer, n_rows, eps, x, y, stats));
}

typedef struct norm_sums {
    int64_t n_elems;
    float *sums;
} norm_sums;

static void lay_out_sums(void *argument, qkvi_cutter *cutter) {
    norm_sums *const s = argument;
    s->sums = qkvi_cut(cutter, s->n_elems, sizeof *s->sums);
}

static qkv_status norm_backward(qkv_ctx *ctx, const qkvi_layernorm *layer, const qkvi_layernorm *d,
                                int64_t n_rows, const float *x, const float *stats,
                                const float *d_y, float *d_x) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(qkvi_call_rows(ctx, n_rows, layer->n));
    qkvi_call_input(&all, "x", x, n_rows, layer->n);
    qkvi_call_input(&all, "stats", stats, n_rows, 2);
    qkvi_call_input(&all, "gamma", layer->gamma, 1, layer->n);
    qkvi_call_input(&all, "d_y", d_y, n_rows, layer->n)->twin = d_x;
    qkvi_call_output(&all, "d_x", d_x, n_rows, layer->n);
    qkvi_call_output(&all, "d_gamma", d->gamma, 1, layer->n);
    qkvi_call_output(&all, "d_beta", d->beta, 1, layer->n);
    QKV_TRY(qkvi_call_arrays(ctx, &all));
    if (n_rows == 0) { /* sums of nothing; the arrays may be NULL */
        memset(d->gamma, 0, (size_t)layer->n * sizeof *d->gamma);
        memset(d->beta, 0, (size_t)layer->n * sizeof *d->beta);
        return QKV_OK;
    }
    norm_sums s = { .n_elems = 2 * qkvi_colsum_elems(n_rows, layer->n) };
    QKV_TRY(qkvi_call_memory(ctx, lay_out_sums, &s));
    qkvi_layernorm_backward(ctx, layer, d, n_rows, x, stats, d_y, d_x, s.sums);
    return QKV_OK;
}

qkv_status qkv_layer_norm_backward(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x,
                                   const float *stats, const float *gamma, const float *d_y,
                                   float *d_x, float *d_gamma, float *d_beta) {
    const qkvi_layernorm layer = { n, (float *)gamma, NULL, QKVI_LAYER_NORM },
                         d = { n, d_gamma, d_beta, QKVI_LAYER_NORM };
    QKV_TRY(qkvi_ctx_begin(ctx));
    return qkvi_ctx_end(ctx, norm_backward(ctx, &layer, &d, n_rows, x, stats, d_y, d_x));
}

/* ---- Sums and dropout ------------------------------------------------------------------------ */

static qkv_status add_rows(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x, float *y) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(qkvi_call_rows(ctx, n_rows, n));
    qkvi_call_input(&all, "x", x, n_rows, n);
    qkvi_call_output(&all, "y", y, n_rows, n);
    QKV_TRY(qkvi_call_arrays(ctx, &all));
    qkvi_rows_add(ctx, n_rows, n, x, y);
    return QKV_OK;
}

qkv_status qkv_rows_add(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x, float *y) {
    QKV_TRY(qkvi_ctx_begin(ctx));
    return qkvi_ctx_end(ctx, add_rows(ctx, n_rows, n, x, y));
}

static qkv_status drop(qkv_ctx *ctx, const qkvi_row_dropout *dropout, int64_t n_rows, int64_t n,
                       float *x) {
    qkvi_arrays all = { .count = 0 };
    QKV_TRY(qkvi_call_rows(ctx, n_rows, n));
    if (!(dropout->rate >= 0 && dropout->rate <= 1))
        return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "rate = %g is not in 0 ... 1",
                             (double)dropout->rate);
    qkvi_call_output(&all, "x", x, n_rows, n);
    QKV_TRY(qkvi_call_arrays(ctx, &all));
    qkvi_dropout_rows(ctx, dropout, n_rows, n, x);
    return QKV_OK;
}

qkv_status qkv_dropout(qkv_ctx *ctx, int64_t n_rows, int64_t n, float rate, uint64_t seed,
                       uint32_t site, float *x) {
    QKV_TRY(qkvi_ctx_begin(ctx));
    return qkvi_ctx_end(ctx, drop(ctx, &(qkvi_row_dropout){ rate, seed, site }, n_rows, n, x));
}
