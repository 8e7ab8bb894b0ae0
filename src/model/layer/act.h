/*
 * Activations, elementwise over [n_rows][n]: GELU in its exact form (Hendrycks and Gimpel 2016) and
 * tanh.
 *
 *     gelu(x) = x Φ(x) = x/2 (1 + erf(x / √2))      gelu'(x) = Φ(x) + x φ(x)
 *     tanh'(x) = 1 - tanh²(x)
 */
#ifndef QKVI_LAYER_ACT_H
#define QKVI_LAYER_ACT_H

#include "qkv/qkv.h"

/* y may be x. */
void qkvi_gelu_forward(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x, float *y);
/* d_x may be d_y. */
void qkvi_gelu_backward(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x, const float *d_y,
                        float *d_x);

void qkvi_tanh_forward(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x, float *y);
void qkvi_tanh_backward(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *y, const float *d_y,
                        float *d_x);

#endif
