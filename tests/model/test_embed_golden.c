/*
 * Vectors of sentences against sentence-transformers in float64 (tools/embed_cases.py): each kind
 * of pooling, from folders as its versions write them. Bound: 1e-5 of the largest channel. One
 * vector has the same bits alone, in a batch of any order, and for any number of threads.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "files/safetensors.h"
#include "qkv/model.h"

enum { N = 8, DIM = 20 };

typedef struct golden {
    qkv_model *model;
    qkv_ctx *ctx;
    qkv_encoding texts[N];
    const qkv_encoding *inputs[N];
    int32_t *ids;
    float expected[N * DIM];
} golden;

static void read_tensor(const qkvi_safetensors *file, const char *name, void *to) {
    const qkvi_stored *const stored = qkvi_safetensors_find(file, name);
    assert_non_null(stored);
    assert_int_equal(qkvi_safetensors_read_raw(file, stored, to, NULL), QKV_OK);
}

static void open_golden(golden *g, const char *mode, int n_threads) {
    char path[512];
    qkv_error error;
    qkvi_safetensors *file;
    int32_t lengths[N], total = 0;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = n_threads;
    snprintf(path, sizeof path, QKV_TEST_DATA "/golden/embed/%s", mode);
    if (qkv_model_open(path, NULL, &g->model, &error) != QKV_OK) fail_msg("%s", error.message);
    snprintf(path, sizeof path, QKV_TEST_DATA "/golden/embed/%s/expected.safetensors", mode);
    assert_int_equal(qkvi_safetensors_open(path, &file, NULL), QKV_OK);
    assert_int_equal(qkv_ctx_create(&options, &g->ctx, NULL), QKV_OK);
    read_tensor(file, "lengths", lengths);
    for (int b = 0; b < N; b++) total += lengths[b];
    g->ids = malloc((size_t)total * sizeof *g->ids);
    read_tensor(file, "ids", g->ids);
    read_tensor(file, "vectors", g->expected);
    for (int b = 0, at = 0; b < N; at += lengths[b++]) {
        g->texts[b] = (qkv_encoding){ .n = lengths[b], .ids = g->ids + at };
        g->inputs[b] = &g->texts[b];
    }
    qkvi_safetensors_close(file);
}

static void close_golden(golden *g) {
    free(g->ids);
    qkv_model_free(g->model);
    qkv_ctx_free(g->ctx);
}

static void embed(const golden *g, int n, const qkv_encoding *const *inputs, float *vectors) {
    qkv_error error;
    if (qkv_model_embed(g->ctx, g->model, n, inputs, NULL, vectors, &error) != QKV_OK)
        fail_msg("%s", error.message);
}

static void test_vectors(void **state) {
    golden g;
    float all[N * DIM], one[DIM], reversed[N * DIM];
    const qkv_encoding *backwards[N];
    open_golden(&g, *state, 1);
    assert_int_equal(qkv_model_get_info(g.model)->sentence_len, 23);
    embed(&g, N, g.inputs, all);
    for (int b = 0; b < N; b++) {
        float top = 0, off = 0, square = 0;
        for (int c = 0; c < DIM; c++) {
            top = fmaxf(top, fabsf(g.expected[b * DIM + c]));
            off = fmaxf(off, fabsf(all[b * DIM + c] - g.expected[b * DIM + c]));
            square += all[b * DIM + c] * all[b * DIM + c];
        }
        if (!(off <= 1e-5f * top))
            fail_msg("%s: text %d is off by %g", (char *)*state, b, (double)off);
        if (qkv_model_get_info(g.model)->normalizes) assert_true(fabsf(square - 1) < 1e-5f);
        embed(&g, 1, &g.inputs[b], one);
        assert_memory_equal(one, all + b * DIM, sizeof one);
        backwards[N - 1 - b] = g.inputs[b];
    }
    embed(&g, N, backwards, reversed);
    for (int b = 0; b < N; b++)
        assert_memory_equal(reversed + (N - 1 - b) * DIM, all + b * DIM, sizeof one);
    close_golden(&g);
    open_golden(&g, *state, 3);
    embed(&g, N, g.inputs, reversed);
    assert_memory_equal(reversed, all, sizeof all);
    close_golden(&g);
}

/* What is asked for goes before what the files say. */
static void test_options(void **state) {
    golden mean, cls;
    qkv_embed_options options = qkv_embed_options_init();
    float a[N * DIM], b[N * DIM];
    qkv_error error;
    (void)state;
    open_golden(&mean, "mean", 1);
    open_golden(&cls, "cls", 1);
    options.pooling = QKV_POOLING_MEAN;
    assert_int_equal(qkv_model_embed(cls.ctx, cls.model, N, cls.inputs, &options, a, NULL), QKV_OK);
    options.normalize = 1;
    assert_int_equal(qkv_model_embed(cls.ctx, cls.model, N, cls.inputs, &options, b, NULL), QKV_OK);
    for (int i = 0; i < N; i++) {
        float square = 0;
        for (int c = 0; c < DIM; c++) square += a[i * DIM + c] * a[i * DIM + c];
        for (int c = 0; c < DIM; c++)
            assert_true(fabsf(b[i * DIM + c] - a[i * DIM + c] / sqrtf(square)) < 1e-6f);
    }
    options = (qkv_embed_options)qkv_embed_options_init();
    options.normalize = -1;
    assert_int_equal(qkv_model_embed(mean.ctx, mean.model, 1, mean.inputs, &options, a, NULL),
                     QKV_OK);
    float square = 0;
    for (int c = 0; c < DIM; c++) square += a[c] * a[c];
    assert_true(fabsf(square - 1) > 1e-3f);

    options.pooling = QKV_POOLING_LAST + 1;
    assert_int_equal(qkv_model_embed(mean.ctx, mean.model, 1, mean.inputs, &options, a, &error),
                     QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "pooling = 7 is none");
    assert_int_equal(qkv_model_embed(mean.ctx, mean.model, 0, mean.inputs, NULL, a, &error),
                     QKV_ERR_SHAPE);
    assert_int_equal(qkv_model_embed(mean.ctx, mean.model, 1, mean.inputs, NULL, NULL, &error),
                     QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "vectors is NULL");
    close_golden(&mean);
    close_golden(&cls);
}

int main(void) {
    char mean[] = "mean", cls[] = "cls", max[] = "max", root[] = "mean_sqrt_len_tokens";
    char weighted[] = "weightedmean", last[] = "lasttoken";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_vectors, mean),
        cmocka_unit_test_prestate(test_vectors, cls),
        cmocka_unit_test_prestate(test_vectors, max),
        cmocka_unit_test_prestate(test_vectors, root),
        cmocka_unit_test_prestate(test_vectors, weighted),
        cmocka_unit_test_prestate(test_vectors, last),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests_name("embed", tests, NULL, NULL);
}
