/*
 * One block of a transformer: self-attention, in a decoder attention over the encoder, feed-forward;
 * each a residual part with its layer norm. With f one of the three and x its input,
 *
 *     post-norm    y = norm(x + f(x))        Vaswani et al. 2017: BERT, BART, Marian
 *     pre-norm     y = x + f(norm(x))        Xiong et al. 2020: GPT-2
 *
 *     feed-forward    f(z) = act(z Wuᵀ + bu) Wdᵀ + bd
 *
 * In training f's result goes through dropout before the sum, and so do the weights of attention.
 *
 * The last block of an encoder may compute its rows only where heads will read them: qkvi_pick. Its
 * attention still has queries for every row; what follows attention has not.
 */
#ifndef QKVI_LAYER_BLOCK_H
#define QKVI_LAYER_BLOCK_H

#include "core/arena.h"
#include "layer/act.h"
#include "layer/layernorm.h"
#include "model/layer/mha.h"

typedef struct qkvi_block {
    qkvi_mha mha;
    qkvi_layernorm norm1;
    qkvi_mha cross; /* n_heads 0: none */
    qkvi_layernorm norm_cross;
    qkvi_linear up, down; /* hidden → intermediate → hidden */
    qkvi_layernorm norm2;
    qkvi_act act;
    bool pre_norm;
    float eps;
} qkvi_block;

static inline bool qkvi_block_crosses(const qkvi_block *layer) { return layer->cross.n_heads > 0; }

/* Sites of dropout: weights and result of both attentions, the feed-forward part. */
enum { QKVI_BLOCK_SITES = 5 };

/*
 * Attention over keys that somebody keeps, instead of that over the batch: computes acts->o for the
 * rows x of a block's layer.
 */
typedef struct qkvi_kept {
    qkv_status (*attend)(qkv_ctx *ctx, void *kept, const qkvi_mha *mha, int64_t layer, bool cross,
                         const float *x, qkvi_mha_acts *acts);
    void *kept;
} qkvi_kept;

/* The rows of a block's batch, and what its parts read besides. */
typedef struct qkvi_block_rows {
    qkvi_groups self, cross;  /* cross: of blocks that have it */
    const float *memory;      /* [cross.n_keys][hidden] */
    qkvi_row_dropout dropout; /* its site is the block's first of QKVI_BLOCK_SITES; rate 0: none */
    int64_t layer;            /* the block's number */
    qkvi_kept kept;           /* attend NULL: attention over the batch */
} qkvi_block_rows;

/* Rows that are wanted, any of them any number of times, in an order that everything after has. */
typedef struct qkvi_pick {
    int64_t n;
    int32_t *rows;
    float *o,
        *x; /* [n][hidden] of attention's output and of the block's input; x is used up backward */
    float *d; /* [n][hidden] gradient of the block's output */
} qkvi_pick;

/*
 * A residual part. To run only, s and y may be the same array; the backward pass needs both.
 *
 *     post-norm    f reads x         s = x + f     y = norm(s), the output
 *     pre-norm     f reads y         y = norm(x)   s = x + f, the output
 */
typedef struct qkvi_part_acts {
    float *s, *y; /* [n][hidden] */
    float *stats; /* [n][2] of the norm */
} qkvi_part_acts;

/* What the forward pass computes, for n rows: all, or those picked. To run only, u and g may be the
 * same array, and so may o of mha and of cross, and q. */
typedef struct qkvi_block_acts {
    qkvi_mha_acts mha, cross;
    qkvi_part_acts part1, part_cross, part2;
    float *u, *g;  /* [n][intermediate]  before and after act */
    float *output; /* part2.s or part2.y */
} qkvi_block_acts;

typedef struct qkvi_block_scratch {
    qkvi_mha_scratch mha; /* its packed and sums are large enough for the whole block */
    float *d_g;           /* [n_rows][intermediate] */
    float *d_part;        /* [n_rows][hidden]: of f's result, or of what it reads */
} qkvi_block_scratch;

/* Cuts the scratch of a block's backward pass for at most n_rows rows, all or picked, and n_keys. */
void qkvi_block_scratch_cut(const qkvi_block *layer, int64_t n_rows, int64_t n_keys,
                            qkvi_cutter *cutter, qkvi_block_scratch *scratch);

/*
 * acts from x [n_rows][hidden], for picked rows if pick is not NULL, which a block with
 * cross-attention cannot. Fails only if attention does.
 */
qkv_status qkvi_block_forward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_block_rows *rows,
                              const qkvi_pick *pick, const float *x, qkvi_block_acts *acts);

/*
 * d [n_rows][hidden] comes in as the gradient of the output and goes out as that of x; the gradient
 * of the memory is added to d_memory. With a pick, the gradient of the output comes in pick->d
 * instead, which is used up.
 */
qkv_status qkvi_block_backward(qkv_ctx *ctx, const qkvi_block *layer, const qkvi_block *grads,
                               const qkvi_block_rows *rows, const qkvi_pick *pick, const float *x,
                               const qkvi_block_acts *acts, float *d, float *d_memory,
                               const qkvi_block_scratch *scratch);

#endif
