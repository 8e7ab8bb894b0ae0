/**
 * qkv: the operator Attention of ONNX, opsets 23, 24 and 25, as one call.
 *
 *     qkv_onnx_attention_node node = qkv_onnx_attention_node_init();
 *     qkv_onnx_attention_outputs out = qkv_onnx_attention_outputs_init();
 *     node.opset = 25;
 *     node.Q = (qkv_onnx_tensor){ QKV_ONNX_FLOAT, 4, { 1, 8, 128, 64 }, q };
 *     node.K = (qkv_onnx_tensor){ QKV_ONNX_FLOAT, 4, { 1, 2, 256, 64 }, k };
 *     node.V = (qkv_onnx_tensor){ QKV_ONNX_FLOAT, 4, { 1, 2, 256, 64 }, v };
 *     node.is_causal = 1;
 *     if (qkv_onnx_attention_shapes(&node, &out, &error) == QKV_OK)
 *         status = qkv_onnx_attention(ctx, &node, o, NULL, NULL, NULL, NULL);
 *
 * Names of inputs, attributes and outputs are those of ONNX. docs/onnx.md says where this
 * implementation differs from the specification.
 */
#ifndef QKV_ONNX_H
#define QKV_ONNX_H

#include "qkv/qkv.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Types of elements, with the numbers of onnx.TensorProto.DataType. */
typedef enum qkv_onnx_type {
    /* Of an input: there is none. Of softmax_precision: the type of Q. */
    QKV_ONNX_UNDEFINED = 0,
    QKV_ONNX_FLOAT = 1,
    QKV_ONNX_UINT8 = 2,
    QKV_ONNX_INT8 = 3,
    QKV_ONNX_UINT16 = 4,
    QKV_ONNX_INT16 = 5,
    QKV_ONNX_INT32 = 6,
    QKV_ONNX_INT64 = 7,
    /* A byte; not 0: true. */
    QKV_ONNX_BOOL = 9,
    QKV_ONNX_FLOAT16 = 10,
    QKV_ONNX_DOUBLE = 11,
    QKV_ONNX_UINT32 = 12,
    QKV_ONNX_UINT64 = 13,
    QKV_ONNX_BFLOAT16 = 16
} qkv_onnx_type;

enum { QKV_ONNX_MAX_RANK = 4 };

/** An array in the order of its dimensions, dense, as ONNX stores tensors. */
typedef struct qkv_onnx_tensor {
    qkv_onnx_type type;
    /* 0 to 4. Rank 0 has one element. */
    int rank;
    int64_t dims[QKV_ONNX_MAX_RANK];
    /* NULL is allowed if some dimension is 0. */
    const void *data;
} qkv_onnx_tensor;

/** Flags of a node. An attribute that a flag names is given only if the flag is set. */
enum {
    /* scale. Otherwise it is 1/sqrt(head size), or 1 if that size is 0. */
    QKV_ONNX_SET_SCALE = 1u << 0,
    /* left_window_size, right_window_size: from opset 25 on. */
    QKV_ONNX_SET_LEFT_WINDOW_SIZE = 1u << 1,
    QKV_ONNX_SET_RIGHT_WINDOW_SIZE = 1u << 2
};

/**
 * A node Attention: opset, inputs, attributes. An input of type QKV_ONNX_UNDEFINED is not there; of
 * the other attributes, 0 stands for the default.
 *
 * Shapes with rank 4; head size D, head size Dv of V, P keys of the past, T = P + Sk:
 *     Q [B][Hq][Sq][D]              past_key   [B][Hkv][P][D]
 *     K [B][Hkv][Sk][D]             past_value [B][Hkv][P][Dv]
 *     V [B][Hkv][Sk][Dv]            nonpad_kv_seqlen [B]
 *     attn_mask: broadcast to [B][Hq][Sq][T] from the right
 * With rank 3, heads are the major part of the last dimension:
 *     Q [B][Sq][Hq D]       K [B][Sk][Hkv D]       V [B][Sk][Hkv Dv]
 * The past and the mask are as above then, too. Hq is a multiple of Hkv, and query head h
 * uses key/value head h / (Hq / Hkv).
 *
 * Types: Q, K and past_key have one type, V and past_value another or the same: FLOAT, FLOAT16,
 * BFLOAT16, DOUBLE. attn_mask has any type: BOOL hides where it is false, numbers are added.
 */
