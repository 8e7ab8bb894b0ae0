/**
 * Sentences against sentence-transformers 6 in float64 (tools/sentence_cases.py): prompts, which
 * may be left out of the pooling, lower case, limits, poolings side by side, Dense, LayerNorm and
 * Normalize behind them. Ids are equal, vectors within 1e-5 of the largest number, with the same
 * bits alone and together.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "qkv/model.h"

enum { MAX_CASES = 64, MAX_DIM = 64 };

typedef struct golden {
    qkv_ctx *ctx;
    qkv_model *model;
    json_t *root;
    const json_t *cases;
} golden;

static void open_golden(golden *g, const char *name, int n_threads) {
    char path[512];
    qkv_error error;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = n_threads;
    assert_int_equal(qkv_ctx_create(&options, &g->ctx, NULL), QKV_OK);
    snprintf(path, sizeof path, QKV_TEST_DATA "/golden/sentence/%s", name);
    if (qkv_model_open(path, NULL, &g->model, &error) != QKV_OK) fail_msg("%s", error.message);
    strcat(path, "/expected.json");
    g->root = json_load_file(path, 0, NULL);
    assert_non_null(g->root);
    g->cases = json_object_get(g->root, "cases");
    assert_in_range(json_array_size(g->cases), 1, MAX_CASES);
}

static void close_golden(golden *g) {
    json_decref(g->root);
    qkv_model_free(g->model);
    qkv_ctx_free(g->ctx);
}

/* The text of a prompt by its name; of the default one without. */
static const char *prompt_of(const golden *g, const char *name) {
    const qkv_prompt *prompt;
    for (int64_t p = 0; (prompt = qkv_model_prompt(g->model, p)); p++)
        if (name ? strcmp(name, prompt->name) == 0 : prompt->is_default) return prompt->text;
    assert_null(name);
    return NULL;
}

static qkv_encoding *encode(const golden *g, size_t which, int64_t *n_prompt) {
    const json_t *c = json_array_get(g->cases, which);
    const char *text = json_string_value(json_object_get(c, "text"));
    const char *prompt = prompt_of(g, json_string_value(json_object_get(c, "prompt")));
    qkv_encoding *encoding = NULL;
    qkv_error error;
    if (qkv_model_encode_sentence(g->model, prompt, text, strlen(text), &encoding, n_prompt,
                                  &error) != QKV_OK)
        fail_msg("%s", error.message);
    const int64_t most = qkv_model_get_info(g->model)->sentence_len;
    if (encoding->n > most)
        qkv_tokenizer_cut(qkv_model_tokenizer(g->model, QKV_SOURCE), encoding, most);
    return encoding;
}

static void embed(const golden *g, int64_t n, const qkv_encoding *const *inputs, int64_t n_prompt,
                  float *vectors) {
    qkv_embed_options options = qkv_embed_options_init();
    qkv_error error;
    options.n_prompt = n_prompt;
    if (qkv_model_embed(g->ctx, g->model, n, inputs, &options, vectors, &error) != QKV_OK)
        fail_msg("%s", error.message);
}

static void check_vector(const json_t *wanted, const float *vector, int64_t dim, size_t which) {
    double top = 0, off = 0;
    assert_int_equal(json_array_size(wanted), dim);
    for (int64_t i = 0; i < dim; i++) {
        const double x = json_real_value(json_array_get(wanted, (size_t)i));
        top = fmax(top, fabs(x));
        off = fmax(off, fabs(x - (double)vector[i]));
    }
    if (!(off <= 1e-5 * top)) fail_msg("case %zu is off by %g of %g", which, off, top);
}

static void test_cases(void **state) {
    golden g, more;
    open_golden(&g, *state, 1);
    open_golden(&more, *state, 3);
    const int64_t dim = qkv_model_get_info(g.model)->sentence_dim;
    assert_in_range(dim, 1, MAX_DIM);
    for (size_t i = 0; i < json_array_size(g.cases); i++) {
        const json_t *c = json_array_get(g.cases, i), *ids = json_object_get(c, "ids");
        int64_t n_prompt = -1;
        qkv_encoding *encoding = encode(&g, i, &n_prompt);
        float alone[MAX_DIM], together[3 * MAX_DIM];
        if (encoding->n != (int64_t)json_array_size(ids))
            fail_msg("case %zu has %lld tokens", i, (long long)encoding->n);
        for (int64_t t = 0; t < encoding->n; t++)
            assert_int_equal(encoding->ids[t], json_integer_value(json_array_get(ids, (size_t)t)));
        assert_int_equal(n_prompt, json_integer_value(json_object_get(c, "n_prompt")));
        const qkv_encoding *const inputs[] = { encoding, encoding, encoding };
        embed(&g, 1, inputs, n_prompt, alone);
        check_vector(json_object_get(c, "vector"), alone, dim, i);
        embed(&more, 3, inputs, n_prompt, together);
        for (int b = 0; b < 3; b++)
            assert_memory_equal(together + b * dim, alone, (size_t)dim * sizeof *alone);
        qkv_encoding_free(encoding);
    }
    close_golden(&g);
    close_golden(&more);
}

