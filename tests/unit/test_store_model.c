/*
 * Opening models: the two tiny BERTs of tests/golden under every spelling of their tensors, and
 * each way in which a file can disagree with config.json. Changed checkpoints are made here by
 * writing the tensors again under other names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/model_impl.h"
#include "model/store/file.h"
#include "model/store/safetensors.h"

#define OLD QKV_TEST_DATA "/golden/bert_old"
#define NEW QKV_TEST_DATA "/golden/bert_new"

enum { MAX_TENSORS = 100 };

/* ---- A checkpoint in memory that can be changed ---------------------------------------------- */

typedef struct checkpoint {
    qkvi_stored_out tensors[MAX_TENSORS];
    char names[MAX_TENSORS][128];
    void *raw[MAX_TENSORS];
    int64_t n;
    const char *metadata_key, *metadata_value;
} checkpoint;

static checkpoint *load(const char *folder) {
    char path[512];
    qkvi_safetensors *file;
    qkv_error error;
    checkpoint *const c = calloc(1, sizeof *c);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    if (qkvi_safetensors_open(path, &file, &error) != QKV_OK) fail_msg("%s", error.message);
    for (c->n = 0; c->n < file->n_tensors; c->n++) {
        const qkvi_stored *const from = &file->tensors[c->n];
        c->raw[c->n] = malloc((size_t)(from->end - from->begin) + 1);
        assert_int_equal(qkvi_safetensors_read_raw(file, from, c->raw[c->n], &error), QKV_OK);
        snprintf(c->names[c->n], sizeof c->names[0], "%s", from->name);
        c->tensors[c->n] =
            (qkvi_stored_out){ c->names[c->n], from->type, from->rank, { 0 }, c->raw[c->n] };
        memcpy(c->tensors[c->n].shape, from->shape, sizeof from->shape);
    }
    qkvi_safetensors_close(file);
    return c;
}

static void drop(checkpoint *c) {
    for (int64_t t = 0; t < MAX_TENSORS; t++) free(c->raw[t]);
    free(c);
}

static qkvi_stored_out *find(checkpoint *c, const char *name) {
    for (int64_t t = 0; t < c->n; t++)
        if (strcmp(c->tensors[t].name, name) == 0) return &c->tensors[t];
    fail_msg("no tensor %s", name);
    return NULL;
}

static void rename_tensor(checkpoint *c, const char *name, const char *to) {
    find(c, name)->name = to;
}

static void remove_tensor(checkpoint *c, const char *name) { *find(c, name) = c->tensors[--c->n]; }

static void add_tensor(checkpoint *c, const char *name, qkvi_elem type, int64_t n) {
    c->raw[c->n] = calloc((size_t)n, qkvi_elem_bytes(type));
    c->tensors[c->n] = (qkvi_stored_out){ name, type, 1, { n }, c->raw[c->n] };
    c->n++;
}

/* Opens the checkpoint with config.json and vocab.txt of a golden folder. */
static qkv_status open_with(checkpoint *c, const char *golden, const char *folder,
                            qkv_model **model, qkv_error *error) {
    char path[512], *config, *vocab, *weights;
    size_t n_config, n_vocab, n_weights;
    snprintf(path, sizeof path, "%s/config.json", golden);
    assert_int_equal(qkvi_file_load(path, 1 << 20, &config, &n_config, error), QKV_OK);
    snprintf(path, sizeof path, "%s/vocab.txt", golden);
    assert_int_equal(qkvi_file_load(path, 1 << 20, &vocab, &n_vocab, error), QKV_OK);
    snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    assert_int_equal(
        qkvi_safetensors_write(path, c->tensors, c->n, c->metadata_key, c->metadata_value, error),
        QKV_OK);
    assert_int_equal(qkvi_file_load(path, 1 << 20, &weights, &n_weights, error), QKV_OK);
    unlink(path);
    const qkv_status status = qkv_model_open_memory(config, n_config, vocab, n_vocab, weights,
                                                    n_weights, NULL, model, error);
    free(config);
    free(vocab);
    free(weights); /* everything has been copied into the arena */
    return status;
}

