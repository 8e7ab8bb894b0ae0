/*
 * Classifiers of BERT and of ModernBERT (first token, mean) against transformers in float64
 * (tools/classify_cases.py), alone and in one batch: the same bits. And what is no classifier of
 * texts.
 */
#include "golden_model.h"

enum { MAX_LABELS = 4, MAX_SEQUENCES = 16 };

static void open_case(golden *g, const char *name) {
    char path[512];
    qkv_error error;
    *g = (golden){ .name = name };
    snprintf(path, sizeof path, QKV_TEST_DATA "/golden/classify/%s", name);
    if (qkv_model_open(path, NULL, &g->model, &error) != QKV_OK) fail_msg("%s", error.message);
    strcat(path, "/expected.safetensors");
    if (qkvi_safetensors_open(path, &g->expected, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_int_equal(qkv_ctx_create(NULL, &g->ctx, NULL), QKV_OK);
    g->lengths = read_ints(g, "lengths", &g->n_sequences);
    g->ids = read_ints(g, "ids", &g->n_tokens);
}

/* Logits of n sequences that run together. */
static void classify(const golden *g, int64_t first, int64_t n, float *logits) {
    static uint8_t types[512];
    qkv_encoding inputs[MAX_SEQUENCES];
    const qkv_encoding *list[MAX_SEQUENCES] = { NULL };
    qkv_error error;
    qkv_run *run;
    int64_t at = 0;
    for (int64_t b = 0; b < first; b++) at += g->lengths[b];
    for (int64_t b = 0; b < n; at += inputs[b++].n) {
        inputs[b] =
            (qkv_encoding){ .n = g->lengths[first + b], .ids = g->ids + at, .types = types };
        list[b] = &inputs[b];
    }
    if (qkv_model_run(g->ctx, g->model, n, list, 0, NULL, &run, &error) != QKV_OK)
        fail_msg("%s", error.message);
    const int64_t n_labels = qkv_model_get_info(g->model)->n_labels;
    for (int64_t b = 0; b < n; b++)
        if (qkv_model_classify(g->ctx, g->model, run, b, logits + b * n_labels, &error) != QKV_OK)
            fail_msg("%s", error.message);
    qkv_run_free(run);
}

static void test_logits(void **state) {
    golden g;
    float together[MAX_SEQUENCES * MAX_LABELS], alone[MAX_LABELS];
    open_case(&g, *state);
    const int64_t n_labels = qkv_model_get_info(g.model)->n_labels, n = g.n_sequences;
    assert_true(n_labels > 0 && n_labels <= MAX_LABELS && n <= MAX_SEQUENCES);
    classify(&g, 0, n, together);
    compare(&g, "logits", together, (size_t)(n * n_labels), 0);
    for (int64_t b = 0; b < n; b++) {
        classify(&g, b, 1, alone);
        assert_memory_equal(alone, together + b * n_labels, (size_t)n_labels * sizeof *alone);
    }
    assert_null(qkv_model_unused(g.model, 0));
    print_message("%s: at most %.3f of the bound\n", g.name, (double)g.worst);
    free(g.lengths);
    free(g.ids);
    qkvi_safetensors_close(g.expected);
    qkv_model_free(g.model);
    qkv_ctx_free(g.ctx);
}

static void test_names(void **state) {
    golden g;
    (void)state;
    open_case(&g, "modernbert_mean");
    const qkv_model_info *const info = qkv_model_get_info(g.model);
    assert_int_equal(info->n_labels, 3);
    assert_int_equal(info->label_pooling, QKV_POOLING_MEAN);
    assert_string_equal(qkv_model_label(g.model, 0), "NEGATIVE");
    assert_string_equal(qkv_model_label(g.model, 1), "neutral, or none");
    assert_null(qkv_model_label(g.model, 3));
    assert_null(qkv_model_label(g.model, -1));
    assert_null(qkv_model_label(NULL, 0));
    free(g.lengths);
    free(g.ids);
    qkvi_safetensors_close(g.expected);
    qkv_model_free(g.model);
    qkv_ctx_free(g.ctx);
}

/* A model for masked words has none. */
static void test_none(void **state) {
    int32_t ids[] = { 2, 7, 3 };
    uint8_t types[3] = { 0 };
    const qkv_encoding input = { .n = 3, .ids = ids, .types = types }, *const list[] = { &input };
    float logits[4];
    qkv_model *model;
    qkv_ctx *ctx;
    qkv_run *run;
    qkv_error error;
    (void)state;
    assert_int_equal(
        qkv_model_open(QKV_TEST_DATA "/golden/llama/modernbert_1", NULL, &model, &error), QKV_OK);
    assert_int_equal(qkv_ctx_create(NULL, &ctx, NULL), QKV_OK);
    assert_int_equal(qkv_model_get_info(model)->n_labels, 0);
    assert_int_equal(qkv_model_run(ctx, model, 1, list, 0, NULL, &run, &error), QKV_OK);
    assert_int_equal(qkv_model_classify(ctx, model, run, 0, logits, &error), QKV_ERR_UNSUPPORTED);
    assert_string_equal(error.message, "no classifier");
    qkv_run_free(run);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
}

int main(void) {
    static char names[][16] = { "bert", "modernbert_cls", "modernbert_mean" };
    const struct CMUnitTest tests[] = {
        { "bert", test_logits, NULL, NULL, names[0] },
        { "modernbert, first token", test_logits, NULL, NULL, names[1] },
        { "modernbert, mean", test_logits, NULL, NULL, names[2] },
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
