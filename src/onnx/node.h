/*
 * A node Attention, checked once. Other code works on a qkvi_onnx and does not check again: sizes
 * are in range, and their products fit.
 *
 * Arrays of rank 3 are arrays of rank 4 with other strides, so that nothing is copied. Strides are
 * in elements, of batch, head and token. Key j is row j of the past if j < len_past, else row
 * j - len_past of K.
 */
#ifndef QKVI_ONNX_NODE_H
#define QKVI_ONNX_NODE_H

#include <stdbool.h>

#include "attn/desc.h"
#include "onnx/types.h"

typedef struct qkvi_onnx {
    qkv_onnx_attention_node node; /* the caller's, without fields of later versions */
    qkv_onnx_type type, type_v;   /* of Q, K and Y; of V */
    int64_t type_bytes, type_v_bytes;
    int64_t n_batch, n_heads, n_kv_heads, len_q, len_past, len_new, len_k, head_dim, head_dim_v;
    int64_t q_stride[3], k_stride[3], v_stride[3], y_stride[3], past_k_stride[3], past_v_stride[3];
    bool has_past, has_nonpad, has_mask;
    int64_t mask_stride[4]; /* of batch, head, query, key; 0: broadcast */
    int64_t mask_len;       /* keys from here on are hidden; len_k: none by the mask's length */
    int64_t left, right;    /* of the window; QKVI_NO_WINDOW: unbounded */
    double scale;
    bool y_by_loop; /* Y needs loop.h: qkv_attention_forward cannot compute it */
    qkv_onnx_attention_outputs outputs;
} qkvi_onnx;

/* Reads and checks a node, without the data of its tensors. */
QKV_NODISCARD qkv_status qkvi_onnx_read(const qkv_onnx_attention_node *node, qkvi_onnx *x,
                                        qkv_error *error);

/* The arrays of outputs. All but y are nullable. */
typedef struct qkvi_onnx_results {
    void *y, *present_key, *present_value, *qk;
} qkvi_onnx_results;

/* Checks the arrays of a call: NULL, alignment, overlap, and the values of nonpad_kv_seqlen. */
QKV_NODISCARD qkv_status qkvi_onnx_check_arrays(const qkvi_onnx *x,
                                                const qkvi_onnx_results *results,
                                                const qkv_call_options *call, qkv_error *error);

#endif
