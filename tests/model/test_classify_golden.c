/*
 * Classifiers of texts, of tokens and of answers against transformers in float64
 * (tools/classify_cases.py), alone and in one batch: the same bits. And what is no classifier.
 */
#include "golden/golden_model.h"

enum { MAX_LABELS = 4, MAX_SEQUENCES = 16, MAX_TOKENS = 128 };

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

/* Rows of logits: one for each text, or one for each token. */
static int64_t n_rows(const golden *g, int64_t b) {
    return qkv_model_get_info(g->model)->label_task == QKV_LABELS_OF_TEXTS ? 1 : g->lengths[b];
}

/* Asked for the other kind of labels a classifier says which kind it has. */
static void ask(const golden *g, const qkv_run *run, int64_t b, float *logits) {
    const bool of_texts = qkv_model_get_info(g->model)->label_task == QKV_LABELS_OF_TEXTS;
    float other[MAX_TOKENS * MAX_LABELS];
    qkv_error error;
    const qkv_status status =
        of_texts ? qkv_model_classify(g->ctx, g->model, run, b, logits, &error)
                 : qkv_model_classify_tokens(g->ctx, g->model, run, b, logits, &error);
    if (status != QKV_OK) fail_msg("%s", error.message);
    assert_int_equal(of_texts ? qkv_model_classify_tokens(g->ctx, g->model, run, b, other, &error)
                              : qkv_model_classify(g->ctx, g->model, run, b, other, &error),
                     QKV_ERR_UNSUPPORTED);
    assert_string_equal(error.message,
                        of_texts ? "the classifier tells labels of texts: qkv_model_classify"
                                 : "the classifier tells labels of tokens: "
                                   "qkv_model_classify_tokens");
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
    for (int64_t b = 0; b < n; b++) {
        ask(g, run, b, logits);
        logits += n_rows(g, first + b) * n_labels;
    }
    qkv_run_free(run);
}

static void test_logits(void **state) {
    golden g;
    float together[MAX_TOKENS * MAX_LABELS], alone[MAX_TOKENS * MAX_LABELS];
    open_case(&g, *state);
    const int64_t n_labels = qkv_model_get_info(g.model)->n_labels, n = g.n_sequences;
    int64_t rows = 0, at = 0;
    for (int64_t b = 0; b < n; b++) rows += n_rows(&g, b);
    assert_true(n_labels > 0 && n_labels <= MAX_LABELS && n <= MAX_SEQUENCES);
    assert_true(rows <= MAX_TOKENS && g.n_tokens <= MAX_TOKENS);
    classify(&g, 0, n, together);
    compare(&g, "logits", together, (size_t)(rows * n_labels), 0);
    for (int64_t b = 0; b < n; at += n_rows(&g, b++) * n_labels) {
        classify(&g, b, 1, alone);
        assert_memory_equal(alone, together + at,
                            (size_t)(n_rows(&g, b) * n_labels) * sizeof *alone);
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
    assert_int_equal(qkv_model_classify_tokens(ctx, model, run, 0, logits, &error),
                     QKV_ERR_UNSUPPORTED);
    assert_string_equal(error.message, "no classifier");
    qkv_run_free(run);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
}

/* A decoder that classifies has no head for words, though its words are tied to none other. */
static void test_decoder(void **state) {
    golden g;
    (void)state;
    open_case(&g, "gpt2");
    const qkv_model_info *const info = qkv_model_get_info(g.model);
    assert_int_equal(info->label_pooling, QKV_POOLING_LAST);
    assert_int_equal(info->has_lm, 0);
    assert_int_equal(info->label_kind, QKV_LABELS_ONE);
    free(g.lengths);
    free(g.ids);
    qkvi_safetensors_close(g.expected);
    qkv_model_free(g.model);
    qkv_ctx_free(g.ctx);
}

int main(void) {
    static char names[][20] = {
        "bert",        "modernbert_cls",    "modernbert_mean", "roberta", "distilbert", "electra",
        "bert_tokens", "modernbert_tokens", "roberta_answers", "gpt2",    "llama",      "bloom"
    };
    const struct CMUnitTest tests[] = {
        { "bert", test_logits, NULL, NULL, names[0] },
        { "modernbert, first token", test_logits, NULL, NULL, names[1] },
        { "modernbert, mean", test_logits, NULL, NULL, names[2] },
        { "roberta", test_logits, NULL, NULL, names[3] },
        { "distilbert", test_logits, NULL, NULL, names[4] },
        { "electra", test_logits, NULL, NULL, names[5] },
        { "bert, tokens", test_logits, NULL, NULL, names[6] },
        { "modernbert, tokens", test_logits, NULL, NULL, names[7] },
        { "roberta, answers", test_logits, NULL, NULL, names[8] },
        { "gpt2, last token", test_logits, NULL, NULL, names[9] },
        { "llama, last token", test_logits, NULL, NULL, names[10] },
        { "bloom, last token", test_logits, NULL, NULL, names[11] },
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_decoder),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
