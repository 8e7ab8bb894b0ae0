/*
 * A node of ONNX's Attention from bytes: qkv/onnx.h. Shapes, types and attributes may be anything;
 * arrays are as large as the node says, without anything behind them.
 *
 * Checked of a node: all calls accept or refuse it alike; a refusal says why. Of one that is
 * computed: Y by the kernels and by the loop in double agree; a row of Y without a weight is 0;
 * weights are at least 0 and sum to 1 or are all 0; a score after the mask is -infinity exactly
 * where its weight is hidden.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"
#include "fuzz/fuzz.h"
#include "qkv/onnx.h"

enum { LARGEST = 1 << 16, N_INPUTS = 7 };

static const qkv_onnx_type types[] = { QKV_ONNX_FLOAT,  QKV_ONNX_FLOAT16,  QKV_ONNX_BFLOAT16,
                                       QKV_ONNX_DOUBLE, QKV_ONNX_BOOL,     QKV_ONNX_UINT8,
                                       QKV_ONNX_INT8,   QKV_ONNX_INT64,    QKV_ONNX_UINT16,
                                       QKV_ONNX_INT32,  QKV_ONNX_UNDEFINED };

static size_t bytes_of(qkv_onnx_type type) {
    switch (type) {
    case QKV_ONNX_BOOL:
    case QKV_ONNX_UINT8:
    case QKV_ONNX_INT8: return 1;
    case QKV_ONNX_FLOAT16:
    case QKV_ONNX_BFLOAT16:
    case QKV_ONNX_UINT16: return 2;
    case QKV_ONNX_FLOAT:
    case QKV_ONNX_INT32: return 4;
    default: return 8;
    }
}

/* Elements, or -1 if they are many. */
static int64_t count(const qkv_onnx_tensor *t) {
    int64_t n = 1;
    for (int k = 0; k < t->rank && k < 4; k++) {
        if (t->dims[k] < 0 || t->dims[k] > LARGEST) return -1;
        n *= t->dims[k];
        if (n > LARGEST) return -1;
    }
    return n;
}

/* ---- The node -------------------------------------------------------------------------------- */

/* Of 32 sizes one is anything. */
static int64_t size(fuzz_reader *r) {
    const uint8_t x = fuzz_byte(r);
    if (x >= 248) return (int64_t)fuzz_u64(r);
    return x % 10;
}

static qkv_onnx_tensor tensor(fuzz_reader *r, int rank) {
    qkv_onnx_tensor t = { .type = types[fuzz_byte(r) % 11], .rank = rank };
    if (fuzz_byte(r) >= 250) t.rank = (int8_t)fuzz_byte(r);
    for (int k = 0; k < 4; k++) t.dims[k] = size(r);
    return t;
}

/* As the sizes say; then a byte may change one number of one tensor. */
static void fit(qkv_onnx_attention_node *n, fuzz_reader *r) {
    const int64_t b = fuzz_byte(r) % 3, g = 1 + fuzz_byte(r) % 3, h = g * (1 + fuzz_byte(r) % 3);
    const int64_t sq = fuzz_byte(r) % 9, sk = fuzz_byte(r) % 40, p = fuzz_byte(r) % 9;
    const int64_t d = fuzz_byte(r) % 20, dv = fuzz_byte(r) % 20;
    const int rank = fuzz_byte(r) % 2 ? 4 : 3;
    qkv_onnx_tensor *const list[] = { &n->Q, &n->K, &n->V, &n->past_key, &n->past_value };
    const int64_t dims[5][4] = {
        { b, h, sq, d }, { b, g, sk, d }, { b, g, sk, dv }, { b, g, p, d }, { b, g, p, dv }
    };
    const qkv_onnx_type type = types[fuzz_byte(r) % 4],
                        type_v = fuzz_byte(r) % 4 ? type : types[fuzz_byte(r) % 4];
    const bool past = fuzz_byte(r) % 2, nonpad = !past && fuzz_byte(r) % 2;
    for (int k = 0; k < (past ? 5 : 3); k++) {
        const int64_t *x = dims[k], three[4] = { x[0], x[2], x[1] * x[3], 0 };
        list[k]->type = k == 2 || k == 4 ? type_v : type;
        list[k]->rank = k < 3 ? rank : 4;
        memcpy(list[k]->dims, list[k]->rank == 4 ? x : three, sizeof three);
    }
    if (rank == 3) n->q_num_heads = h, n->kv_num_heads = g;
    if (nonpad)
        n->nonpad_kv_seqlen = (qkv_onnx_tensor){ .type = QKV_ONNX_INT64, .rank = 1, .dims = { b } };
    if (fuzz_byte(r) % 2) {
        const int64_t full[4] = { b, h, sq, sk + (past ? p : 0) };
        n->attn_mask =
            (qkv_onnx_tensor){ .type = types[fuzz_byte(r) % 10], .rank = fuzz_byte(r) % 5 };
        for (int k = 0; k < n->attn_mask.rank; k++)
            n->attn_mask.dims[k] =
                fuzz_byte(r) % 3 ? full[4 - n->attn_mask.rank + k] : 1 + fuzz_byte(r) % 4;
    }
    const uint8_t changed = fuzz_byte(r);
    if (changed >= 230) list[changed % 5]->dims[fuzz_byte(r) % 4] = size(r);
}

