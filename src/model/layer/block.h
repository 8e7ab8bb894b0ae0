/*
 * One encoder block in post-norm form (Vaswani et al. 2017, section 3.1):
 *
 *     y1 = norm1(x + mha(x))
 *     y2 = norm2(y1 + gelu(y1 Wuᵀ + bu) Wdᵀ + bd)
 *
 * All but attention works row by row. The last block of a model that is trained is wanted for a few
 * rows only (masked words, first tokens): it may be told to pick them once attention is done, which
 * saves most of its products.
 */
#ifndef QKVI_LAYER_BLOCK_H
#define QKVI_LAYER_BLOCK_H

#include "core/arena.h"
#include "model/layer/layernorm.h"
#include "model/layer/mha.h"

typedef struct qkvi_block {
    qkvi_mha mha;
    qkvi_layernorm norm1;
    qkvi_linear up, down; /* hidden → intermediate → hidden */
    qkvi_layernorm norm2;
    float eps;
} qkvi_block;

/* Rows that are wanted, any of them any number of times, in an order that everything after has. */
typedef struct qkvi_pick {
    int64_t n;
    int32_t *rows;
    float *o,
        *x; /* [n][hidden] of attention's output and of the block's input; x is used up backward */
    float *d; /* [n][hidden] gradient of y2 */
} qkvi_pick;

/*
 * What the forward pass computes, for n rows: all, or those picked. To run only, s1 and y1 may be
 * the same array, likewise u and g, s2 and y2; the backward pass needs all of them.
 */
typedef struct qkvi_block_acts {
    qkvi_mha_acts mha;
    float *s1, *y1;         /* [n][hidden]        x + mha(x), and its norm */
    float *u, *g;           /* [n][intermediate]  before and after gelu */
    float *s2, *y2;         /* [n][hidden]        y1 + the feed-forward part, and its norm */
    float *stats1, *stats2; /* [n][2]             of the norms */
} qkvi_block_acts;

typedef struct qkvi_block_scratch {
    qkvi_mha_scratch mha; /* its packed and sums are large enough for the whole block */
    float *d_g;           /* [n_rows][intermediate] */
} qkvi_block_scratch;

/* Cuts the scratch of a block's backward pass for at most n_rows rows, all or picked. */
void qkvi_block_scratch_cut(const qkvi_block *layer, int64_t n_rows, qkvi_cutter *cutter,
                            qkvi_block_scratch *scratch);

/*
 * acts->y2 from x [n_rows][hidden], for picked rows if pick is not NULL. Fails only if attention
 * does.
 */
qkv_status qkvi_block_forward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_groups *groups,
                              const qkvi_pick *pick, const float *x, qkvi_block_acts *acts);

/*
 * d [n_rows][hidden] comes in as the gradient of y2 and goes out as that of x. With a pick, the
 * gradient of y2 comes in pick->d instead, which is used up.
 */
qkv_status qkvi_block_backward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_block *grads,
                               const qkvi_groups *groups, const qkvi_pick *pick, const float *x,
                               const qkvi_block_acts *acts, float *d,
                               const qkvi_block_scratch *scratch);

#endif
