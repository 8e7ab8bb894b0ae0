/*
 * Multi-head self-attention (Vaswani et al. 2017, section 3.2.2) over a batch without padding.
 *
 *     q, k, v = x Wqᵀ + bq, x Wkᵀ + bk, x Wvᵀ + bv        head h of a row: channels h head_dim …
 *     o       = softmax(q kᵀ / √head_dim) v               for each sequence and head
 *
 * The output projection y = o Woᵀ + bo has its weights here but is computed by the block, which may
 * want it for some rows only.
 *
 * Sequences follow each other in the rows, sorted by length. Attention is called once for each
 * group of equal length, with strides into the rows; so its cost has no padding in it.
 */
#ifndef QKVI_LAYER_MHA_H
#define QKVI_LAYER_MHA_H

#include "model/layer/linear.h"

typedef struct qkvi_group {
    int64_t first_row, n_sequences, len;
} qkvi_group;

/* What attention does otherwise than a model says. Zeros: nothing. */
typedef struct qkvi_mha_change {
    bool causal;
    float scale;         /* 0: 1 / √head_dim */
    const uint8_t *seen; /* [n_rows]: 0 hides a key from every query; NULL: none is hidden */
} qkvi_mha_change;

/* The rows of a batch: groups of sequences of equal length, one after another. */
typedef struct qkvi_groups {
    int64_t n_rows, n_groups;
    const qkvi_group *list;
    qkvi_mha_change change;
} qkvi_groups;

typedef struct qkvi_mha {
    int64_t n_heads, head_dim, hidden; /* hidden = n_heads head_dim */
    qkvi_linear query, key, value, output;
} qkvi_mha;

/* What the forward pass leaves for captures and for the backward pass. */
typedef struct qkvi_mha_acts {
    float *q, *k, *v, *o; /* [n_rows][hidden] */
    float *lse;           /* [n_heads][len] of a sequence begin at its first row * n_heads */
} qkvi_mha_acts;

typedef struct qkvi_mha_scratch {
    float *d_q, *d_k, *d_v, *d_o; /* [n_rows][hidden] */
    float *packed;                /* qkvi_gemm_packed_elems(n_rows, hidden) */
    float *sums;                  /* qkvi_colsum_elems(n_rows, hidden) */
} qkvi_mha_scratch;

/* acts from x [n_rows][hidden]. Fails only if attention does. */
qkv_status qkvi_mha_forward(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_groups *groups,
                            const float *x, qkvi_mha_acts *acts);

/* From scratch->d_o, the gradient of o: d_x += the gradient of x. */
qkv_status qkvi_mha_backward(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_mha *d,
                             const qkvi_groups *groups, const float *x, const qkvi_mha_acts *acts,
                             float *d_x, const qkvi_mha_scratch *scratch);

#endif
