/* Probes, maps, steps and alignments: qkv/inspect.h. */
#include <stdlib.h>
#include <string.h>

#include "oom/calls.h"
#include "qkv/effects.h"
#include "qkv/inspect.h"
#include "qkv/model.h"

static qkv_model *model;
static qkv_ctx *ctx;
static qkv_encoding *input;
static qkv_run *run;

enum { POINTS = 12, HEAD_DIM = 4 };

static struct {
    float q[POINTS * HEAD_DIM];
    double xy[4 * POINTS], pca[4 * POINTS];
    int32_t agree[POINTS];
    qkv_map_report report;
} map;

static void clear_map(void) {
    memset(&map, 0, sizeof map);
    map.report = qkv_map_report_init();
    for (int i = 0; i < POINTS * HEAD_DIM; i++) map.q[i] = (float)(i * 7 % 11);
}

static qkv_status make_map(qkv_error *error) {
    qkv_map_options options = qkv_map_options_init();
    options.n_iters = 20;
    options.n_runs = 12; /* more than are made at once, with two threads */
    return qkv_inspect_map(ctx, &options, POINTS, POINTS, HEAD_DIM, map.q, map.q, map.xy, map.pca,
                           map.agree, &map.report, NULL, error);
}

/* Barnes and Hut, and a scale that is looked for. */
static qkv_status make_tree_map(qkv_error *error) {
    qkv_map_options options = qkv_map_options_init();
    options.n_iters = 20;
    options.n_runs = 2;
    options.method = QKV_MAP_BARNES_HUT;
    options.auto_balance = 1;
    return qkv_inspect_map(ctx, &options, POINTS, POINTS, HEAD_DIM, map.q, map.q, map.xy, map.pca,
                           map.agree, &map.report, NULL, error);
}
static uint64_t take_map(void) { return oom_hash(0, &map, sizeof map); }

static qkv_head_probes *probes;
static qkv_probe_report report = { .struct_size = sizeof report };

static size_t probes_bytes(void) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    return (size_t)(info->n_layers * info->n_heads) * sizeof *probes;
}

static void clear_probes(void) {
    memset(probes, 0, probes_bytes());
    report = qkv_probe_report_init();
}

static qkv_status make_probes(qkv_error *error) {
    qkv_probe_options options = qkv_probe_options_init();
    options.n_texts = 9; /* two batches */
    options.period = 3;
    return qkv_inspect_probes(ctx, model, &options, probes, sizeof *probes, &report, NULL, error);
}
static uint64_t take_probes(void) {
    return oom_hash(oom_hash(0, probes, probes_bytes()), &report, sizeof report);
}
/* Where a query goes, number by number; pointers aside. */
static qkv_steps *steps;
static qkv_saturation saturation[2];
static float projections[3][64 * 64];

static void clear_steps(void) {
    qkv_steps_free(steps);
    steps = NULL;
    memset(saturation, 0, sizeof saturation);
    memset(projections, 0, sizeof projections);
}

static qkv_status make_steps(qkv_error *error) {
    return qkv_inspect_steps(model, run, 0, input, 1, 1, 2, &steps, error);
}
static uint64_t take_steps(void) {
    const uint64_t hash = oom_hash(0, steps->y, (size_t)steps->hidden * sizeof *steps->y);
    return oom_hash(hash, steps->weights, (size_t)steps->n * sizeof *steps->weights);
}
static void drop_steps(void) { clear_steps(); }

static qkv_status make_vectors(qkv_error *error) {
    static const float q[4], k[12] = { 1, 2, 3 }, v[12] = { 4, 5 };
    return qkv_inspect_vectors(ctx, 3, 4, 4, q, k, v, 1, 1, &steps, error);
}
static uint64_t take_vectors(void) { return oom_hash(0, steps->o, 4 * sizeof *steps->o); }

static qkv_status project(qkv_error *error) {
    return qkv_inspect_projections(model, input, 0, 0, projections[0], projections[1],
                                   projections[2], error);
}
static uint64_t take_projections(void) { return oom_hash(0, projections, sizeof projections); }

static qkv_status saturate(qkv_error *error) {
    return qkv_inspect_saturation(ctx, 8, 2, 3, 4, 1, saturation, sizeof *saturation, error);
}
static uint64_t take_saturation(void) { return oom_hash(0, saturation, sizeof saturation); }

/* Of an encoder-decoder: source and target are one text. */
enum { MOST = 16 };
static struct {
    qkv_model *model;
    qkv_encoding *input;
    qkv_run *run;
    qkv_aligned aligned[MOST];
    double log_p[MOST];
    qkv_candidate next[3];
    qkv_lens lens;
    double sums[64]; /* of 2 layers of 12 channels */
} pair;

static void clear_pair(void) {
    memset(pair.aligned, 0, sizeof pair.aligned);
    memset(pair.log_p, 0, sizeof pair.log_p);
    memset(pair.next, 0, sizeof pair.next);
    memset(&pair.lens, 0, sizeof pair.lens);
    memset(pair.sums, 0, sizeof pair.sums);
}

static qkv_status align(qkv_error *error) {
    return qkv_inspect_align(pair.run, 0, NULL, pair.aligned, sizeof *pair.aligned, NULL, error);
}
static uint64_t take_aligned(void) { return oom_hash(0, pair.aligned, sizeof pair.aligned); }

