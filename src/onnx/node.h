/*
 * What a node Attention means, checked once. Everything below works on a qkvi_onnx and checks
 * nothing again: sizes are in range and their products fit.
 *
 * Layout: rank 3 is rank 4 with other strides, so that nothing is copied. Strides are those of
 * batch, head and token, in elements. Key j is row j of the past if j < len_past, and row j -
 * len_past of K.
 */
#ifndef QKVI_ONNX_NODE_H
#define QKVI_ONNX_NODE_H

#include <stdbool.h>

#include "attn/desc.h"
#include "onnx/types.h"

typedef struct qkvi_onnx {
    qkv_onnx_attention_node node; /* as given, unknown fields gone */
    qkv_onnx_type type, type_v;   /* of Q, K and Y; of V */
    int64_t type_bytes, type_v_bytes;
    int64_t n_batch, n_heads, n_kv_heads, len_q, len_past, len_new, len_k, head_dim, head_dim_v;
    int64_t q_stride[3], k_stride[3], v_stride[3], y_stride[3], past_k_stride[3], past_v_stride[3];
    bool has_past, has_nonpad, has_mask;
    int64_t mask_stride[4]; /* batch, head, query, key; 0 repeats */
    int64_t
        mask_len; /* keys from here on are hidden: len_k without a mask or with one that repeats */
    int64_t left, right; /* QKVI_NO_WINDOW: unbounded */
    double scale;
    bool y_by_loop; /* what qkv_attention_forward cannot compute */
    qkv_onnx_attention_outputs outputs;
} qkvi_onnx;

/* The node alone; data of tensors is not looked at. */
QKV_NODISCARD qkv_status qkvi_onnx_read(const qkv_onnx_attention_node *node, qkvi_onnx *x,
                                        qkv_error *error);

/* Where outputs go. All but y are nullable. */
typedef struct qkvi_onnx_results {
    void *y, *present_key, *present_value, *qk;
} qkvi_onnx_results;

/* The arrays of a call: NULL, alignment, overlap, and the numbers of nonpad_kv_seqlen. */
QKV_NODISCARD qkv_status qkvi_onnx_check_arrays(const qkvi_onnx *x,
                                                const qkvi_onnx_results *results,
                                                const qkv_call_options *call, qkv_error *error);

#endif
