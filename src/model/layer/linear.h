/*
 * Linear layer: y = x Wᵀ + b on the packed matrix kernel.
 *
 *     x [n_rows][n_in]   W [n_out][n_in]   b [n_out]   y [n_rows][n_out]
 *
 * The matrix kernel wants its right factor in panels. A layer that is trained therefore keeps W in up
 * to two packed forms beside it, which are stale until qkvi_linear_pack has seen the weights: `forward`
 * is Wᵀ, for y; `backward` is W, for d_x. A layer that only runs has no `weight`: its parameters are the
 * panels themselves, `forward` or, in bf16, `half`.
 */
#ifndef QKVI_LAYER_LINEAR_H
#define QKVI_LAYER_LINEAR_H

#include <stdbool.h>

#include "kernels/gemm_bf16.h"
#include "model/layer/weights.h"
#include "qkv/qkv.h"

/* How layers with weights in bf16 compute. */
typedef struct qkvi_half_mode {
    qkvi_bf16_class class;
    bool has_amx;
} qkvi_half_mode;

typedef struct qkvi_linear {
    int64_t n_in, n_out;
    float *weight;   /* [n_out][n_in]; NULL: a layer that only runs */
    float *bias;     /* [n_out]; NULL: none, or a gradient that nobody wants */
    float *forward;  /* panels of Wᵀ, n_in x n_out; NULL in a struct of gradients */
    uint32_t *half;  /* the same in bf16 instead (kernels/gemm_bf16.h): x is rounded to it, too */
    float *backward; /* panels of W, n_out x n_in; NULL unless the layer is trained */
    qkvi_half_mode half_mode;
} qkvi_linear;

/* W, in whatever form the layer has it. */
static inline qkvi_weights qkvi_linear_weights(const qkvi_linear *layer) {
    return (qkvi_weights){ layer->n_in, layer->weight, layer->forward, layer->half };
}

/* Fills those packed forms that are not NULL, of a layer with weight. ctx may be NULL: one thread. */
void qkvi_linear_pack(qkv_ctx *ctx, const qkvi_linear *layer);

/* Panels of x [n_rows][n], n_rows x n, in parallel; qkvi_gemm_packed_elems(n_rows, n) floats. */
void qkvi_pack_rows(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x, float *packed);

/* y = x Wᵀ + b */
void qkvi_linear_forward(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows, const float *x,
                         float *y);

/* The same, and then g = act(y); g may be y. */
void qkvi_linear_act_forward(qkv_ctx *ctx, const qkvi_linear *layer, qkvi_act act, int64_t n_rows,
                             const float *x, float *y, float *g);

/* d_x = d_y W, or d_x += d_y W. */
void qkvi_linear_backward_input(qkv_ctx *ctx, const qkvi_linear *layer, int64_t n_rows,
                                const float *d_y, float *d_x, bool accumulate);

/*
 * d->weight = d_yᵀ x and d->bias, if there is one, = the column sums of d_y. x comes as the panels of qkvi_pack_rows,
 * because several layers may read the same x; scratch holds qkvi_colsum_elems(n_rows, n_out)
 * floats.
 */
void qkvi_linear_backward_params(qkv_ctx *ctx, const qkvi_linear *d, int64_t n_rows,
                                 const float *d_y, const float *x_packed, float *scratch);

#endif