/* What is asked for goes before the files: a pooling alone, lengths of 1 or not. */
static void test_options(void **state) {
    golden g;
    int64_t n_prompt;
    float vector[MAX_DIM], other[MAX_DIM];
    qkv_embed_options options = qkv_embed_options_init();
    double square = 0;
    (void)state;
    open_golden(&g, "bert", 1);
    const qkv_model_info *info = qkv_model_get_info(g.model);
    assert_int_equal(info->sentence_dim, 5);
    assert_int_equal(info->sentence_layers, 4);
    assert_false(info->normalizes); /* what is left of a vector of length 1 has none */
    qkv_encoding *encoding = encode(&g, 1, &n_prompt);
    const qkv_encoding *const inputs[] = { encoding };
    options.pooling = QKV_POOLING_MEAN;
    assert_int_equal(qkv_model_embed(g.ctx, g.model, 1, inputs, &options, vector, NULL), QKV_OK);
    options.n_prompt = 1; /* the mean without the first token */
    assert_int_equal(qkv_model_embed(g.ctx, g.model, 1, inputs, &options, other, NULL), QKV_OK);
    assert_memory_not_equal(vector, other, 12 * sizeof *vector);
    options.pooling = QKV_POOLING_CLS; /* nothing is left to pool */
    options.n_prompt = 99;
    assert_int_equal(qkv_model_embed(g.ctx, g.model, 1, inputs, &options, vector, NULL), QKV_OK);
    options.n_prompt = 0;
    assert_int_equal(qkv_model_embed(g.ctx, g.model, 1, inputs, &options, other, NULL), QKV_OK);
    assert_memory_equal(vector, other, 12 * sizeof *vector);
    options = (qkv_embed_options)qkv_embed_options_init();
    options.normalize = 1;
    assert_int_equal(qkv_model_embed(g.ctx, g.model, 1, inputs, &options, vector, NULL), QKV_OK);
    for (int i = 0; i < 5; i++) square += (double)vector[i] * (double)vector[i];
    assert_true(fabs(square - 1) < 1e-6);
    options.normalize = 0;
    options.n_prompt = -1;
    qkv_error error;
    assert_int_equal(qkv_model_embed(g.ctx, g.model, 1, inputs, &options, vector, &error),
                     QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "n_prompt = -1 is negative");
    qkv_encoding_free(encoding);
    close_golden(&g);
}

static void test_misuse(void **state) {
    golden g;
    qkv_encoding *encoding = (qkv_encoding *)1;
    int64_t n_prompt = 7;
    qkv_error error;
    (void)state;
    open_golden(&g, "roberta", 1);
    assert_int_equal(qkv_model_encode_sentence(NULL, NULL, "a", 1, &encoding, &n_prompt, &error),
                     QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "model is NULL");
    assert_int_equal(qkv_model_encode_sentence(g.model, NULL, "a", 1, &encoding, NULL, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(
        qkv_model_encode_sentence(g.model, "p: ", NULL, 1, &encoding, &n_prompt, &error),
        QKV_ERR_ARGUMENT);
    assert_null(encoding);
    assert_int_equal(
        qkv_model_encode_sentence(g.model, "p: ", "\xFF", 1, &encoding, &n_prompt, &error),
        QKV_ERR_FORMAT);
    assert_int_equal(
        qkv_model_encode_sentence(g.model, "\xFF", "a", 1, &encoding, &n_prompt, &error),
        QKV_ERR_FORMAT);
    assert_null(qkv_model_prompt(g.model, -1));
    assert_null(qkv_model_prompt(g.model, 3));
    assert_non_null(qkv_model_prompt(g.model, 1));
    close_golden(&g);
}

int main(void) {
    char bert[] = "bert", roberta[] = "roberta";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_cases, bert),
        cmocka_unit_test_prestate(test_cases, roberta),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests_name("sentence", tests, NULL, NULL);
}
