/*
 * Layers: qkv/layers.h. What they allocate is the context's arena, and in bf16 the context's rows,
 * without which a layer is slower and has the same bits. Each call gets a context of its own.
 */
#include <string.h>

#include <qkv/layers.h>

#include "oom/calls.h"

enum { ROWS = 70, IN = 40, OUT = 33, ENTRIES = 9, PACKED = 64 + 4 * 64 * 64 };

static float x[ROWS * IN], y[ROWS * OUT], weight[OUT * IN], bias[OUT], stats[2 * ROWS];
static float d_x[ROWS * IN], d_weight[OUT * IN], d_bias[OUT], d_beta[IN], m[OUT * IN], v[OUT * IN];
static float parameters[OUT * IN];
static _Alignas(64) char packed[PACKED];
static int32_t ids[ROWS];
static double loss, norm;
static size_t bytes;
static qkv_ctx *ctx;

static qkv_status told(qkv_status status, qkv_error *error) {
    if (!error) return status;
    error->status = status;
    strcpy(error->message, qkv_ctx_message(ctx));
    return status;
}

static void begin(void) {
    qkv_error error;
    oom_must(qkv_ctx_create(NULL, &ctx, &error), &error);
    memset(y, 0, sizeof y);
    memset(d_x, 0, sizeof d_x);
    memset(d_weight, 0, sizeof d_weight);
    memset(d_bias, 0, sizeof d_bias);
    memset(d_beta, 0, sizeof d_beta);
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    memset(packed, 0, sizeof packed);
    memcpy(parameters, weight, sizeof weight);
    loss = norm = 0;
    bytes = 0;
}

static void drop(void) {
    qkv_ctx_free(ctx);
    ctx = NULL;
}

static uint64_t take(void) {
    uint64_t hash = oom_hash(0, y, sizeof y);
    hash = oom_hash(hash, d_x, sizeof d_x);
    hash = oom_hash(hash, d_weight, sizeof d_weight);
    hash = oom_hash(hash, d_bias, sizeof d_bias);
    hash = oom_hash(hash, d_beta, sizeof d_beta);
    hash = oom_hash(hash, packed, sizeof packed);
    return oom_hash(oom_hash(hash, &loss, sizeof loss), &bytes, sizeof bytes);
}

/* Steps of a repeated call follow each other; only its norm is the same each time. */
static uint64_t take_norm(void) { return oom_hash(0, &norm, sizeof norm); }

static qkv_linear_desc linear(qkv_class arithmetic) {
    qkv_linear_desc desc = qkv_linear_desc_init(ROWS, IN, OUT);
    desc.arithmetic = arithmetic;
    return desc;
}

