/* Runs of encoder-decoders, and the logits of what follows: the rest of qkv/model.h's runs. */
#include "oom/calls.h"
#include "qkv/model.h"

#define BART QKV_TEST_DATA "/golden/decoder/bart_1"

enum { N_SOURCE = 4, N_TARGET = 3, N_WORDS = 53 };

static int32_t source_ids[N_SOURCE] = { 9, 22, 31, 2 }, target_ids[N_TARGET] = { 2, 7, 12 };
static const qkv_encoding source = { .n = N_SOURCE, .ids = source_ids };
static const qkv_encoding target = { .n = N_TARGET, .ids = target_ids };
static const qkv_encoding *const sources[] = { &source }, *const targets[] = { &target };

static qkv_ctx *ctx;
static qkv_model *model;
static qkv_run *run, *captured;
static qkv_capture last = { .struct_size = sizeof last };
static float weights[N_TARGET * N_SOURCE], logits[N_WORDS];

static qkv_status run_pair(qkv_error *error) {
    run = captured; /* must become NULL or a run */
    const qkv_status status = qkv_model_run(
        ctx, model, 1, sources, QKV_RUN_CAPTURE,
        &(qkv_run_options){ .struct_size = sizeof(qkv_run_options), .targets = targets }, &run,
        error);
    oom_claim(status == QKV_OK || !run, "run is NULL after a failure");
    return status;
}

static uint64_t hash_of(const qkv_capture *c) {
    const size_t queries = (size_t)(c->n_heads * c->n), keys = (size_t)(c->n_heads * c->n_keys);
    const size_t row = (size_t)c->head_dim * sizeof(float);
    const uint64_t hash = oom_hash(oom_hash(0, c->q, queries * row), c->k, keys * row);
    return oom_hash(hash, c->lse, queries * sizeof(float));
}

static uint64_t take_run(void) {
    qkv_capture c = qkv_capture_init();
    const qkv_status status = qkv_run_capture(run, QKV_DECODER, 0, 0, &c, NULL);
    oom_claim(status == QKV_OK, "a run of a pair has a decoder");
    return hash_of(&c);
}

static void drop_run(void) {
    qkv_run_free(run);
    run = NULL;
}

static qkv_status capture(qkv_error *error) {
    return qkv_run_capture(captured, QKV_CROSS, 0, 0, &last, error);
}
static uint64_t take_capture(void) { return hash_of(&last); }

static qkv_status find_weights(qkv_error *error) {
    return qkv_run_weights(captured, QKV_CROSS, 0, 0, 1, weights, error);
}
static uint64_t take_weights(void) { return oom_hash(0, weights, sizeof weights); }

static qkv_status lm(qkv_error *error) {
    return qkv_model_logits(ctx, model, captured, QKV_HEAD_NEXT, 0, N_TARGET - 1, logits, error);
}
static uint64_t take_logits(void) { return oom_hash(0, logits, sizeof logits); }

static void set_up(void) {
    qkv_error error;
    oom_must(qkv_model_open(BART, NULL, &model, &error), &error);
    oom_must(qkv_ctx_create(NULL, &ctx, &error), &error);
    oom_must(qkv_model_run(
                 ctx, model, 1, sources, QKV_RUN_CAPTURE,
                 &(qkv_run_options){ .struct_size = sizeof(qkv_run_options), .targets = targets },
                 &captured, &error),
             &error);
}

static void tear_down(void) {
    qkv_run_free(captured);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
}

static const oom_call calls[] = {
    { "qkv_model_run", "a pair", NULL, run_pair, take_run, drop_run, 0, 0 },
    { "qkv_run_capture", "cross-attention", NULL, capture, take_capture, NULL, 0, 0 },
    { "qkv_run_weights", "a head", NULL, find_weights, take_weights, NULL, 0, 0 },
    { "qkv_model_logits", "the last token", NULL, lm, take_logits, NULL, 0, 0 },
};

const oom_group oom_pairs = { "pairs", calls, sizeof calls / sizeof *calls, set_up, tear_down };
