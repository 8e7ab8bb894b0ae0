/* Numbers about heads: qkv/inspect.h. */
#include <stdlib.h>
#include <string.h>

#include "oom/calls.h"
#include "qkv/inspect.h"
#include "qkv/model.h"

static qkv_model *model;
static qkv_ctx *ctx;
static qkv_encoding *input;
static qkv_run *run;
static qkv_head_stats *stats;
static qkv_sharpest sharpest;

static size_t stats_bytes(void) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    return (size_t)(info->n_layers * info->n_heads) * sizeof *stats;
}

static void clear(void) {
    memset(stats, 0, stats_bytes());
    memset(&sharpest, 0, sizeof sharpest);
}

static qkv_status heads(qkv_error *error) {
    return qkv_inspect_heads(model, run, 0, input, stats, error);
}
static uint64_t take_heads(void) { return oom_hash(0, stats, stats_bytes()); }

static qkv_status find_sharpest(qkv_error *error) {
    return qkv_inspect_sharpest(model, run, 0, NULL, NULL, NULL, &sharpest, error);
}
static uint64_t take_sharpest(void) { return oom_hash(0, &sharpest, sizeof sharpest); }

enum { POINTS = 12, HEAD_DIM = 4 };

static struct {
    float q[POINTS * HEAD_DIM];
    double xy[4 * POINTS], pca[4 * POINTS];
    int32_t agree[POINTS];
    qkv_map_report report;
} map;

static void clear_map(void) {
    memset(&map, 0, sizeof map);
    for (int i = 0; i < POINTS * HEAD_DIM; i++) map.q[i] = (float)(i * 7 % 11);
}

static qkv_status make_map(qkv_error *error) {
    qkv_map_options options = QKV_MAP_OPTIONS_INIT;
    options.n_iters = 20;
    options.n_runs = 12; /* more than are made at once, with two threads */
    return qkv_inspect_map(ctx, &options, POINTS, POINTS, HEAD_DIM, map.q, map.q, map.xy, map.pca,
                           map.agree, &map.report, NULL, error);
}
static uint64_t take_map(void) { return oom_hash(0, &map, sizeof map); }

static void set_up(void) {
    static const char text[] = "The man was watching the dog when it left.";
    qkv_error error;
    oom_must(qkv_ctx_create(NULL, &ctx, &error), &error);
    oom_must(qkv_model_open(QKV_TEST_DATA "/golden/bert_old", &model, &error), &error);
    oom_must(qkv_tokenizer_encode(qkv_model_tokenizer(model), text, strlen(text), NULL, 0, &input,
                                  &error),
             &error);
    oom_must(qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&input, QKV_RUN_CAPTURE,
                           &run, &error),
             &error);
    stats = malloc(stats_bytes());
    oom_claim(stats, "there is memory for a test");
}

static void tear_down(void) {
    free(stats);
    qkv_run_free(run);
    qkv_encoding_free(input);
    qkv_model_free(model);
    qkv_ctx_destroy(ctx);
}

static const oom_call calls[] = {
    { "qkv_inspect_heads", "a sentence", clear, heads, take_heads, NULL, 0, 0 },
    { "qkv_inspect_sharpest", "a word", clear, find_sharpest, take_sharpest, NULL, 0, 0 },
    { "qkv_inspect_map", "some points", clear_map, make_map, take_map, NULL, 0, 0 },
};

const oom_group oom_inspect = { "inspect", calls, sizeof calls / sizeof *calls, set_up, tear_down };
