/*
 * A node of ONNX: qkv/onnx.h. Every call gets a context of its own, as in call_attention.c.
 */
#include <string.h>

#include <qkv/onnx.h>

#include "oom/calls.h"

enum {
    HEADS = 2,
    LEN = 70,
    PAST = 9,
    KEYS = LEN + PAST,
    DIM = 8,
    N = HEADS * LEN * DIM,
    N_K = HEADS * KEYS * DIM,
    N_QK = HEADS * LEN * KEYS
};

static float q[N], k[N], v[N], past[HEADS * PAST * DIM], y[N], present_k[N_K], present_v[N_K],
    qk[N_QK];
static qkv_onnx_attention_node node;
static qkv_onnx_attention_outputs outputs;
static qkv_ctx *ctx;
static size_t bytes;

static void new_ctx(void) {
    qkv_error error;
    oom_must(qkv_ctx_create(NULL, &ctx, &error), &error);
    for (int i = 0; i < N; i++) y[i] = 7;
    for (int i = 0; i < N_K; i++) present_k[i] = present_v[i] = 7;
    for (int i = 0; i < N_QK; i++) qk[i] = 7;
}

static void drop_ctx(void) {
    qkv_ctx_free(ctx);
    ctx = NULL;
}

static qkv_status told(qkv_status status, qkv_error *error) {
    if (!error) return status;
    error->status = status;
    strcpy(error->message, qkv_ctx_message(ctx));
    return status;
}

static void expect_untouched(qkv_status status, const float *x, int n) {
    for (int i = 0; status != QKV_OK && i < n; i++)
        oom_claim(x[i] == 7, "outputs are untouched after a failure");
}

static qkv_status compute(const qkv_onnx_attention_node *n, void *pk, void *pv, void *scores,
                          qkv_error *error) {
    const qkv_status status = qkv_onnx_attention(ctx, n, y, pk, pv, scores, NULL);
    expect_untouched(status, y, N);
    expect_untouched(status, present_k, N_K);
    expect_untouched(status, present_v, N_K);
    expect_untouched(status, qk, N_QK);
    return told(status, error);
}

static qkv_status only_y(qkv_error *error) { return compute(&node, NULL, NULL, NULL, error); }

static qkv_status all_outputs(qkv_error *error) {
    return compute(&node, present_k, present_v, qk, error);
}

static qkv_status in_double(qkv_error *error) {
    qkv_onnx_attention_node n = node;
    n.softmax_precision = QKV_ONNX_DOUBLE;
    return compute(&n, NULL, NULL, qk, error);
}

static uint64_t take_outputs(void) {
    const uint64_t hash = oom_hash(oom_hash(0, y, sizeof y), qk, sizeof qk);
    return oom_hash(oom_hash(hash, present_k, sizeof present_k), present_v, sizeof present_v);
}

static qkv_status shapes(qkv_error *error) {
    outputs = qkv_onnx_attention_outputs_init();
    return qkv_onnx_attention_shapes(&node, &outputs, error);
}

static uint64_t take_shapes(void) { return oom_hash(0, outputs.Y.dims, sizeof outputs.Y.dims); }

static qkv_status workspace(qkv_error *error) {
    return told(qkv_onnx_attention_workspace(ctx, &node, &bytes), error);
}

static uint64_t take_bytes(void) { return oom_hash(0, &bytes, sizeof bytes); }

static void set_up(void) {
    for (int i = 0; i < N; i++) {
        q[i] = (float)(i % 11) / 8;
        k[i] = (float)(i % 7) / 4;
        v[i] = (float)(i % 5) - 2;
    }
    node = qkv_onnx_attention_node_init();
    node.opset = 25;
    node.Q = (qkv_onnx_tensor){ QKV_ONNX_FLOAT, 4, { 1, HEADS, LEN, DIM }, q };
    node.K = (qkv_onnx_tensor){ QKV_ONNX_FLOAT, 4, { 1, HEADS, LEN, DIM }, k };
    node.V = (qkv_onnx_tensor){ QKV_ONNX_FLOAT, 4, { 1, HEADS, LEN, DIM }, v };
    node.past_key = (qkv_onnx_tensor){ QKV_ONNX_FLOAT, 4, { 1, HEADS, PAST, DIM }, past };
    node.past_value = node.past_key;
    node.is_causal = 1;
}

static void tear_down(void) {}

static const oom_call calls[] = {
    { "qkv_onnx_attention", "70 tokens after 9", new_ctx, only_y, take_outputs, drop_ctx, 0, 0 },
    { "qkv_onnx_attention", "all outputs", new_ctx, all_outputs, take_outputs, drop_ctx, 0, 0 },
    { "qkv_onnx_attention", "in double", new_ctx, in_double, take_outputs, drop_ctx, 0, 0 },
    { "qkv_onnx_attention_workspace", "70 tokens", new_ctx, workspace, take_bytes, drop_ctx, 0, 0 },
    { "qkv_onnx_attention_shapes", "70 tokens", new_ctx, shapes, take_shapes, drop_ctx, 0, 0 },
};

const oom_group oom_onnx = { "onnx", calls, sizeof calls / sizeof *calls, set_up, tear_down };
