/*
 * Heads cell by cell: qkv/patterns.h. Every call gets a context of its own, as in call_attention.c.
 */
#include <string.h>

#include <qkv/patterns.h>

#include "oom/calls.h"

enum { HEADS = 2, LEN = 90, DIM = 8, N = HEADS * LEN * DIM };

static float q[N], k[N], v[N], o[N], lse[HEADS * LEN], x[LEN], y[LEN], map[LEN * LEN];
static double rows[LEN];
static qkv_attention_desc desc;
static qkv_head_view views[HEADS];
static qkv_divergence divergence = { .struct_size = sizeof divergence };
static qkv_model *model;
static qkv_encoding *input;
static qkv_run *run;
static qkv_ctx *ctx;

static void new_ctx(void) {
    qkv_error error;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = 3;
    oom_must(qkv_ctx_create(&options, &ctx, &error), &error);
    divergence = qkv_divergence_init();
    memset(y, 0, sizeof y);
    memset(map, 0, sizeof map);
}

static void drop_ctx(void) {
    qkv_ctx_free(ctx);
    ctx = NULL;
}

static qkv_status compare(qkv_error *error) {
    return qkv_inspect_divergence(ctx, &views[0], &views[1], 0.001, rows, &divergence, NULL, error);
}
static uint64_t take_divergence(void) {
    return oom_hash(oom_hash(0, rows, sizeof rows), &divergence, sizeof divergence);
}

static qkv_status step(qkv_error *error) {
    return qkv_inspect_rollout_step(ctx, &desc, q, k, lse, QKV_ROLLOUT_MEAN, x, y, error);
}

static qkv_status step_max(qkv_error *error) {
    return qkv_inspect_rollout_step(ctx, &desc, q, k, lse, QKV_ROLLOUT_MAX, x, y, error);
}

static qkv_status roll(qkv_error *error) {
    return qkv_inspect_rollout(ctx, model, run, 0, 1, 2, QKV_ROLLOUT_MEAN, y, error);
}

static qkv_status roll_all(qkv_error *error) {
    return qkv_inspect_rollout_map(ctx, model, run, QKV_SELF, 0, QKV_ROLLOUT_MIN, map, error);
}

static qkv_status norms(qkv_error *error) {
    return qkv_inspect_norms(ctx, model, run, QKV_SELF, 0, 0, map, error);
}

static uint64_t take_map(void) { return oom_hash(0, map, sizeof map); }
static uint64_t take_y(void) { return oom_hash(0, y, sizeof y); }

static void set_up(void) {
    static const char text[] = "The man was watching the dog when it left.";
    qkv_error error;
    qkv_attention_desc_contiguous(&desc, 1, HEADS, HEADS, LEN, LEN, DIM, DIM);
    for (int n = 0; n < N; n++) q[n] = (float)(n % 11) / 8, k[n] = (float)(n % 7) / 4;
    for (int n = 0; n < LEN; n++) x[n] = (float)(n % 3);
    for (int h = 0; h < HEADS; h++)
        views[h] = (qkv_head_view){ sizeof *views, &desc, q, k, lse, 0, h };
    new_ctx();
    oom_must(qkv_attention_forward(ctx, &desc, q, k, v, o, lse, NULL), &error);
    oom_must(qkv_model_open(QKV_TEST_DATA "/golden/bert_old", NULL, &model, &error), &error);
    oom_must(qkv_tokenizer_encode(qkv_model_tokenizer(model, QKV_SOURCE), text, strlen(text), NULL,
                                  0, &input, &error),
             &error);
    oom_must(qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&input,
                           QKV_RUN_CAPTURE | QKV_RUN_HIDDEN, NULL, &run, &error),
             &error);
    drop_ctx();
}

static void tear_down(void) {
    qkv_run_free(run);
    qkv_encoding_free(input);
    qkv_model_free(model);
}

static const oom_call calls[] = {
    { "qkv_inspect_divergence", "90 tokens", new_ctx, compare, take_divergence, drop_ctx, 0, 0 },
    { "qkv_inspect_rollout_step", "90 tokens", new_ctx, step, take_y, drop_ctx, 0, 0 },
    { "qkv_inspect_rollout_step", "the largest", new_ctx, step_max, take_y, drop_ctx, 0, 0 },
    { "qkv_inspect_rollout", "a sentence", new_ctx, roll, take_y, drop_ctx, 0, 0 },
    { "qkv_inspect_rollout_map", "a sentence", new_ctx, roll_all, take_map, drop_ctx, 0, 0 },
    { "qkv_inspect_norms", "a sentence", new_ctx, norms, take_map, drop_ctx, 0, 0 },
};

const oom_group oom_patterns = { "patterns", calls, sizeof calls / sizeof *calls, set_up,
                                 tear_down };
