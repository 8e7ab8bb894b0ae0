/*
 * Layer normalization over blocks of rows: see layernorm.h; the arithmetic is in
 * kernels/tmpl/layer.h.
 */
#include "layer/layernorm.h"

#include <string.h>

#include "attn/ctx.h"
#include "kernels/table.h"
#include "layer/rows.h"

typedef struct forward_job {
    const qkvi_layernorm *layer;
    float eps;
    const float *residual;
    float *s, *y, *stats;
} forward_job;

static void scale_forward(const qkvi_layernorm *layer, int64_t n_rows, const float *s, float *y) {
    for (int64_t i = 0; i < n_rows; i++)
        for (int64_t c = 0; c < layer->n; c++)
            y[i * layer->n + c] = s[i * layer->n + c] * layer->gamma[c];
}

/* d_gamma is added to, in the order of rows. d_s may be d_y. */
static void scale_backward(const qkvi_layernorm *layer, int64_t n_rows, const float *s,
                           const float *d_y, float *d_s, float *d_gamma) {
    for (int64_t i = 0; i < n_rows; i++)
        for (int64_t c = 0; c < layer->n; c++) {
            const int64_t at = i * layer->n + c;
            d_gamma[c] += d_y[at] * s[at];
            d_s[at] = d_y[at] * layer->gamma[c];
        }
}

static void forward_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const forward_job *j = argument;
    const int64_t n = j->layer->n, at = rows.first * n;
    const float *residual = j->residual ? j->residual + at : NULL;
    const qkvi_layer_kernels *const kernels = ctx->kernels->layer;
    if (residual && j->layer->kind != QKVI_LAYER_NORM)
        kernels->add(rows.count * n, residual, j->s + at);
    if (j->layer->kind == QKVI_LAYER_SCALE) {
        scale_forward(j->layer, rows.count, j->s + at, j->y + at);
        return;
    }
    if (j->layer->kind != QKVI_LAYER_NORM) {
        kernels->rms_forward(rows.count, n, j->layer->kind == QKVI_RMS_NORM_FROM_ONE,
                             j->layer->gamma, j->eps, j->s + at, j->y + at,
                             j->stats ? j->stats + 2 * rows.first : NULL);
        return;
    }
    kernels->norm_forward(rows.count, n, residual, j->layer->gamma, j->layer->beta, j->eps,
                          j->s + at, j->y + at, j->stats + 2 * rows.first);
}

void qkvi_layernorm_forward(qkv_ctx *ctx, const qkvi_layernorm *layer, float eps, int64_t n_rows,
                            const float *residual, float *s, float *y, float *stats) {
    forward_job j = { layer, eps, residual, s, y, stats };
    qkvi_rows_run(ctx, n_rows, forward_block, &j);
}

typedef struct backward_job {
    const qkvi_layernorm *layer;
    const float *s, *stats, *d_y;
    float *d_s;
    float *d_gamma, *d_beta; /* [n_blocks][n] */
} backward_job;

static void backward_block(qkv_ctx *ctx, void *argument, qkvi_rows rows) {
    const backward_job *j = argument;
    const int64_t n = j->layer->n, at = rows.first * n;
    float *d_gamma = j->d_gamma + rows.block * n, *d_beta = j->d_beta + rows.block * n;
    memset(d_gamma, 0, (size_t)n * sizeof *d_gamma);
    memset(d_beta, 0, (size_t)n * sizeof *d_beta);
    if (j->layer->kind == QKVI_LAYER_SCALE) {
        scale_backward(j->layer, rows.count, j->s + at, j->d_y + at, j->d_s + at, d_gamma);
        return;
    }
    const qkvi_layer_kernels *const kernels = ctx->kernels->layer;
    const float *const stats = j->stats + 2 * rows.first;
    if (j->layer->kind == QKVI_LAYER_NORM)
        kernels->norm_backward(rows.count, n, j->s + at, stats, j->layer->gamma, j->d_y + at,
                               j->d_s + at, d_gamma, d_beta);
    else
        kernels->rms_backward(rows.count, n, j->layer->kind == QKVI_RMS_NORM_FROM_ONE, j->s + at,
                              stats, j->layer->gamma, j->d_y + at, j->d_s + at, d_gamma);
}

void qkvi_layernorm_backward(qkv_ctx *ctx, const qkvi_layernorm *layer, const qkvi_layernorm *d,
                             int64_t n_rows, const float *s, const float *stats, const float *d_y,
                             float *d_s, float *scratch) {
    const int64_t n = layer->n, n_blocks = qkvi_row_blocks(n_rows);
    backward_job j = { layer, s, stats, d_y, d_s, scratch, scratch + n_blocks * n };
    qkvi_rows_run(ctx, n_rows, backward_block, &j);
    qkvi_colsum_join(ctx, n_blocks, n, j.d_gamma, d->gamma);
    if (d->beta) qkvi_colsum_join(ctx, n_blocks, n, j.d_beta, d->beta);
}
