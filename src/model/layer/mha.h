/*
 * Multi-head attention (Vaswani et al. 2017, section 3.2.2) over a batch without padding.
 *
 *     q = x Wqᵀ + bq      k, v = m Wkᵀ + bk, m Wvᵀ + bv      head h of a row: channels h head_dim …
 *     o = softmax(scale q kᵀ) v                              for each sequence and head
 *
 * Self-attention has m = x; cross-attention has the rows of another stack, the memory. The output
 * projection y = o Woᵀ + bo has its weights here but is computed by the block, which may want it for
 * some rows only.
 *
 * Sequences follow each other in the rows, in groups whose sequences have equally many queries and
 * equally many keys. Attention is called once for each group, with strides into the rows; so its
 * cost has no padding in it.
 *
 * An encoder with weights in bf16 that only runs attends in bf16, too: q, k and v are rounded to
 * it, and attention is computed in the class of the weights. Decoders attend in f32, since what
 * they keep of earlier tokens is f32.
 */
#ifndef QKVI_LAYER_MHA_H
#define QKVI_LAYER_MHA_H

#include "layer/dropout.h"
#include "layer/linear.h"

typedef struct qkvi_group {
    int64_t first_row, n_sequences, len;
    int64_t first_key, len_keys; /* rows of the memory; those above again where there is none */
} qkvi_group;

/* What attention does otherwise than a model says. Zeros: nothing. */
typedef struct qkvi_mha_change {
    bool causal, no_scale;
    double temperature;  /* scores are divided by it; 0: they are not */
    const uint8_t *seen; /* [n_keys]: 0 hides a key from every query; NULL: none is hidden */
} qkvi_mha_change;

/* The rows of a batch: groups of sequences, one after another. */
typedef struct qkvi_groups {
    int64_t n_rows, n_keys, n_groups;
    const qkvi_group *list;
    qkvi_mha_change change;
    qkvi_row_dropout dropout; /* of weights; its site is this layer's */
} qkvi_groups;

typedef struct qkvi_mha {
    int64_t n_heads, head_dim, hidden; /* hidden = n_heads head_dim */
    double scale;                      /* 0: 1 / √head_dim */
    qkvi_linear query, key, value, output;
} qkvi_mha;

/* What the forward pass leaves for captures and for the backward pass. */
typedef struct qkvi_mha_acts {
    float *q, *o;      /* [n_rows][hidden] */
    float *k, *v;      /* [n_keys][hidden] */
    uint16_t *half[3]; /* q, k and v in bf16, which then are computed with; NULL: those above are */
    float *lse;        /* [n_heads][len] of a sequence begin at its first row * n_heads */
} qkvi_mha_acts;

typedef struct qkvi_mha_scratch {
    float *d_q, *d_o; /* [n_rows][hidden] */
    float *d_k, *d_v; /* [n_keys][hidden] */
    float *packed;    /* qkvi_rows_packed_elems(the more of n_rows and n_keys, hidden) */
    float *sums;      /* qkvi_colsum_elems(the more of n_rows and n_keys, hidden) */
    float *product;   /* [the more of n_rows and n_keys][hidden] of layers in bf16 */
} qkvi_mha_scratch;

/* Whether such a layer attends in bf16. */
static inline bool qkvi_mha_in_half(const qkvi_mha *layer) {
    return layer->query.half && !layer->query.weight;
}

/* The factor on q·k: the layer's, or what the change makes of it. */
double qkvi_mha_scale(const qkvi_mha *layer, const qkvi_mha_change *change);

/* acts from x [n_rows][hidden] and memory [n_keys][hidden], NULL: x. Fails only if attention does. */
qkv_status qkvi_mha_forward(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_groups *groups,
                            const float *x, const float *memory, qkvi_mha_acts *acts);

/*
 * From scratch->d_o, the gradient of o: d_x += the gradient of x, and d_memory += that of memory,
 * which are the same array without one.
 */
qkv_status qkvi_mha_backward(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_mha *d,
                             const qkvi_groups *groups, const float *x, const float *memory,
                             const qkvi_mha_acts *acts, float *d_x, float *d_memory,
                             const qkvi_mha_scratch *scratch);

#endif
