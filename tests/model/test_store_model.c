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

#include "files/file.h"
#include "files/safetensors.h"
#include "limits/temporary.h"
#include "model/model_impl.h"

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

static void add_tensor(checkpoint *c, const char *name, qkvi_elem_type type, int64_t n) {
    c->raw[c->n] = calloc((size_t)n, qkvi_elem_bytes(type));
    c->tensors[c->n] = (qkvi_stored_out){ name, type, 1, { n }, c->raw[c->n] };
    c->n++;
}

/* A tensor more with the values of that one, but for the sign of all of them. */
static void add_copy(checkpoint *c, const char *name, const char *of, float sign) {
    const qkvi_stored_out from = *find(c, of);
    size_t n = 1;
    for (int d = 0; d < from.rank; d++) n *= (size_t)from.shape[d];
    float *const values = malloc(n * sizeof *values);
    for (size_t i = 0; i < n; i++) values[i] = sign * ((const float *)from.data)[i];
    c->raw[c->n] = values;
    c->tensors[c->n] = from;
    c->tensors[c->n].name = name;
    c->tensors[c->n++].data = values;
}

/*
 * Opens the checkpoint with config.json, which may have a field more, and vocab.txt of a golden
 * folder.
 */
static qkv_status open_with_field(checkpoint *c, const char *field, const char *golden,
                                  const char *folder, qkv_model **model, qkv_error *error) {
    char path[512], config[2000], *old, *vocab, *weights;
    size_t n_old, n_vocab, n_weights;
    snprintf(path, sizeof path, "%s/config.json", golden);
    assert_int_equal(qkvi_file_load(path, 1 << 20, &old, &n_old, error), QKV_OK);
    const size_t n_config = (size_t)snprintf(config, sizeof config, "{%s%.*s", field,
                                             (int)n_old - 1, strchr(old, '{') + 1);
    free(old);
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
    free(vocab);
    free(weights); /* everything has been copied into the arena */
    return status;
}

static qkv_status open_with(checkpoint *c, const char *golden, const char *folder,
                            qkv_model **model, qkv_error *error) {
    return open_with_field(c, "", golden, folder, model, error);
}

/* ---- Valid models ---------------------------------------------------------------------------- */

static void test_info(void **state) {
    (void)state;
    qkv_model *model;
    qkv_error error;
    if (qkv_model_open(OLD, NULL, &model, &error) != QKV_OK) fail_msg("%s", error.message);
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
    assert_non_null(qkv_model_tokenizer(model, QKV_SOURCE));
    qkv_model_free(model);
    qkv_model_free(NULL);
}

