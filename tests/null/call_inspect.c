/* inspect.h, patterns.h: see nulls.h. */
#include "null/models.h"
#include "null/nulls.h"
#include "qkv/effects.h"
#include "qkv/inspect.h"
#include "qkv/patterns.h"

enum { N = 3, D = 4, ROOM = 1 << 12 };
static qkv_head_probes probes[ROOM / 8];
static float floats[3][ROOM];
static double doubles[4][ROOM];
static int32_t ints[ROOM];
static uint8_t bytes[3][ROOM];
static const qkv_call_options call_options = { .struct_size = sizeof call_options };

static qkv_status some(int is_there) { return is_there ? QKV_OK : QKV_ERR_ARGUMENT; }
static const qkv_tokenizer *tokenizer(void) { return qkv_model_tokenizer(null_bert, QKV_SOURCE); }

static qkv_status inspect_probes(void) {
    qkv_probe_options options = qkv_probe_options_init();
    qkv_probe_report report = qkv_probe_report_init();
    return qkv_inspect_probes(P(0, null_ctx), P(1, null_bert), P(2, &options), P(3, probes),
                              sizeof *probes, P(4, &report), P(5, &call_options),
                              P(6, &null_error));
}
static qkv_status content(void) {
    qkv_inspect_content(P(0, tokenizer()), P(1, null_tokens), P(2, bytes[0]));
    return QKV_OK;
}
static qkv_status words(void) {
    return some(qkv_inspect_words(P(0, tokenizer()), P(1, null_tokens), P(2, ints)) > 0);
}
static qkv_status expected(void) {
    qkv_model *gpt2;
    qkv_run *run;
    const qkv_encoding input = { .n = 2, .ids = ints }, *const inputs[] = { &input };
    null_must(
        qkv_model_open(QKV_TEST_DATA "/golden/decoder/gpt2_1/mild", NULL, &gpt2, &null_error));
    null_must(qkv_model_run(null_ctx, gpt2, 1, inputs, 0, NULL, &run, &null_error));
    return qkv_inspect_expected(P(0, null_ctx), P(1, gpt2), P(2, run), 0, P(3, ints),
                                P(4, doubles[0]), P(5, &null_error));
}
static qkv_status effects(void) {
    static const int64_t position = 1, head = 0, end = 1;
    static const int32_t word = 5;
    qkv_effects asked = qkv_effects_init();
    asked.n_places = 1;
    asked.positions = &position;
    asked.words = &word;
    asked.n_sets = 1;
    asked.ends = &end;
    asked.heads = &head;
    return qkv_inspect_effects(P(0, null_ctx), P(1, null_bert), P(2, null_tokens), P(3, &asked),
                               P(4, doubles[0]), P(5, &call_options), P(6, &null_error));
}
static qkv_status lens(void) {
    qkv_lens made = qkv_lens_init();
    return qkv_inspect_lens(P(0, null_ctx), P(1, null_bert), P(2, null_run), QKV_HEAD_MASKED, 0, 1,
                            0, 5, P(3, &made), P(4, &null_error));
}
/* A run of null_bert that kept what heads give. */
static qkv_run *outputs_run(void) {
    qkv_run *run;
    const qkv_encoding *const inputs[] = { null_tokens };
    null_must(
        qkv_model_run(null_ctx, null_bert, 1, inputs, QKV_RUN_OUTPUTS, NULL, &run, &null_error));
    return run;
}
static qkv_status add_outputs(void) {
    return qkv_run_add_outputs(P(0, outputs_run()), QKV_SELF, 0, P(1, doubles[0]),
                               P(2, &null_error));
}
static qkv_status outputs(void) {
    return some(qkv_run_outputs(P(0, outputs_run()), QKV_SELF, 0, 0) != NULL);
}
static qkv_status align(void) {
    const qkv_align_options options = qkv_align_options_init();
    qkv_aligned aligned[8];
    return qkv_inspect_align(P(0, null_pair_run), 0, P(1, &options), P(2, aligned), sizeof *aligned,
                             P(3, doubles[0]), P(4, &null_error));
}
static qkv_status steps(void) {
    qkv_steps *made;
    return qkv_inspect_steps(P(0, null_bert), P(1, null_run), 0, P(2, null_tokens), 0, 0, 1,
                             P(3, &made), P(4, &null_error));
}
static qkv_status vectors(void) {
    qkv_steps *made;
    return qkv_inspect_vectors(P(0, null_ctx), N, D, D, P(1, floats[0]), P(2, floats[1]),
                               P(3, floats[2]), 1, 1, P(4, &made), P(5, &null_error));
}
static qkv_status steps_free(void) {
    qkv_steps *made;
    null_must(qkv_inspect_steps(null_bert, null_run, 0, null_tokens, 0, 0, 1, &made, &null_error));
    qkv_steps_free(P(0, made));
    return QKV_OK;
}
static qkv_status projections(void) {
    return qkv_inspect_projections(P(0, null_bert), P(1, null_tokens), 0, 1, P(2, floats[0]),
                                   P(3, floats[1]), P(4, floats[2]), P(5, &null_error));
}
static qkv_status saturation(void) {
    qkv_saturation rows[2];
    return qkv_inspect_saturation(P(0, null_ctx), D, 1, N, N, 1, P(1, rows), sizeof *rows,
                                  P(2, &null_error));
}
static qkv_status map(void) {
    qkv_map_options options = qkv_map_options_init();
    qkv_map_report report = qkv_map_report_init();
    options.n_iters = options.n_runs = 1;
    for (int i = 0; i < N * D; i++) floats[0][i] = (float)(i * i % 7 + 1);
    return qkv_inspect_map(P(0, null_ctx), P(1, &options), N, N, D, P(2, floats[0]),
                           P(3, floats[0]), P(4, doubles[0]), P(5, doubles[1]), P(6, ints),
                           P(7, &report), P(8, &call_options), P(9, &null_error));
}

