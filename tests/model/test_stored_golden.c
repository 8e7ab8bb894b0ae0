/*
 * Weights as transformers saves them, in each type and in shards, against what torch makes of them
 * in f32: the same bits (tools/stored_cases.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "files/safetensors.h"
#include "model/model_impl.h"
#include "param_values.h"

#define STORED QKV_TEST_DATA "/golden/stored/"

static void expect_bits(const qkv_model *model, const char *folder) {
    qkvi_safetensors *expected;
    qkv_error error;
    char path[512];
    snprintf(path, sizeof path, STORED "%s/expected.safetensors", folder);
    if (qkvi_safetensors_open(path, &expected, &error)) fail_msg("%s", error.message);
    assert_int_equal(expected->n_tensors, model->params.n_rows);
    for (int64_t r = 0; r < model->params.n_rows; r++) {
        const qkvi_param *const row = &model->params.rows[r];
        const qkvi_stored *const stored = qkvi_safetensors_find(expected, row->name);
        float *const values = malloc(row->n_elems * sizeof *values);
        float *const kept = param_values(model, row);
        if (!stored) fail_msg("%s: no %s", folder, row->name);
        assert_int_equal(stored->n_elems, row->n_elems);
        assert_int_equal(qkvi_safetensors_read_raw(expected, stored, values, &error), QKV_OK);
        if (memcmp(values, kept, row->n_elems * sizeof *values) != 0)
            fail_msg("%s: other bits in %s", folder, row->name);
        free(kept);
        free(values);
    }
    qkvi_safetensors_close(expected);
}

static void test_bits(void **state) {
    (void)state;
    static const char *const folders[] = { "single", "double", "half", "bfloat", "sharded" };
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
        qkv_model *model;
        qkv_error error;
        char path[512];
        snprintf(path, sizeof path, STORED "%s", folders[f]);
        if (qkv_model_open(path, NULL, &model, &error)) fail_msg("%s", error.message);
        assert_null(qkv_model_unused(model, 0));
        expect_bits(model, folders[f]);
        qkv_model_free(model);
    }
}

/* The shards are listed, and an index can be opened by its own name; a shard cannot. */
static void test_shards(void **state) {
    (void)state;
    static const char *const files[] = { "model-00001-of-00003.safetensors",
                                         "model-00002-of-00003.safetensors",
                                         "model-00003-of-00003.safetensors", NULL };
    qkv_model *model;
    qkv_error error;
    if (qkv_model_open(STORED "sharded/model.safetensors.index.json", NULL, &model, &error))
        fail_msg("%s", error.message);
    expect_bits(model, "sharded");
    for (int f = 0; files[f]; f++) assert_string_equal(qkv_model_file(model, f), files[f]);
    assert_null(qkv_model_file(model, 3));
    assert_null(qkv_model_file(model, -1));
    qkv_model_free(model);
    if (qkv_model_open(STORED "single", NULL, &model, &error)) fail_msg("%s", error.message);
    assert_string_equal(qkv_model_file(model, 0), "model.safetensors");
    assert_null(qkv_model_file(model, 1));
    qkv_model_free(model);
    assert_int_equal(
        qkv_model_open(STORED "sharded/model-00002-of-00003.safetensors", NULL, &model, &error),
        QKV_ERR_ARGUMENT);
    assert_null(model);
    assert_non_null(strstr(error.message, "model-00002-of-00003.safetensors is one of several"));
    assert_non_null(strstr(error.message, "name their folder, " STORED "sharded, which"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