static qkv_status packed_bytes(qkv_error *error) {
    const qkv_linear_desc desc = linear(QKV_CLASS_F32);
    return told(qkv_linear_packed_bytes(ctx, &desc, QKV_PASS_FORWARD, &bytes), error);
}
static qkv_status pack(qkv_error *error) {
    const qkv_linear_desc desc = linear(QKV_CLASS_DP);
    return told(qkv_linear_pack(ctx, &desc, QKV_PASS_BACKWARD, weight, packed, sizeof packed),
                error);
}
static qkv_status forward(qkv_error *error) {
    const qkv_linear_desc desc = linear(QKV_CLASS_F32);
    return told(qkv_linear_forward(ctx, &desc, x, weight, bias, y), error);
}
static qkv_status forward_half(qkv_error *error) {
    const qkv_linear_desc desc = linear(QKV_CLASS_AMX);
    return told(qkv_linear_forward(ctx, &desc, x, weight, bias, y), error);
}
static qkv_status backward(qkv_error *error) {
    const qkv_linear_desc desc = linear(QKV_CLASS_F32);
    return told(qkv_linear_backward(ctx, &desc, x, weight, x, d_x, d_weight, d_bias), error);
}
static qkv_status backward_half(qkv_error *error) {
    const qkv_linear_desc desc = linear(QKV_CLASS_DP);
    return told(qkv_linear_backward(ctx, &desc, x, weight, x, d_x, d_weight, d_bias), error);
}
static qkv_status act_forward(qkv_error *error) {
    return told(qkv_activation_forward(ctx, QKV_ACTIVATION_SILU, ROWS, IN, x, d_x), error);
}
static qkv_status act_backward(qkv_error *error) {
    return told(qkv_activation_backward(ctx, QKV_ACTIVATION_SILU, ROWS, IN, x, x, d_x), error);
}
static qkv_status norm_forward(qkv_error *error) {
    return told(qkv_layer_norm_forward(ctx, ROWS, OUT, 1e-5f, x, weight, bias, y, stats), error);
}
static qkv_status norm_backward(qkv_error *error) {
    return told(qkv_layer_norm_backward(ctx, ROWS, OUT, x, stats, weight, x, d_x, d_bias, d_beta),
                error);
}
static qkv_status rows_add(qkv_error *error) {
    memset(d_x, 0, sizeof d_x);
    return told(qkv_rows_add(ctx, ROWS, IN, x, d_x), error);
}
static qkv_status dropout(qkv_error *error) {
    memcpy(d_x, x, sizeof x);
    return told(qkv_dropout(ctx, ROWS, IN, 0.4f, 3, 5, d_x), error);
}
static qkv_status gather(qkv_error *error) {
    const qkv_embedding_desc desc = qkv_embedding_desc_init(ROWS, ENTRIES, IN, ids);
    return told(qkv_embedding_forward(ctx, &desc, weight, d_x), error);
}
static qkv_status scatter(qkv_error *error) {
    const qkv_embedding_desc desc = qkv_embedding_desc_init(ROWS, ENTRIES, IN, ids);
    return told(qkv_embedding_backward(ctx, &desc, x, d_weight), error);
}
static qkv_status cross_entropy(qkv_error *error) {
    return told(qkv_cross_entropy(ctx, ROWS, IN, ids, 0.1, x, d_x, &loss, NULL), error);
}
static qkv_status loss_alone(qkv_error *error) {
    return told(qkv_cross_entropy(ctx, ROWS, IN, ids, 0.1, x, NULL, &loss, NULL), error);
}
static qkv_status adamw(qkv_error *error) {
    const qkv_adamw_options options = qkv_adamw_options_init(0.01);
    const qkv_adamw_array array = { OUT * IN, x, parameters, m, v, 1 };
    return told(qkv_adamw_step(ctx, &options, 1, 1, &array, sizeof array, &norm), error);
}

static void set_up(void) {
    for (int i = 0; i < ROWS * IN; i++) x[i] = (float)(i % 11) / 8 - (float)(i % 7) / 4;
    for (int i = 0; i < OUT * IN; i++) weight[i] = (float)(i % 13) / 16 - 0.4f;
    for (int i = 0; i < OUT; i++) bias[i] = (float)(i % 5) - 2;
    for (int r = 0; r < ROWS; r++) ids[r] = r % ENTRIES;
    for (int r = 0; r < ROWS; r++) stats[2 * r] = 0.1f, stats[2 * r + 1] = 1.5f;
}

static const oom_call calls[] = {
    { "qkv_linear_packed_bytes", "f32", begin, packed_bytes, take, drop, 0, 0 },
    { "qkv_linear_pack", "bf16", begin, pack, take, drop, 0, 0 },
    { "qkv_linear_forward", "f32", begin, forward, take, drop, 0, 0 },
    { "qkv_linear_forward", "amx", begin, forward_half, take, drop, 0, 0 },
    { "qkv_linear_backward", "f32", begin, backward, take, drop, 0, 0 },
    { "qkv_linear_backward", "dp", begin, backward_half, take, drop, 0, 0 },
    { "qkv_activation_forward", "silu", begin, act_forward, take, drop, 0, 0 },
    { "qkv_activation_backward", "silu", begin, act_backward, take, drop, 0, 0 },
    { "qkv_layer_norm_forward", "70 rows", begin, norm_forward, take, drop, 0, 0 },
    { "qkv_layer_norm_backward", "70 rows", begin, norm_backward, take, drop, 0, 0 },
    { "qkv_rows_add", "70 rows", begin, rows_add, take, drop, 0, 0 },
    { "qkv_dropout", "70 rows", begin, dropout, take, drop, 0, 0 },
    { "qkv_embedding_forward", "70 rows", begin, gather, take, drop, 0, 0 },
    { "qkv_embedding_backward", "70 rows", begin, scatter, take, drop, 0, 0 },
    { "qkv_cross_entropy", "with gradient", begin, cross_entropy, take, drop, 0, 0 },
    { "qkv_cross_entropy", "without gradient", begin, loss_alone, take, drop, 0, 0 },
    { "qkv_adamw_step", "one array", begin, adamw, take_norm, drop, 0, 0 },
};

const oom_group oom_layers = { "layers", calls, sizeof calls / sizeof *calls, set_up, NULL };