/* ---- Patterns -------------------------------------------------------------------------------- */

static qkv_attention_desc desc;
static float lse[N];

static qkv_head_view head(void) {
    static float o[N * D];
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, N, N, D, D);
    null_must(
        qkv_attention_forward(null_ctx, &desc, floats[0], floats[0], floats[0], o, lse, NULL));
    return (qkv_head_view){ sizeof(qkv_head_view), &desc, floats[0], floats[0], lse, 0, 0 };
}

static qkv_status divergence(void) {
    const qkv_head_view x = head();
    qkv_divergence found = qkv_divergence_init();
    return qkv_inspect_divergence(P(0, null_ctx), P(1, &x), P(2, &x), 0.001, P(3, doubles[0]),
                                  P(4, &found), P(5, &call_options), P(6, &null_error));
}
static qkv_status rollout_step(void) {
    const qkv_head_view x = head();
    return qkv_inspect_rollout_step(P(0, null_ctx), P(1, &desc), P(2, x.q), P(3, x.k), P(4, lse),
                                    QKV_ROLLOUT_MEAN, P(5, floats[1]), P(6, floats[2]),
                                    P(7, &null_error));
}
static qkv_status rollout(void) {
    return qkv_inspect_rollout(P(0, null_ctx), P(1, null_bert), P(2, null_run), 0, 1, 2,
                               QKV_ROLLOUT_MEAN, P(3, floats[0]), P(4, &null_error));
}
static qkv_status rollout_map(void) {
    return qkv_inspect_rollout_map(P(0, null_ctx), P(1, null_bert), P(2, null_run), QKV_SELF, 0,
                                   QKV_ROLLOUT_MEAN, P(3, floats[0]), P(4, &null_error));
}
static qkv_status norms(void) {
    return qkv_inspect_norms(P(0, null_ctx), P(1, null_bert), P(2, null_run), QKV_SELF, 0, 0,
                             P(3, floats[0]), P(4, &null_error));
}
const null_call null_inspect[] = {
    { "qkv_inspect_probes", inspect_probes, "rrnrnnn" },
    { "qkv_inspect_content", content, "nnn" },
    { "qkv_inspect_words", words, "---" },
    { "qkv_inspect_expected", expected, "rrrrrn" },
    { "qkv_inspect_effects", effects, "rrrrrnn" },
    { "qkv_inspect_lens", lens, "rrrrn" },
    { "qkv_run_add_outputs", add_outputs, "rrn" },
    { "qkv_run_outputs", outputs, "-" },
    { "qkv_inspect_align", align, "rnrnn" },
    { "qkv_inspect_steps", steps, "rrrrn" },
    { "qkv_inspect_vectors", vectors, "rrrrrn" },
    { "qkv_steps_free", steps_free, "n" },
    { "qkv_inspect_projections", projections, "rrrrrn" },
    { "qkv_inspect_saturation", saturation, "rrn" },
    { "qkv_inspect_map", map, "rnrrrnnnnn" },
    { "qkv_inspect_divergence", divergence, "rrrnrnn" },
    { "qkv_inspect_rollout_step", rollout_step, "rrrrrrrn" },
    { "qkv_inspect_rollout", rollout, "rrrrn" },
    { "qkv_inspect_rollout_map", rollout_map, "rrrrn" },
    { "qkv_inspect_norms", norms, "rrrrn" },
    { 0 },
};