static qkv_onnx_attention_node node_of(fuzz_reader *r) {
    qkv_onnx_attention_node n = qkv_onnx_attention_node_init();
    const uint8_t how = fuzz_byte(r);
    n.opset = 23 + how % 3;
    if (how >= 250) n.opset = (int8_t)fuzz_byte(r);
    if (fuzz_byte(r) < 200) {
        fit(&n, r);
    } else {
        qkv_onnx_tensor *const list[] = {
            &n.Q, &n.K, &n.V, &n.attn_mask, &n.past_key, &n.past_value, &n.nonpad_kv_seqlen
        };
        for (int k = 0; k < N_INPUTS; k++)
            if (k < 3 || fuzz_byte(r) % 3 == 0) *list[k] = tensor(r, k == 6 ? 1 : 4);
        n.q_num_heads = fuzz_byte(r) % 4, n.kv_num_heads = fuzz_byte(r) % 4;
    }
    n.is_causal = fuzz_byte(r) % 2;
    n.qk_matmul_output_mode = fuzz_byte(r) % 4;
    n.softmax_precision = (int64_t[]){ 0, 1, 10, 16, 11, 0, 0, 3 }[fuzz_byte(r) % 8];
    n.flags = n.opset >= 25 ? fuzz_byte(r) % 8 : fuzz_byte(r) % 2;
    n.scale = (float)((int8_t)fuzz_byte(r)) / 64;
    n.softcap = fuzz_byte(r) % 3 ? 0 : (float)((int8_t)fuzz_byte(r)) / 8;
    n.left_window_size = (int64_t)(fuzz_byte(r) % 20) - 2;
    n.right_window_size = (int64_t)(fuzz_byte(r) % 20) - 2;
    return n;
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

static double get(qkv_onnx_type type, const void *x, int64_t at) {
    if (type == QKV_ONNX_FLOAT) return (double)((const float *)x)[at];
    if (type == QKV_ONNX_DOUBLE) return ((const double *)x)[at];
    const uint16_t half = ((const uint16_t *)x)[at];
    return (double)(type == QKV_ONNX_FLOAT16 ? qkvi_f32_of_f16(half) : qkvi_f32_of_bf16(half));
}

static void put(qkv_onnx_type type, void *x, int64_t at, float value) {
    if (type == QKV_ONNX_FLOAT)
        ((float *)x)[at] = value;
    else if (type == QKV_ONNX_DOUBLE)
        ((double *)x)[at] = (double)value;
    else if (type == QKV_ONNX_FLOAT16)
        ((uint16_t *)x)[at] = qkvi_f16_of_f32(value);
    else if (type == QKV_ONNX_BFLOAT16)
        ((uint16_t *)x)[at] = qkvi_bf16_of_f32(value);
}

/* Numbers of -4 to 4 from the bytes, again and again; in a mask some are -infinity. */
static void *array_of(const qkv_onnx_tensor *t, bool mask, const uint8_t *bytes, size_t n_bytes,
                      int salt) {
    const int64_t n = count(t);
    uint8_t *x = fuzz_alloc((size_t)n * bytes_of(t->type));
    for (int64_t at = 0; at < n; at++) {
        const uint8_t byte =
            n_bytes ? (uint8_t)(bytes[(size_t)(at * 7 + salt) % n_bytes] * 29 + at + salt)
                    : (uint8_t)at;
        const size_t width = bytes_of(t->type);
        if (t->type == QKV_ONNX_FLOAT || t->type == QKV_ONNX_DOUBLE ||
            t->type == QKV_ONNX_FLOAT16 || t->type == QKV_ONNX_BFLOAT16) {
            put(t->type, x, at, mask && byte % 3 == 0 ? -INFINITY : (float)((int8_t)byte) / 32);
        } else {
            memset(x + (size_t)at * width, 0, width);
            x[(size_t)at * width] = mask ? byte % 4 : byte;
        }
    }
    return x;
}

/* ---- One node -------------------------------------------------------------------------------- */

typedef struct results {
    qkv_onnx_attention_outputs shapes;
    void *y, *y_loop, *scores, *weights;
} results;

static qkv_status run(qkv_ctx *ctx, qkv_onnx_attention_node n, int64_t mode, bool loop, void *y,
                      void *qk) {
    qkv_error error;
    n.qk_matmul_output_mode = mode;
    if (loop) n.softmax_precision = QKV_ONNX_DOUBLE;
    error.status = qkv_onnx_attention(ctx, &n, y, NULL, NULL, qk, NULL);
    strcpy(error.message, qkv_ctx_message(ctx));
    (void)fuzz_accepted(error.status, &error);
    return error.status;
}

/* Row `row` of [batch][heads][queries], and element c of its Y. */
static int64_t y_at(const results *r, int64_t row, int64_t c) {
    const qkv_onnx_tensor *y = &r->shapes.Y, *qk = &r->shapes.qk_matmul_output;
    const int64_t h = qk->dims[1], sq = qk->dims[2];
    if (y->rank == 4) return row * y->dims[3] + c;
    const int64_t dim = h ? y->dims[2] / h : 0, i = row % sq, head = row / sq % h, b = row / sq / h;
    return (b * sq + i) * y->dims[2] + head * dim + c;
}

static void check_row(const results *r, int64_t row, int64_t dim_v) {
    const qkv_onnx_type type = r->shapes.Y.type;
    const int64_t len_k = r->shapes.qk_matmul_output.dims[3];
    double sum = 0;
    int64_t n_seen = 0;
    for (int64_t j = 0; j < len_k; j++) {
        const double weight = get(type, r->weights, row * len_k + j);
        const bool seen = get(type, r->scores, row * len_k + j) != -INFINITY;
        FUZZ_CHECK(seen ? weight >= 0 : weight == 0);
        n_seen += seen;
        sum += weight;
    }
    FUZZ_CHECK(n_seen ? fabs(sum - 1) < 0.05 : sum == 0);
    for (int64_t c = 0; c < dim_v; c++) {
        const double y = get(type, r->y, y_at(r, row, c)),
                     loop = get(type, r->y_loop, y_at(r, row, c));
        FUZZ_CHECK(n_seen || (y == 0 && loop == 0));
        FUZZ_CHECK(fabs(y - loop) <= 4 * 0x1p-6);
    }
}

static void check_results(qkv_ctx *ctx, const qkv_onnx_attention_node *n, results *r,
                          int64_t mode) {
    const qkv_onnx_tensor *y = &r->shapes.Y, *qk = &r->shapes.qk_matmul_output;
    const int64_t n_y = count(y), n_qk = count(qk);
    if (n_y < 0 || n_qk < 0) return;
    r->y = fuzz_alloc((size_t)n_y * bytes_of(y->type));
    r->y_loop = fuzz_alloc((size_t)n_y * bytes_of(y->type));
    r->scores = fuzz_alloc((size_t)n_qk * bytes_of(y->type));
    r->weights = fuzz_alloc((size_t)n_qk * bytes_of(y->type));
    if (run(ctx, *n, mode, false, r->y, r->scores) == QKV_OK) {
        FUZZ_CHECK(run(ctx, *n, 2, true, r->y_loop, r->scores) == QKV_OK);
        FUZZ_CHECK(run(ctx, *n, 3, false, r->y, r->weights) == QKV_OK);
        const int64_t rows = qk->dims[0] * qk->dims[1] * qk->dims[2];
        for (int64_t row = 0; row < rows; row++) check_row(r, row, n_y / rows);
    } else {
        FUZZ_CHECK(n->nonpad_kv_seqlen.type); /* its numbers are all that the shapes cannot show */
    }
    free(r->y);
    free(r->y_loop);
    free(r->scores);
    free(r->weights);
}

static void check_node(qkv_ctx *ctx, qkv_onnx_attention_node n, const uint8_t *bytes,
                       size_t n_bytes) {
    qkv_onnx_tensor *const list[N_INPUTS] = {
        &n.Q, &n.K, &n.V, &n.attn_mask, &n.past_key, &n.past_value, &n.nonpad_kv_seqlen
    };
    void *arrays[N_INPUTS] = { NULL };
    results r = { .shapes = qkv_onnx_attention_outputs_init() };
    qkv_error error;
    size_t workspace;
    const qkv_status status = qkv_onnx_attention_shapes(&n, &r.shapes, &error);
    bool computes = fuzz_accepted(status, &error);
    if (!computes) FUZZ_CHECK(qkv_onnx_attention_workspace(ctx, &n, &workspace) == status);
    if (!computes) FUZZ_CHECK(qkv_onnx_attention(ctx, &n, NULL, NULL, NULL, NULL, NULL) == status);
    for (int k = 0; k < N_INPUTS; k++)
        computes = computes && (!list[k]->type || count(list[k]) >= 0);
    for (int k = 0; computes && k < N_INPUTS; k++)
        if (list[k]->type) list[k]->data = arrays[k] = array_of(list[k], k == 3, bytes, n_bytes, k);
    for (int64_t b = 0; computes && n.nonpad_kv_seqlen.type && b < n.nonpad_kv_seqlen.dims[0]; b++)
        ((int64_t *)arrays[6])[b] %= 42; /* 40 and 41 are too many */
    if (computes) check_results(ctx, &n, &r, n.qk_matmul_output_mode);
    for (int k = 0; k < N_INPUTS; k++) free(arrays[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    fuzz_reader reader = { bytes, n_bytes };
    qkv_ctx *ctx = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = 1;
    if (qkv_ctx_create(&options, &ctx, NULL) != QKV_OK) return 0;
    const qkv_onnx_attention_node node = node_of(&reader);
    check_node(ctx, node, reader.at, reader.left);
    qkv_ctx_free(ctx);
    return 0;
}
