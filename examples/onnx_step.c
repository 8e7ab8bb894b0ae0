/*
 * The operator Attention of ONNX, one token at a time, as a decoder's graph has it: keys and values
 * of the tokens before come in as past_key and past_value, and go out with the new ones as
 * present_key and present_value. All memory is the caller's: the library asks for none in a step.
 */
#include <stdio.h>
#include <stdlib.h>

#include <qkv/onnx.h>

enum { HEADS = 2, TOKENS = 4, DIM = 4 };

static float cache[2][2][HEADS * TOKENS * DIM]; /* of keys and values: of the past, and present */

static void fill(float *x, unsigned seed) {
    for (int i = 0; i < HEADS * DIM; i++) {
        seed = seed * 1664525U + 1013904223U;
        x[i] = (float)(seed >> 8) / (float)(1U << 23) - 1;
    }
}

static qkv_onnx_tensor tensor(int64_t rows, const float *data) {
    return (qkv_onnx_tensor){ QKV_ONNX_FLOAT, 4, { 1, HEADS, rows, DIM }, data };
}

/* The node of token t, which follows t others. */
static qkv_onnx_attention_node node_of(int64_t t, const float *q, const float *k, const float *v) {
    qkv_onnx_attention_node node = qkv_onnx_attention_node_init();
    node.opset = 25;
    node.Q = tensor(1, q);
    node.K = tensor(1, k);
    node.V = tensor(1, v);
    node.past_key = tensor(t, cache[0][t % 2]);
    node.past_value = tensor(t, cache[1][t % 2]);
    node.is_causal = 1;
    node.qk_matmul_output_mode = 3; /* the weights */
    return node;
}

static qkv_status step(qkv_ctx *ctx, const qkv_onnx_attention_node *node, int64_t t,
                       const qkv_call_options *call) {
    float y[HEADS * DIM], weights[HEADS * TOKENS];
    const qkv_status status = qkv_onnx_attention(ctx, node, y, cache[0][(t + 1) % 2],
                                                 cache[1][(t + 1) % 2], weights, call);
    if (status != QKV_OK) return status;
    printf("token %d  weights of head 0:", (int)t);
    for (int64_t j = 0; j <= t; j++) printf(" %.4f", (double)weights[j]);
    printf("  Y %.4f %.4f ...\n", (double)y[0], (double)y[1]);
    return QKV_OK;
}

int main(void) {
    float q[HEADS * DIM], k[HEADS * DIM], v[HEADS * DIM];
    qkv_ctx *ctx = NULL;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return 1;

    /* The last step needs most. */
    qkv_call_options call = qkv_call_options_init();
    const qkv_onnx_attention_node last = node_of(TOKENS - 1, q, k, v);
    qkv_status status = qkv_onnx_attention_workspace(ctx, &last, &call.workspace_bytes);
    call.workspace_bytes += 64 - call.workspace_bytes % 64;
    call.workspace = aligned_alloc(64, call.workspace_bytes);
    if (!call.workspace) status = QKV_ERR_MEMORY;

    for (int64_t t = 0; status == QKV_OK && t < TOKENS; t++) {
        fill(q, 3 * (unsigned)t), fill(k, 3 * (unsigned)t + 1), fill(v, 3 * (unsigned)t + 2);
        const qkv_onnx_attention_node node = node_of(t, q, k, v);
        status = step(ctx, &node, t, &call);
    }
    if (status != QKV_OK) fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
    free(call.workspace);
    qkv_ctx_free(ctx);
    return status != QKV_OK;
}
