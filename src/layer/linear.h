/*
 * Linear layer: y = x Wᵀ + b on the packed matrix kernels, and its gradients
 *
 *     d_x = d_y W      d_W = d_yᵀ x      d_b = the column sums of d_y
 *
 *     x [n_rows][n_in]   W [n_out][n_in]   b [n_out]   y [n_rows][n_out]
 *
 * The matrix kernel needs its right factor in panels. A layer that is trained has, besides W, up to
 * two packed copies, which qkvi_linear_pack makes after each change of W: `forward` is Wᵀ, for y;
 * `backward` is W, for d_x. A layer that only runs has no `weight`: its parameters are the panels.
 *
 * A layer that computes in bf16 has `half` and `half_backward` instead: both factors of each of the
 * three products are rounded to bf16, to nearest even, and sums are f32, in the order of the class;
 * biases, gradients and weights that are trained are f32.
 */
#ifndef QKVI_LAYER_LINEAR_H
#define QKVI_LAYER_LINEAR_H

#include <stdbool.h>

#include "kernels/gemm_bf16.h"
#include "layer/weights.h"
#include "qkv/qkv.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

typedef struct qkvi_linear {
    int64_t n_in, n_out;
    float *weight;   /* [n_out][n_in]; NULL: a layer that only runs */
    float *bias;     /* [n_out]; NULL: none, or a gradient that is not wanted */
    float *forward;  /* panels of Wᵀ, n_in x n_out; NULL in a struct of gradients */
    float *backward; /* panels of W, n_out x n_in; NULL unless the layer is trained */
    uint32_t *half, *half_backward; /* instead: both in bf16, kernels/gemm_bf16.h */
    qkv_class half_class;           /* the class that computes with half */
    qkvi_int8_panel *int8; /* instead: panels of Wᵀ in int8, kernels/gemm_int8.h; only runs */
    uint8_t *blocks;       /* instead: rows of W in blocks, kernels/blocks.h; only runs */
    const qkvi_block_format *format; /* of blocks */
} qkvi_linear;

/* Zeros the gradients that a layer has. */
static inline void qkvi_linear_zero(const qkvi_linear *d) {
    if (d->weight) memset(d->weight, 0, (size_t)(d->n_in * d->n_out) * sizeof *d->weight);
    if (d->bias) memset(d->bias, 0, (size_t)d->n_out * sizeof *d->bias);
}

/* W, in the form that the layer has. */
static inline qkvi_weights qkvi_linear_weights(const qkvi_linear *layer) {
    return (qkvi_weights){ layer->n_in, layer->weight, layer->forward, layer->half,
                           layer->int8, layer->blocks, layer->format };
}

/*
 * Packs the weight into those forms that are not NULL. ctx may be NULL: one thread.
 */
void qkvi_linear_pack(qkv_ctx *ctx, const qkvi_linear *layer);

/*
 * The most floats that panels of x [n_rows][n] take, in any class; INT64_MAX: too many.
 */
int64_t qkvi_rows_packed_elems(int64_t n_rows, int64_t n);

/*
 * Packs x [n_rows][n_in] into panels, for the gradients of this layer and of others with the same
 * n_in and class.
 */
void qkvi_pack_rows(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows, const float *x,
                    float *packed);

/* y = x Wᵀ + b */
void qkvi_linear_forward(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows, const float *x,
                         float *y);

/* y = x Wᵀ + b, and g = act(y); g may be y. */
void qkvi_linear_act_forward(qkv_ctx *ctx, const qkvi_linear *layer, qkvi_act act, int64_t n_rows,
                             const float *x, float *y, float *g);

/*
 * y[l] = x W[l]ᵀ + b[l] of layers with the same n_in, whose weights are all in bf16, all in int8,
 * or each in f32 or in blocks. In bf16 and int8, x is rounded only once. half, nullable, only for
 * layers in bf16: half[l] [n_rows][n_out] receives y[l] rounded to bf16, and y[l] is scratch.
 */
void qkvi_linears_forward(qkv_ctx *ctx, int n_layers, const qkvi_linear *const *layers,
                          int64_t n_rows, const float *x, float *const *y, uint16_t *const *half);

/*
 * u = x Wuᵀ + bu, g = act(u), y = g Wdᵀ + bd in one call. If g is u, it is scratch: with weights in
 * bf16, g is then stored only in the form that the second layer reads.
 */
void qkvi_linear_pair_forward(qkv_ctx *ctx, const qkvi_linear *up, qkvi_act act,
                              const qkvi_linear *down, int64_t n_rows, const float *x, float *u,
                              float *g, float *y);

/* d_x = d_y W */
void qkvi_linear_backward_input(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows,
                                const float *d_y, float *d_x);

/*
 * d_x += d_y W. product: scratch [n_rows][n_in] for a layer in bf16, where d_y W is complete before
 * it is added; other layers do not use it.
 */
void qkvi_linear_backward_input_add(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows,
                                    const float *d_y, float *d_x, float *product);

/*
 * d->weight = d_yᵀ x; d->bias, unless it is NULL, = the column sums of d_y. x_packed are the panels
 * of qkvi_pack_rows, which several layers may read; scratch has qkvi_colsum_elems(n_rows, n_out)
 * floats.
 */
void qkvi_linear_backward_params(qkv_ctx *ctx, const qkvi_linear *layer, const qkvi_linear *d,
                                 int64_t n_rows, const float *d_y, const float *x_packed,
                                 float *scratch);

#pragma GCC visibility pop

#endif