static qkv_status expect(qkv_error *error) {
    return qkv_inspect_expected(ctx, pair.model, pair.run, 0, pair.input->ids, pair.log_p, error);
}
static uint64_t take_expected(void) { return oom_hash(0, pair.log_p, sizeof pair.log_p); }

/* Single heads of cross-attention, and a pair of them. */
static qkv_status ablate(qkv_error *error) {
    static const int64_t position = 1, heads[] = { 0, 3, 0, 3 }, ends[] = { 1, 2, 4 };
    static const int32_t word = 5;
    qkv_effects asked = qkv_effects_init();
    asked.which = QKV_CROSS;
    asked.target = pair.input;
    asked.head = QKV_HEAD_NEXT;
    asked.n_places = 1;
    asked.positions = &position;
    asked.words = &word;
    asked.n_sets = 3;
    asked.ends = ends;
    asked.heads = heads;
    return qkv_inspect_effects(ctx, pair.model, pair.input, &asked, pair.log_p, NULL, error);
}
static qkv_status look_through(qkv_error *error) {
    pair.lens = qkv_lens_init();
    return qkv_inspect_lens(ctx, pair.model, pair.run, QKV_HEAD_NEXT, 0, 1, 1, 5, &pair.lens,
                            error);
}
static uint64_t take_lens(void) { return oom_hash(0, &pair.lens, sizeof pair.lens); }
static qkv_status add_outputs(qkv_error *error) {
    return qkv_run_add_outputs(pair.run, QKV_SELF, 0, pair.sums, error);
}
static uint64_t take_sums(void) { return oom_hash(0, pair.sums, sizeof pair.sums); }

static qkv_status next(qkv_error *error) {
    return qkv_model_candidates(ctx, pair.model, pair.run, QKV_HEAD_NEXT, 0, 2, 3, pair.next,
                                sizeof(qkv_candidate), error);
}
static uint64_t take_next(void) { return oom_hash(0, pair.next, sizeof pair.next); }

static void set_up_pair(const char *text) {
    qkv_error error;
    oom_must(qkv_model_open(QKV_TEST_DATA "/golden/decoder/marian_3", NULL, &pair.model, &error),
             &error);
    oom_must(qkv_tokenizer_encode(qkv_model_tokenizer(pair.model, QKV_SOURCE), text, strlen(text),
                                  NULL, 0, &pair.input, &error),
             &error);
    const qkv_encoding *const *const inputs = (const qkv_encoding *const *)&pair.input;
    oom_must(qkv_model_run(
                 ctx, pair.model, 1, inputs, QKV_RUN_CAPTURE | QKV_RUN_HIDDEN | QKV_RUN_OUTPUTS,
                 &(qkv_run_options){ .struct_size = sizeof(qkv_run_options), .targets = inputs },
                 &pair.run, &error),
             &error);
    oom_claim(pair.input->n <= MOST, "the text is short");
}

static void set_up(void) {
    static const char text[] = "The man was watching the dog when it left.";
    qkv_error error;
    oom_must(qkv_ctx_create(NULL, &ctx, &error), &error);
    oom_must(qkv_model_open(QKV_TEST_DATA "/golden/bert_old", NULL, &model, &error), &error);
    oom_must(qkv_tokenizer_encode(qkv_model_tokenizer(model, QKV_SOURCE), text, strlen(text), NULL,
                                  0, &input, &error),
             &error);
    oom_must(qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&input,
                           QKV_RUN_CAPTURE | QKV_RUN_HIDDEN, NULL, &run, &error),
             &error);
    set_up_pair("the man left");
    probes = malloc(probes_bytes());
    oom_claim(probes, "there is memory for a test");
}

static void tear_down(void) {
    free(probes);
    qkv_run_free(pair.run);
    qkv_encoding_free(pair.input);
    qkv_model_free(pair.model);
    qkv_run_free(run);
    qkv_encoding_free(input);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
}

static const oom_call calls[] = {
    { "qkv_inspect_align", "of a pair", clear_pair, align, take_aligned, NULL, 0, 0 },
    { "qkv_inspect_expected", "a target", clear_pair, expect, take_expected, NULL, 0, 0 },
    { "qkv_inspect_effects", "three sets", clear_pair, ablate, take_expected, NULL, 0, 0 },
    { "qkv_inspect_lens", "a layer", clear_pair, look_through, take_lens, NULL, 0, 0 },
    { "qkv_run_add_outputs", "a text", clear_pair, add_outputs, take_sums, NULL, 0, 0 },
    { "qkv_model_candidates", "three tokens", clear_pair, next, take_next, NULL, 0, 0 },
    { "qkv_inspect_probes", "random tokens", clear_probes, make_probes, take_probes, NULL, 0, 0 },
    { "qkv_inspect_steps", "a query", clear_steps, make_steps, take_steps, drop_steps, 0, 0 },
    { "qkv_inspect_vectors", "three keys", clear_steps, make_vectors, take_vectors, drop_steps, 0,
      0 },
    { "qkv_inspect_projections", "a head", clear_steps, project, take_projections, NULL, 0, 0 },
    { "qkv_inspect_saturation", "random vectors", clear_steps, saturate, take_saturation, NULL, 0,
      0 },
    { "qkv_inspect_map", "some points", clear_map, make_map, take_map, NULL, 0, 0 },
    { "qkv_inspect_map", "by groups", clear_map, make_tree_map, take_map, NULL, 0, 0 },
};

const oom_group oom_inspect = { "inspect", calls, sizeof calls / sizeof *calls, set_up, tear_down };