/* ---- Valid models ---------------------------------------------------------------------------- */

static void test_info(void **state) {
    (void)state;
    qkv_model *model;
    qkv_error error;
    if (qkv_model_open(OLD, &model, &error) != QKV_OK) fail_msg("%s", error.message);
    const qkv_model_info *const info = qkv_model_get_info(model);
    assert_string_equal(info->architecture, "bert");
    assert_string_equal(info->source, OLD);
    assert_int_equal(info->n_layers, 2);
    assert_int_equal(info->n_heads, 2);
    assert_int_equal(info->hidden, 20);
    assert_int_equal(info->head_dim, 10);
    assert_int_equal(info->vocab_size, 53);
    assert_int_equal(info->max_len, 23);
    assert_true(info->has_mlm && info->has_nsp && info->has_pooler);
    assert_int_equal(info->n_parameters, 53 * 20 + 23 * 20 + 2 * 20 + 40 /* embeddings */
                                             + 2 * (4 * (400 + 20) + 40 + 2 * 20 * 37 + 57 + 40) +
                                             420 + 420 + 40 + 53 + 42);
    assert_null(qkv_model_unused(model, 0));
    assert_null(qkv_model_unused(model, -1));
    assert_non_null(qkv_model_tokenizer(model));
    qkv_model_free(model);
    qkv_model_free(NULL);
}

