/* layers.h: see nulls.h. */
#include "null/nulls.h"
#include "qkv/layers.h"

enum { N = 3, D = 4 };
static float x[N * D], y[N * D], w[D * D], b[D], dx[N * D], dw[D * D], db[D], stats[2 * N];
static float m[D * D], v[D * D];
static _Alignas(64) char packed[64 + 4 * D * 32];
static const int32_t ids[N];

static qkv_linear_desc linear(void) { return qkv_linear_desc_init(N, D, D); }

static qkv_status linear_packed_bytes(void) {
    const qkv_linear_desc desc = linear();
    size_t bytes;
    return qkv_linear_packed_bytes(P(0, null_ctx), P(1, &desc), QKV_PASS_FORWARD, P(2, &bytes));
}
static qkv_status linear_pack(void) {
    const qkv_linear_desc desc = linear();
    return qkv_linear_pack(P(0, null_ctx), P(1, &desc), QKV_PASS_FORWARD, P(2, w), P(3, packed),
                           sizeof packed);
}
static qkv_status linear_forward(void) {
    const qkv_linear_desc desc = linear();
    return qkv_linear_forward(P(0, null_ctx), P(1, &desc), P(2, x), P(3, w), P(4, b), P(5, y));
}
static qkv_status linear_backward(void) {
    const qkv_linear_desc desc = linear();
    return qkv_linear_backward(P(0, null_ctx), P(1, &desc), P(2, x), P(3, w), P(4, y), P(5, dx),
                               P(6, dw), P(7, db));
}
static qkv_status activation_forward(void) {
    return qkv_activation_forward(P(0, null_ctx), QKV_ACTIVATION_GELU, N, D, P(1, x), P(2, y));
}
static qkv_status activation_backward(void) {
    return qkv_activation_backward(P(0, null_ctx), QKV_ACTIVATION_GELU, N, D, P(1, x), P(2, y),
                                   P(3, dx));
}
static qkv_status layer_norm_forward(void) {
    return qkv_layer_norm_forward(P(0, null_ctx), N, D, 1e-5f, P(1, x), P(2, w), P(3, b), P(4, y),
                                  P(5, stats));
}
static qkv_status layer_norm_backward(void) {
    return qkv_layer_norm_backward(P(0, null_ctx), N, D, P(1, x), P(2, stats), P(3, w), P(4, y),
                                   P(5, dx), P(6, dw), P(7, db));
}
static qkv_status rows_add(void) { return qkv_rows_add(P(0, null_ctx), N, D, P(1, x), P(2, y)); }
static qkv_status dropout(void) { return qkv_dropout(P(0, null_ctx), N, D, 0.5f, 1, 2, P(1, x)); }
static qkv_status embedding_forward(void) {
    const qkv_embedding_desc desc = qkv_embedding_desc_init(N, D, D, ids);
    return qkv_embedding_forward(P(0, null_ctx), P(1, &desc), P(2, w), P(3, y));
}
static qkv_status embedding_backward(void) {
    const qkv_embedding_desc desc = qkv_embedding_desc_init(N, D, D, ids);
    return qkv_embedding_backward(P(0, null_ctx), P(1, &desc), P(2, y), P(3, dw));
}
static qkv_status cross_entropy(void) {
    double loss;
    int64_t n_right;
    return qkv_cross_entropy(P(0, null_ctx), N, D, P(1, ids), 0, P(2, x), P(3, dx), P(4, &loss),
                             P(5, &n_right));
}
static qkv_status adamw_step(void) {
    const qkv_adamw_options options = qkv_adamw_options_init(0.1);
    const qkv_adamw_array array = { D * D, dw, w, m, v, 0 };
    double norm;
    return qkv_adamw_step(P(0, null_ctx), P(1, &options), 1, 1, P(2, &array), sizeof array,
                          P(3, &norm));
}
/* Pointers inside an element. */
static qkv_status adamw_array(void) {
    const qkv_adamw_options options = qkv_adamw_options_init(0.1);
    const qkv_adamw_array array = { D * D, P(0, dw), P(1, w), P(2, m), P(3, v), 0 };
    return qkv_adamw_step(null_ctx, &options, 1, 1, &array, sizeof array, NULL);
}
static qkv_status embedding_ids(void) {
    const qkv_embedding_desc desc = qkv_embedding_desc_init(N, D, D, P(0, ids));
    return qkv_embedding_forward(null_ctx, &desc, w, y);
}

const null_call null_layers[] = {
    { "qkv_linear_packed_bytes", linear_packed_bytes, "-rr" },
    { "qkv_linear_pack", linear_pack, "-rrr" },
    { "qkv_linear_forward", linear_forward, "-rrrnr" },
    { "qkv_linear_backward", linear_backward, "-rrrrnnn" },
    { "qkv_activation_forward", activation_forward, "-rr" },
    { "qkv_activation_backward", activation_backward, "-rrr" },
    { "qkv_layer_norm_forward", layer_norm_forward, "-rrrrr" },
    { "qkv_layer_norm_backward", layer_norm_backward, "-rrrrrrr" },
    { "qkv_rows_add", rows_add, "-rr" },
    { "qkv_dropout", dropout, "-r" },
    { "qkv_embedding_forward", embedding_forward, "-rrr" },
    { "qkv_embedding_backward", embedding_backward, "-rrr" },
    { "qkv_cross_entropy", cross_entropy, "-rrnrn" },
    { "qkv_adamw_step", adamw_step, "-rrn" },
    { "qkv_adamw_step: in an element", adamw_array, "rrrr" },
    { "qkv_embedding_forward: ids", embedding_ids, "r" },
    { 0 },
};