typedef struct qkv_onnx_attention_node {
    size_t struct_size;
    /* That of the model, 23 to 28. From 25 on the rules are those of 25. */
    int opset;
    /* QKV_ONNX_SET_... */
    uint32_t flags;
    qkv_onnx_tensor Q, K, V;
    /*
     * From opset 24 on its last dimension may be shorter than T: keys beyond it are hidden, also if
     * it is 1. In opset 23 it is T, or 1, which repeats.
     */
    qkv_onnx_tensor attn_mask;
    /* Both or none. */
    qkv_onnx_tensor past_key, past_value;
    /* From opset 24 on, INT64, 0 to Sk each. Without a past; from 25 on also without a present. */
    qkv_onnx_tensor nonpad_kv_seqlen;
    /* 0 or 1. */
    int64_t is_causal;
    /* Required with rank 3. With rank 4 refused from opset 25 on, and before that those of Q, K. */
    int64_t q_num_heads, kv_num_heads;
    /* What qk_matmul_output is: 0 to 3. */
    int64_t qk_matmul_output_mode;
    /* A qkv_onnx_type: FLOAT, FLOAT16, DOUBLE or BFLOAT16. Softmax has at least that precision. */
    int64_t softmax_precision;
    /* -1: unbounded. */
    int64_t left_window_size, right_window_size;
    /* A negative scale is allowed. softcap: 0, or a finite number above it. */
    float scale, softcap;
    /* Not of ONNX: how products of BFLOAT16 are computed. */
    qkv_class arithmetic;
} qkv_onnx_attention_node;

QKV_DEFINE_INIT(qkv_onnx_attention_node)

/**
 * Types and shapes of the outputs of a node:
 *     Y                 [B][Hq][Sq][Dv], or [B][Sq][Hq Dv] with rank 3     type of Q
 *     present_key       [B][Hkv][T][D]                                     type of Q
 *     present_value     [B][Hkv][T][Dv]                                    type of V
 *     qk_matmul_output  [B][Hq][Sq][T]                                     type of Q
 */
typedef struct qkv_onnx_attention_outputs {
    size_t struct_size;
    /* data is NULL. */
    qkv_onnx_tensor Y, present_key, present_value, qk_matmul_output;
} qkv_onnx_attention_outputs;

QKV_DEFINE_INIT(qkv_onnx_attention_outputs)

/**
 * Checks a node, and says what its outputs are. Arrays are not looked at: their data may be NULL.
 *
 * @param outputs  written only after success, and only the struct_size bytes that it has.
 * @param error    NULL, or receives the reason of a failure.
 * @return QKV_OK, or what qkv_onnx_attention would return for this node.
 */
QKV_API QKV_NODISCARD qkv_status qkv_onnx_attention_shapes(const qkv_onnx_attention_node *node,
                                                           qkv_onnx_attention_outputs *outputs,
                                                           qkv_error *error);

