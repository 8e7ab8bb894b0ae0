/* onnx.h: see nulls.h. */
#include "null/nulls.h"
#include "qkv/onnx.h"

enum { N = 3, D = 4 };
static float x[N * D], y[N * D], present_key[N * D], present_value[N * D], qk[N * N];
static const qkv_call_options call_options = { .struct_size = sizeof call_options };

static qkv_onnx_attention_node make_node(void) {
    qkv_onnx_attention_node node = qkv_onnx_attention_node_init();
    node.opset = 25;
    node.Q = (qkv_onnx_tensor){ QKV_ONNX_FLOAT, 4, { 1, 1, N, D }, x };
    node.K = node.V = node.Q;
    return node;
}

static qkv_status attention(void) {
    const qkv_onnx_attention_node node = make_node();
    return qkv_onnx_attention(P(0, null_ctx), P(1, &node), P(2, y), P(3, present_key),
                              P(4, present_value), P(5, qk), P(6, &call_options));
}
static qkv_status shapes(void) {
    const qkv_onnx_attention_node node = make_node();
    qkv_onnx_attention_outputs outputs = qkv_onnx_attention_outputs_init();
    return qkv_onnx_attention_shapes(P(0, &node), P(1, &outputs), P(2, &null_error));
}
static qkv_status workspace(void) {
    const qkv_onnx_attention_node node = make_node();
    size_t bytes;
    return qkv_onnx_attention_workspace(P(0, null_ctx), P(1, &node), P(2, &bytes));
}

const null_call null_onnx[] = {
    { "qkv_onnx_attention", attention, "-rrrrnn" },
    { "qkv_onnx_attention_shapes", shapes, "rrn" },
    { "qkv_onnx_attention_workspace", workspace, "-rr" },
    { 0 },
};