/* The same arena whatever the spelling. */
static void expect_same_model(checkpoint *c, const char *golden, const char *folder) {
    qkv_model *expected, *model;
    qkv_error error;
    if (qkv_model_open(golden, NULL, &expected, &error) != QKV_OK) fail_msg("%s", error.message);
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
    add_copy(c, "cls.predictions.decoder.bias", "cls.predictions.bias", 1);
    add_copy(c, "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight", 1);
    add_tensor(c, "something\nelse", QKVI_U8, 3);
    if (open_with(c, OLD, *state, &model, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_string_equal(qkv_model_unused(model, 0), "something\\x0aelse");
    assert_null(qkv_model_unused(model, 1));
    qkv_model_free(model);
    drop(c);
}

static int is_row(const qkv_model *model, const char *name) {
    return qkvi_params_find(&model->params, name) != NULL;
}

/*
 * Copies of what would be tied: equal ones take no room, others are parameters. What they mean:
 * golden_untied.
 */
static void test_stored_copies(void **state) {
    static const char words[] = "bert.embeddings.word_embeddings.weight",
                      head[] = "cls.predictions.decoder.weight", bias[] = "cls.predictions.bias",
                      own_bias[] = "cls.predictions.decoder.bias";
    qkv_error error;
    qkv_model *model;
    for (int other = 0; other < 2; other++) {
        checkpoint *const c = load(OLD);
        add_copy(c, head, words, other ? -1 : 1);
        add_copy(c, own_bias, bias, other ? -1 : 1);
        if (open_with(c, OLD, *state, &model, &error) != QKV_OK) fail_msg("%s", error.message);
        assert_int_equal(model->info.untied, other ? QKV_UNTIED_HEAD : 0);
        assert_int_equal(is_row(model, head), other);
        assert_true(is_row(model, words) && is_row(model, bias) && !is_row(model, own_bias));
        assert_string_equal(qkv_model_unused(model, 0) ? qkv_model_unused(model, 0) : "",
                            other ? bias : "");
        assert_null(qkv_model_warning(model, 0));
        qkv_model_free(model);
        drop(c);
    }
    checkpoint *const c = load(OLD); /* of another shape it is no copy, but a mistake */
    add_copy(c, head, words, 1);
    find(c, head)->shape[0] = 20;
    find(c, head)->shape[1] = 53;
    assert_int_equal(open_with(c, OLD, *state, &model, &error), QKV_ERR_SHAPE);
    assert_non_null(
        strstr(error.message, "tensor 'cls.predictions.decoder.weight' has shape [20,53]"));
    drop(c);
}

/* Where config.json unties them, all must be stored; a head without them is none, and says why. */
static void test_untied_without_head(void **state) {
    static const char untied[] = "\"tie_word_embeddings\":false,";
    static const char *const lacks[] = { "cls.predictions.decoder.weight",
                                         "cls.predictions.decoder.bias" };
    qkv_model *model;
    qkv_error error;
    char says[200];
    for (int l = 0; l < 2; l++) {
        checkpoint *const c = load(OLD);
        if (l != 0) add_copy(c, lacks[0], "bert.embeddings.word_embeddings.weight", 1);
        if (l != 1) add_copy(c, lacks[1], "cls.predictions.bias", 1);
        if (open_with_field(c, untied, OLD, *state, &model, &error)) fail_msg("%s", error.message);
        assert_true(!model->info.has_mlm && model->info.has_nsp && model->info.untied == 0);
        snprintf(says, sizeof says,
                 "no MLM head: config.json says tie_word_embeddings: false, and '%s' is not stored",
                 lacks[l]);
        assert_string_equal(qkv_model_warning(model, 0), says);
        assert_int_equal(qkvi_model_check_head(model, model->info.has_mlm, "MLM", &error),
                         QKV_ERR_UNSUPPORTED);
        assert_non_null(strstr(error.message, says));
        qkv_model_free(model);
        drop(c);
    }
    checkpoint *c = load(OLD); /* and words are not found at the other end of a tie that is none */
    rename_tensor(c, "bert.embeddings.word_embeddings.weight", lacks[0]);
    rename_tensor(c, "cls.predictions.bias", lacks[1]);
    assert_int_equal(open_with_field(c, untied, OLD, *state, &model, &error), QKV_ERR_FORMAT);
    assert_non_null(strstr(error.message, "'bert.embeddings.word_embeddings.weight' is missing"));
    drop(c);
    c = load(OLD); /* a bare encoder needs no head */
    for (int64_t t = c->n - 1; t >= 0; t--)
        if (strncmp(c->tensors[t].name, "cls.", 4) == 0) c->tensors[t] = c->tensors[--c->n];
    if (open_with_field(c, untied, OLD, *state, &model, &error)) fail_msg("%s", error.message);
    assert_true(!model->info.has_mlm && model->info.untied == 0);
    assert_null(qkv_model_warning(model, 0));
    qkv_model_free(model);
    drop(c);
}

/*
 * Positions that config.json says are sinusoids, and that the file has otherwise, are parameters.
 */
static void test_stored_positions(void **state) {
    static const char name[] = "bert.embeddings.position_embeddings.weight",
                      sines[] = "\"sinusoidal_positions\":true,";
    qkv_model *model;
    qkv_error error;
    float table[23 * 20];
    for (int stored = 0; stored < 3; stored++) { /* as they are; sinusoids; none */
        checkpoint *const c = load(OLD);
        assert_int_equal(qkv_sinusoids(23, 20, table, NULL), QKV_OK);
        if (stored == 1) find(c, name)->data = table;
        if (stored == 2) remove_tensor(c, name);
        if (open_with_field(c, sines, OLD, *state, &model, &error)) fail_msg("%s", error.message);
        assert_int_equal(model->info.sinusoidal_positions, stored > 0);
        assert_int_equal(is_row(model, name), stored == 0);
        assert_null(qkv_model_unused(model, 0));
        const char *const warning = qkv_model_warning(model, 0);
        assert_true(stored ? !warning : strstr(warning, "differ from sinusoids by up to") != NULL);
        qkv_model_free(model);
        drop(c);
    }
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
    assert_int_equal(qkv_model_open(NULL, NULL, &model, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_model_open(OLD, NULL, NULL, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_model_open_memory(NULL, 0, "", 0, "", 0, NULL, &model, &error),
                     QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "config is NULL"));
    assert_int_equal(qkv_model_open(*state, NULL, &model, &error), QKV_ERR_IO);
    assert_non_null(strstr(error.message, "no model.safetensors in this folder"));
    assert_null(model);
}

static char folder[TEMPORARY_PATH];

static int make_folder(void **state) {
    *state = mkdtemp(temporary("qkv-model", folder));
    return *state ? 0 : -1;
}

static int remove_folder(void **state) { return rmdir(*state); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_ties_and_aliases),
        cmocka_unit_test(test_unused),
        cmocka_unit_test(test_stored_copies),
        cmocka_unit_test(test_untied_without_head),
        cmocka_unit_test(test_stored_positions),
        cmocka_unit_test(test_without_heads),
        cmocka_unit_test(test_wrong_models),
        cmocka_unit_test(test_no_model),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