/**
 * Computes a node. For batch b, query head h, its key/value head g = h / (Hq / Hkv), query i and
 * key j, those of the past first:
 *     s0 = scale <Q[b,h,i,:], K[b,g,j,:]>
 *     s1 = softcap tanh(s0 / softcap), or s0 without a soft cap
 *     s2 = s1 + attn_mask[b,h,i,j], or -INFINITY where i does not see j
 *     s3 = exp(s2) / sum_j exp(s2), or 0 where i does not see j
 *     Y[b,h,i,:] = sum_j s3 V[b,g,j,:]
 * qk_matmul_output is s0, s1, s2 or s3, by qk_matmul_output_mode. Query i has the position
 * p = i + offset. It sees key j if all of these hold:
 *     is_causal           j <= p
 *     left_window_size    j >= p - left_window_size
 *     right_window_size   j <= p + right_window_size
 *     nonpad_kv_seqlen    j < nonpad_kv_seqlen[b]
 *     attn_mask           its element is not false and not -INFINITY, and it has one for j
 * offset is P with a past, nonpad_kv_seqlen[b] - Sq with nonpad_kv_seqlen, and 0 otherwise. It may
 * be negative.
 *
 * Two ways lead to Y. qkv_attention_forward computes it if all of these hold:
 *     Q and V have one type: FLOAT, FLOAT16 or BFLOAT16
 *     attn_mask, if there is one, is BOOL or of one of these three types
 *     softmax_precision is not DOUBLE
 * Otherwise a plain loop in double computes it, which takes many times as long. qk_matmul_output
 * always comes from the loop. Y has the same bits whatever outputs are asked for.
 *
 * Overlap: outputs must not overlap any array. Inputs may overlap one another.
 * Special values: a query that sees no key gets 0 in Y and s3. The rules and the mask decide that,
 *     never the scores. Hidden keys and values cannot change Y, NaN included. A visible NaN, and
 *     NaN or +INFINITY in attn_mask, give NaN in the rows that see it.
 * Accuracy: by qkv_attention_forward its bound. By the loop
 *     |Y - exact| <= 2^-53 ((D + 8) max_j |scale| sum|q||k_j| + 4 max|attn_mask| + T + 16) max|V|
 *     s0 and s1 have 2^-53 (D + 8) |scale| sum|q||k|, s2 also 2^-53 |attn_mask|. s3 has that of Y,
 *     with s3 in place of max|V| and the first term twice. Each is then rounded once to its type.
 * Determinism: the bits depend on the node and the class, not on threads. Those of the loop do not
 *     depend on the instruction set either.
 * Memory: qkv_onnx_attention_workspace. With a past and without present outputs, past and new keys
 *     and values are copied into it, unless the loop computes Y. The loop needs 36 T + 40 D + 40 Dv
 *     bytes for each thread. A matrix Sq x T is stored only as qk_matmul_output.
 * Threads: those of the context.
 * Source: https://onnx.ai/onnx/operators/onnx__Attention.html, as corrected in version 1.23.
 *
 * @param Y                 never NULL if it has elements.
 * @param present_key       NULL: not written. Together with present_value.
 * @param qk_matmul_output  NULL: not written.
 * @param call              NULL: the defaults. Progress is of Y, then of qk_matmul_output. The loop
 *                          reads `cancel` between blocks of 4 queries of a head.
 * @return QKV_OK; QKV_ERR_ARGUMENT for an attribute, a pointer, or what the opset does not have;
 *         QKV_ERR_SHAPE, QKV_ERR_DTYPE, QKV_ERR_STRIDE for an input; QKV_ERR_UNSUPPORTED for a
 *         newer opset; QKV_ERR_MEMORY; QKV_ERR_CANCELLED; QKV_ERR_VERSION; QKV_ERR_BUSY.
 *         qkv_ctx_message(ctx) then names input or attribute, value and rule. Outputs are
 *         untouched, except after QKV_ERR_CANCELLED.
 */
QKV_API QKV_NODISCARD qkv_status qkv_onnx_attention(qkv_ctx *ctx,
                                                    const qkv_onnx_attention_node *node, void *Y,
                                                    void *present_key, void *present_value,
                                                    void *qk_matmul_output,
                                                    const qkv_call_options *call);

/**
 * Returns in *bytes the workspace that suffices for a node, whatever outputs are asked for. Arrays
 * are not looked at.
 * @return QKV_OK, or what qkv_onnx_attention would return for this node.
 */
QKV_API QKV_NODISCARD qkv_status qkv_onnx_attention_workspace(qkv_ctx *ctx,
                                                              const qkv_onnx_attention_node *node,
                                                              size_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
