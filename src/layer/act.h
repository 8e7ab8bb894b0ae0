/*
 * Activations, elementwise over [n_rows][n]: GELU in its exact form and in its tanh form (Hendrycks
 * and Gimpel 2016), ReLU, SiLU (Elfwing, Uchibe and Doya 2018), and tanh.
 *
 *     gelu(x) = x Φ(x) = x/2 (1 + erf(x / √2))      gelu'(x) = Φ(x) + x φ(x)
 *     tanh form: x σ(z), z = 2√(2/π) (x + 0.044715 x³), σ(z) = 1 / (1 + exp(-z))
 *     silu(x) = x σ(x)                              (x σ(z))' = σ + x σ (1 - σ) z'
 *     relu(x) = max(0, x)                           relu'(x) = [x > 0]
 *     tanh'(x) = 1 - tanh²(x)
 *
 * Errors are in docs/numerics.md. NaN stays NaN. -∞ becomes NaN, as in PyTorch, except with ReLU
 * and tanh.
 */
#ifndef QKVI_LAYER_ACT_H
#define QKVI_LAYER_ACT_H

#include "kernels/layer.h"
#include "qkv/qkv.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/* y may be x. */
void qkvi_act_forward(qkv_ctx *ctx, qkvi_act act, int64_t n_rows, int64_t n, const float *x,
                      float *y);
/* d_x may be d_y. */
void qkvi_act_backward(qkv_ctx *ctx, qkvi_act act, int64_t n_rows, int64_t n, const float *x,
                       const float *d_y, float *d_x);

/*
 * Gated (Shazeer 2020): y = act(x) ⊙ u; y may be x. Backward: d is the gradient of y and becomes
 * that of u; d_x receives that of x; u is overwritten.
 */
void qkvi_gated_forward(qkv_ctx *ctx, qkvi_act act, int64_t n_rows, int64_t n, const float *x,
                        const float *u, float *y);
void qkvi_gated_backward(qkv_ctx *ctx, qkvi_act act, int64_t n_rows, int64_t n, const float *x,
                         float *u, float *d, float *d_x);

/*
 * Forward: logits become cap tanh(logits / cap). Backward: d is the gradient of the capped logits
 * and becomes that of the logits before; logits are the capped ones.
 */
void qkvi_soft_cap_forward(qkv_ctx *ctx, float cap, int64_t n_rows, int64_t n, float *logits);
void qkvi_soft_cap_backward(qkv_ctx *ctx, float cap, int64_t n_rows, int64_t n, const float *logits,
                            float *d);

void qkvi_tanh_forward(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x, float *y);
void qkvi_tanh_backward(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *y, const float *d_y,
                        float *d_x);

#pragma GCC visibility pop

#endif
