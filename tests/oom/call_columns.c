/*
 * Attention seen from the keys: qkv/columns.h. Every call gets a context of its own, as in
 * call_attention.c.
 */
#include <string.h>

#include <qkv/columns.h>

#include "oom/calls.h"

enum { HEADS = 2, LEN = 300, DIM = 8, N = HEADS * LEN * DIM, TILES = 9, DIAGONALS = 2 * LEN - 1 };

static float q[N], k[N], v[N], o[N], lse[HEADS * LEN], received[HEADS * LEN], entropy[HEADS * LEN],
    diagonal[HEADS * DIAGONALS], mass[HEADS * TILES * TILES], p[LEN * LEN];
static qkv_attention_desc desc;
static qkv_attention_columns want;
static qkv_ctx *ctx;
static size_t bytes;

static qkv_status told(qkv_status status, qkv_error *error) {
    if (!error) return status;
    error->status = status;
    strcpy(error->message, qkv_ctx_message(ctx));
    return status;
}

static void new_ctx(void) {
    qkv_error error;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = 3;
    oom_must(qkv_ctx_create(&options, &ctx, &error), &error);
    for (int n = 0; n < HEADS * LEN; n++) received[n] = 7;
    p[0] = 7;
}

static void drop_ctx(void) {
    qkv_ctx_free(ctx);
    ctx = NULL;
}

static qkv_status pass(qkv_error *error) {
    const qkv_status status = qkv_attention_columns_pass(ctx, &desc, q, k, lse, &want, NULL);
    oom_claim(status == QKV_OK || received[0] == 7, "outputs are untouched after a failure");
    return told(status, error);
}

static uint64_t take_pass(void) {
    uint64_t hash = oom_hash(oom_hash(0, received, sizeof received), entropy, sizeof entropy);
    return oom_hash(oom_hash(hash, diagonal, sizeof diagonal), mass, sizeof mass);
}

static qkv_status size_pass(qkv_error *error) {
    return told(qkv_attention_columns_workspace(ctx, &desc, &want, &bytes), error);
}

static uint64_t take_bytes(void) { return oom_hash(0, &bytes, sizeof bytes); }

static qkv_status weights(qkv_error *error) {
    const qkv_status status =
        qkv_attention_weights(ctx, &desc, q, k, lse, 0, 1, 0, LEN, 0, LEN, p, LEN, NULL);
    oom_claim(status == QKV_OK || p[0] == 7, "weights are untouched after a failure");
    return told(status, error);
}

static uint64_t take_weights(void) { return oom_hash(0, p, sizeof p); }

static void set_up(void) {
    qkv_error error;
    qkv_attention_desc_contiguous(&desc, 1, HEADS, HEADS, LEN, LEN, DIM, DIM);
    qkv_attention_columns_contiguous(&want, &desc);
    want.received = received;
    want.entropy = entropy;
    want.diagonal = diagonal;
    want.n_tiles_q = want.n_tiles_k = TILES;
    want.tile_mass = mass;
    for (int i = 0; i < N; i++) {
        q[i] = (float)(i % 11) / 8;
        k[i] = (float)(i % 7) / 4;
    }
    new_ctx();
    oom_must(qkv_attention_forward(ctx, &desc, q, k, v, o, lse, NULL), &error);
    drop_ctx();
}

static const oom_call calls[] = {
    { "qkv_attention_columns_workspace", "300 tokens", new_ctx, size_pass, take_bytes, drop_ctx, 0,
      0 },
    { "qkv_attention_columns_pass", "300 tokens", new_ctx, pass, take_pass, drop_ctx, 0, 0 },
    { "qkv_attention_weights", "300 tokens", new_ctx, weights, take_weights, drop_ctx, 0, 0 },
};

const oom_group oom_columns = { "columns", calls, sizeof calls / sizeof *calls, set_up, NULL };