/* The same arena whatever the spelling. */
static void expect_same_model(checkpoint *c, const char *golden, const char *folder) {
    qkv_model *expected, *model;
    qkv_error error;
    if (qkv_model_open(golden, &expected, &error) != QKV_OK) fail_msg("%s", error.message);
    if (open_with(c, golden, folder, &model, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_int_equal(model->params.n_elems, expected->params.n_elems);
    assert_memory_equal(model->arena, expected->arena, model->params.n_elems * sizeof(float));
    qkv_model_free(model);
    qkv_model_free(expected);
}

static void test_spellings(void **state) {
    checkpoint *c = load(OLD);
    for (int64_t t = 0; t < c->n; t++) { /* bert.X as X: rule 2, with gamma and beta: rule 3 */
        char *const name = c->names[t];
        if (strncmp(name, "bert.", 5) == 0) memmove(name, name + 5, strlen(name) - 4);
    }
    expect_same_model(c, OLD, *state);
    drop(c);
    c = load(NEW);
    for (int64_t t = 0; t < c->n; t++) { /* X as bert.X */
        char longer[160];
        if (strncmp(c->names[t], "cls.", 4) == 0) continue;
        snprintf(longer, sizeof longer, "bert.%s", c->names[t]);
        snprintf(c->names[t], sizeof c->names[t], "%.100s", longer);
    }
    expect_same_model(c, NEW, *state);
    drop(c);
}

static void test_ties_and_aliases(void **state) {
    checkpoint *c = load(OLD);
    rename_tensor(c, "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight");
    rename_tensor(c, "cls.predictions.bias", "cls.predictions.decoder.bias");
    expect_same_model(c, OLD, *state);
    drop(c);
    c = load(OLD);
    rename_tensor(c, "bert.embeddings.word_embeddings.weight", "shared");
    c->metadata_key = "bert.embeddings.word_embeddings.weight";
    c->metadata_value = "shared";
    expect_same_model(c, OLD, *state);
    drop(c);
}

static void test_unused(void **state) {
    checkpoint *const c = load(OLD);
    qkv_model *model;
    qkv_error error;
    add_tensor(c, "bert.embeddings.position_ids", QKVI_I64, 23);
    add_tensor(c, "cls.predictions.decoder.bias", QKVI_F32, 53);
    add_tensor(c, "something\nelse", QKVI_U8, 3);
    if (open_with(c, OLD, *state, &model, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_string_equal(qkv_model_unused(model, 0), "something\\x0aelse");
    assert_null(qkv_model_unused(model, 1));
    qkv_model_free(model);
    drop(c);
}

static void test_without_heads(void **state) {
    checkpoint *const c = load(OLD);
    qkv_model *model;
    qkv_error error;
    for (int64_t t = c->n - 1; t >= 0; t--)
        if (strncmp(c->tensors[t].name, "cls.", 4) == 0 ||
            strncmp(c->tensors[t].name, "bert.pooler.", 12) == 0)
            c->tensors[t] = c->tensors[--c->n];
    if (open_with(c, OLD, *state, &model, &error) != QKV_OK) fail_msg("%s", error.message);
    const qkv_model_info *const info = qkv_model_get_info(model);
    assert_false(info->has_mlm || info->has_nsp || info->has_pooler);
    qkv_model_free(model);
    drop(c);
}

/* ---- Models that are wrong ------------------------------------------------------------------- */

static void expect_error(checkpoint *c, const char *folder, qkv_status status, const char *says) {
    qkv_model *model;
    qkv_error error = { QKV_OK, "" };
    const qkv_status got = open_with(c, OLD, folder, &model, &error);
    if (got != status || !strstr(error.message, says))
        fail_msg("%s \"%s\", expected %s \"%s\"", qkv_status_name(got), error.message,
                 qkv_status_name(status), says);
    assert_null(model);
    drop(c);
}

static void test_wrong_models(void **state) {
    checkpoint *c = load(OLD);
    remove_tensor(c, "bert.encoder.layer.1.output.dense.bias");
    expect_error(
        c, *state, QKV_ERR_FORMAT,
        "tensor 'bert.encoder.layer.1.output.dense.bias' is missing; the nearest names are "
        "'bert.encoder.layer.0.output.dense.bias'");
    c = load(OLD);
    find(c, "bert.encoder.layer.0.intermediate.dense.weight")->shape[0] = 20;
    find(c, "bert.encoder.layer.0.intermediate.dense.weight")->shape[1] = 37;
    expect_error(c, *state, QKV_ERR_SHAPE,
                 "tensor 'bert.encoder.layer.0.intermediate.dense.weight' has shape [20,37], "
                 "config.json asks for [37,20]");
    c = load(OLD);
    find(c, "bert.embeddings.word_embeddings.weight")->shape[0] = 52;
    expect_error(c, *state, QKV_ERR_SHAPE, "has shape [52,20], config.json asks for [53,20]");
    c = load(OLD);
    find(c, "bert.pooler.dense.bias")->type = QKVI_I32;
    expect_error(c, *state, QKV_ERR_UNSUPPORTED,
                 "unsupported dtype in tensor 'bert.pooler.dense.bias'");
    c = load(OLD);
    rename_tensor(c, "bert.pooler.dense.bias", "bert.pooler.dense.kernel");
    expect_error(c, *state, QKV_ERR_UNSUPPORTED, "named as in TensorFlow");
    c = load(OLD);
    rename_tensor(c, "bert.pooler.dense.bias", "a");
    c->metadata_key = "bert.pooler.dense.bias";
    c->metadata_value = "bert.pooler.dense.bias"; /* an alias of itself leads nowhere */
    expect_error(c, *state, QKV_ERR_FORMAT, "tensor 'bert.pooler.dense.bias' is missing");
}

static void test_no_model(void **state) {
    qkv_model *model = NULL;
    qkv_error error;
    assert_int_equal(qkv_model_open(NULL, &model, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_model_open(OLD, NULL, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_model_open_memory(NULL, 0, "", 0, "", 0, NULL, &model, &error),
                     QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "config is NULL"));
    assert_int_equal(qkv_model_open(*state, &model, &error), QKV_ERR_IO);
    assert_non_null(strstr(error.message, "no model.safetensors in this folder"));
    assert_null(model);
}

static char folder[] = "/tmp/qkv-model-XXXXXX";

static int make_folder(void **state) {
    *state = mkdtemp(folder);
    return *state ? 0 : -1;
}

static int remove_folder(void **state) { return rmdir(*state); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_ties_and_aliases),
        cmocka_unit_test(test_unused),
        cmocka_unit_test(test_without_heads),
        cmocka_unit_test(test_wrong_models),
        cmocka_unit_test(test_no_model),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
