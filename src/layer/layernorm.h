/*
 * Layer normalization of rows (Ba, Kiros and Hinton 2016), with the residual sum that precedes it
 * in a post-norm block.
 *
 *     s = x + r (or x)      mu = mean(s)      rstd = 1 / sqrt(mean((s - mu)²) + eps)
 *     y = (s - mu) rstd gamma + beta
 *
 * or RMSNorm (Zhang and Sennrich 2019), without mean and beta:
 *
 *     rstd = 1 / sqrt(mean(s²) + eps)      y = s rstd gamma, or s rstd (1 + gamma)
 *
 * or LayerScale (Touvron et al. 2021), which stands where others have a norm: y = s gamma.
 */
#ifndef QKVI_LAYER_LAYERNORM_H
#define QKVI_LAYER_LAYERNORM_H

#include "qkv/qkv.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

typedef enum qkvi_norm_kind {
    QKVI_LAYER_NORM,
    QKVI_RMS_NORM,          /* s rstd gamma */
    QKVI_RMS_NORM_FROM_ONE, /* s rstd (1 + gamma) */
    QKVI_LAYER_SCALE        /* s gamma; its stats are not written */
} qkvi_norm_kind;

typedef struct qkvi_layernorm {
    int64_t n;
    float *gamma, *beta; /* [n]; beta NULL: 0 */
    qkvi_norm_kind kind;
} qkvi_layernorm;

/*
 * s += residual (nullable), then y = norm(s). stats [n_rows][2] receives mu (RMSNorm: 0) and rstd;
 * with RMSNorm it may be NULL. y may be s if no backward pass follows.
 */
void qkvi_layernorm_forward(qkv_ctx *ctx, const qkvi_layernorm *layer, float eps, int64_t n_rows,
                            const float *residual, float *s, float *y, float *stats);

/*
 * Computes d_s from d_y (d_s may be d_y), and stores d->gamma and, unless it is NULL, d->beta.
 * scratch has 2 qkvi_colsum_elems(n_rows, n) floats.
 */
void qkvi_layernorm_backward(qkv_ctx *ctx, const qkvi_layernorm *layer, const qkvi_layernorm *d,
                             int64_t n_rows, const float *s, const float *stats, const float *d_y,
                             float *d_s, float *scratch);

#pragma GCC visibility pop

#endif
