/*
 * A run made by hand, with any captures: defines the functions of model.h that src/inspect calls.
 * To be included after cmocka.
 */
#ifndef HAND_RUN_H
#define HAND_RUN_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "qkv/inspect.h"

enum { CLS, SEP, MASK, UNK, DOT, DOOR, THE, WATCH, ING, IT, SELF, PAD, N_VOCAB };
static const char vocab[] =
    "[CLS]\n[SEP]\n[MASK]\n[UNK]\n.\ndoor\nthe\nwatch\n##ing\nit\n##self\n[PAD]\n";

enum { MAX_N = 70, N_LAYERS = 2, N_HEADS = 2 };

struct qkv_model {
    qkv_model_info info;
    qkv_tokenizer *tokenizer;
};

/* Head dimension n: q is the logarithm of the weights, k the identity, so p = exp(q - lse). */
struct qkv_run {
    int64_t n;
    float q[N_LAYERS][N_HEADS * MAX_N * MAX_N], k[N_HEADS * MAX_N * MAX_N];
    float lse[N_HEADS * MAX_N];
    int causal;
    const uint8_t *seen;
};

qkv_status qkvi_run_weight_rows(const qkv_run *r, qkv_attention_kind which, int64_t b,
                                int64_t layer, int64_t head, int64_t first, int64_t n_rows,
                                float *weights, qkv_error *error);

static struct qkv_run run;
static struct qkv_model model = { .info = { .n_layers = N_LAYERS, .n_heads = N_HEADS } };

const qkv_model_info *qkv_model_get_info(const qkv_model *m) { return &m->info; }
const qkv_tokenizer *qkv_model_tokenizer(const qkv_model *m, qkv_side side) {
    return side == QKV_SOURCE ? m->tokenizer : NULL;
}

qkv_status qkv_run_capture(const qkv_run *r, qkv_attention_kind which, int64_t b, int64_t layer,
                           qkv_capture *capture, qkv_error *error) {
    (void)which;
    (void)error;
    if (b != 0 || layer < 0 || layer >= N_LAYERS) return QKV_ERR_ARGUMENT;
    *capture = (qkv_capture){ .struct_size = sizeof *capture,
                              .q = r->q[layer],
                              .k = r->k,
                              .lse = r->lse,
                              .n_heads = N_HEADS,
                              .n = r->n,
                              .head_dim = r->n,
                              .scale = 1,
                              .causal = r->causal,
                              .seen = r->seen,
                              .n_keys = r->n,
                              .n_kv_heads = N_HEADS,
                              .window_left = -1,
                              .window_right = -1 };
    return QKV_OK;
}

bool qkvi_run_decodes(const qkv_run *r, qkv_attention_kind which);
bool qkvi_run_decodes(const qkv_run *r, qkv_attention_kind which) {
    (void)which;
    return r->causal;
}

static inline float *log_weight(int64_t layer, int64_t head, int64_t i, int64_t j) {
    return &run.q[layer][(head * run.n + i) * run.n + j];
}

qkv_status qkvi_run_weight_rows(const qkv_run *r, qkv_attention_kind which, int64_t b,
                                int64_t layer, int64_t head, int64_t first, int64_t n_rows,
                                float *weights, qkv_error *error) {
    (void)which;
    (void)b;
    (void)error;
    for (int64_t i = 0; i < n_rows * r->n; i++) {
        const int64_t row = head * r->n + first + i / r->n;
        weights[i] = expf(r->q[layer][row * r->n + i % r->n] - r->lse[row]);
    }
    return QKV_OK;
}

/* Uniform weights everywhere. */
static inline void begin_run(int64_t n) {
    run.n = n;
    run.causal = 0;
    run.seen = NULL;
    memset(run.k, 0, sizeof run.k);
    memset(run.lse, 0, sizeof run.lse);
    for (int64_t head = 0; head < N_HEADS; head++) {
        for (int64_t i = 0; i < n; i++) {
            run.k[(head * n + i) * n + i] = 1;
            for (int64_t layer = 0; layer < N_LAYERS; layer++)
                for (int64_t j = 0; j < n; j++) *log_weight(layer, head, i, j) = -logf((float)n);
        }
    }
}

/* Sets one weight of a row; its other weights are equal, and the row sums to 1. */
static inline void set_weight(int64_t layer, int64_t head, int64_t i, int64_t j, float p) {
    for (int64_t t = 0; t < run.n; t++)
        *log_weight(layer, head, i, t) = logf(t == j ? p : (1 - p) / (float)(run.n - 1));
}

static int32_t ids[MAX_N];
static uint8_t special[MAX_N];

static inline qkv_encoding input_of(int64_t n, const int32_t *tokens) {
    for (int64_t i = 0; i < n; i++) {
        ids[i] = tokens[i];
        special[i] = tokens[i] == CLS || tokens[i] == SEP || tokens[i] == MASK || tokens[i] == PAD;
    }
    return (qkv_encoding){ .n = n, .ids = ids, .special = special };
}

static qkv_ctx *ctx;

static int begin_tests(void **state) {
    (void)state;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) return -1;
    return qkv_tokenizer_open_memory(vocab, sizeof vocab - 1, NULL, 0, &model.tokenizer, NULL);
}

static int end_tests(void **state) {
    (void)state;
    qkv_tokenizer_free(model.tokenizer);
    qkv_ctx_free(ctx);
    return 0;
}

static inline void near(double value, double wanted) {
    if (!(fabs(value - wanted) < 1e-6)) fail_msg("%.9g is not %.9g", value, wanted);
}

#endif
