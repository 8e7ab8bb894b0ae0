/*
 * Checkpoints of BERT's family that are almost valid: every tensor in turn under another name, as
 * integers, transposed; and a config.json with each size wrong. Changes are made within the header,
 * so all else of the file stays valid.
 */
#include "hostile/cage.h"

#include <stdlib.h>
#include <string.h>

#include "files/file.h"
#include "files/safetensors.h"
#include "qkv/model.h"

static const char *const folders[] = {
    "bert_old",         "bert_new",         "family/distilbert_1", "family/distilbert_2",
    "family/roberta_1", "family/roberta_2", "family/electra_1",    "family/electra_3"
};
enum { N_FOLDERS = sizeof folders / sizeof *folders };

typedef struct files {
    char *config, *vocab, *weights;
    size_t n_config, n_vocab, n_weights;
    qkvi_safetensors *open; /* of weights as they were */
} files;

static char *load(const char *folder, const char *name, size_t *n) {
    char path[512], *bytes;
    qkv_error error;
    snprintf(path, sizeof path, QKV_TEST_DATA "/golden/%s/%s", folder, name);
    if (qkvi_file_load(path, 1 << 20, &bytes, n, &error)) fail_msg("%s", error.message);
    return bytes;
}

static void load_files(const char *folder, files *f) {
    qkv_error error;
    f->config = load(folder, "config.json", &f->n_config);
    f->vocab = load(folder, "vocab.txt", &f->n_vocab);
    f->weights = load(folder, "model.safetensors", &f->n_weights);
    assert_int_equal(qkvi_safetensors_open_memory("m", f->weights, f->n_weights, &f->open, &error),
                     QKV_OK);
}

static void free_files(files *f) {
    qkvi_safetensors_close(f->open);
    free(f->config);
    free(f->vocab);
    free(f->weights);
}

static qkv_status open_files(const files *f, qkv_model **model, qkv_error *error) {
    *error = (qkv_error){ QKV_OK, "" };
    const qkv_status status = qkv_model_open_memory(f->config, f->n_config, f->vocab, f->n_vocab,
                                                    f->weights, f->n_weights, NULL, model, error);
    assert_true((status == QKV_OK) == (*model != NULL));
    return status;
}

/* The entry of a tensor in the header, from its name's quote on. */
static char *entry_of(const files *f, const char *name) {
    char quoted[200];
    const int n = snprintf(quoted, sizeof quoted, "\"%s\":{", name);
    for (char *at = f->weights + 8; at + n < f->weights + f->n_weights; at++)
        if (memcmp(at, quoted, (size_t)n) == 0) return at;
    fail_msg("no %s", name);
    return NULL;
}

static int is_unused(const qkv_model *model, const char *name) {
    for (int64_t u = 0; qkv_model_unused(model, u); u++)
        if (strcmp(qkv_model_unused(model, u), name) == 0) return 1;
    return 0;
}

/* ---- Tensors --------------------------------------------------------------------------------- */

/* Missing and extra at once: an error, or the name of a head that the model can be without. */
static int without(const files *f, const char *folder, const char *name) {
    qkv_model *model;
    qkv_error error;
    char other[200];
    char *const at = entry_of(f, name) + 1;
    const char kept = *at;
    *at = 'X';
    snprintf(other, sizeof other, "X%s", name + 1);
    const qkv_status status = open_files(f, &model, &error);
    *at = kept;
    if (status == QKV_OK) {
        if (!is_unused(model, other)) fail_msg("%s: %s is not told", folder, other);
        qkv_model_free(model);
        return 0;
    }
    if (status != QKV_ERR_FORMAT || !strstr(error.message, "is missing; the nearest names are"))
        fail_msg("%s without %s: %s", folder, name, error.message);
    return 1;
}

static void as_integers(const files *f, const char *folder, const char *name) {
    qkv_model *model;
    qkv_error error;
    char *const at = strstr(entry_of(f, name), "\"F32\"") + 1;
    *at = 'I';
    const qkv_status status = open_files(f, &model, &error);
    *at = 'F';
    if (status == QKV_OK && is_unused(model, name)) {
        qkv_model_free(model);
        return;
    }
    if (status != QKV_ERR_UNSUPPORTED || !strstr(error.message, name) ||
        !strstr(error.message, "integers are no weights"))
        fail_msg("%s with %s as integers: %s", folder, name, error.message);
}

static int transposed(const files *f, const char *folder, const qkvi_stored *tensor) {
    char shape[64], other[64];
    qkv_model *model;
    qkv_error error;
    if (tensor->rank != 2 || tensor->shape[0] == tensor->shape[1]) return 0;
    snprintf(shape, sizeof shape, "[%d,%d]", (int)tensor->shape[0], (int)tensor->shape[1]);
    snprintf(other, sizeof other, "[%d,%d]", (int)tensor->shape[1], (int)tensor->shape[0]);
    char *const at = strstr(entry_of(f, tensor->name), shape);
    memcpy(at, other, strlen(shape));
    const qkv_status status = open_files(f, &model, &error);
    memcpy(at, shape, strlen(shape));
    if (status == QKV_OK && is_unused(model, tensor->name)) {
        qkv_model_free(model);
        return 0;
    }
    if (status != QKV_ERR_SHAPE || !strstr(error.message, tensor->name) ||
        !strstr(error.message, other))
        fail_msg("%s with %s transposed: %s", folder, tensor->name, error.message);
    return 1;
}

static void test_tensors(void **state) {
    (void)state;
    for (int i = 0; i < N_FOLDERS; i++) {
        files f;
        qkv_model *model;
        qkv_error error;
        int n_missing = 0, n_transposed = 0;
        load_files(folders[i], &f);
        if (open_files(&f, &model, &error)) fail_msg("%s", error.message);
        qkv_model_free(model);
        for (int64_t t = 0; t < f.open->n_tensors; t++) {
            const qkvi_stored *const tensor = &f.open->tensors[t];
            n_missing += without(&f, folders[i], tensor->name);
            as_integers(&f, folders[i], tensor->name);
            n_transposed += transposed(&f, folders[i], tensor);
        }
        assert_true(n_missing > f.open->n_tensors / 2);
        assert_true(n_transposed >= 3);
        free_files(&f);
    }
}

/* ---- config.json ----------------------------------------------------------------------------- */

/* One more or one less of a size, in the same number of digits. */
static void lie(files *f, const char *folder, const char *field, int by) {
    char key[64], digits[16];
    qkv_model *model;
    qkv_error error;
    snprintf(key, sizeof key, "\"%s\": ", field);
    char *at = strstr(f->config, key);
    if (!at) return;
    at += strlen(key);
    const int value = atoi(at);
    const size_t n = (size_t)snprintf(digits, sizeof digits, "%d", value);
    char lied[16];
    if ((size_t)snprintf(lied, sizeof lied, "%d", value + by) != n) return;
    memcpy(at, lied, n);
    const qkv_status status = open_files(f, &model, &error);
    memcpy(at, digits, n);
    const int fewer_layers = by < 0 && status == QKV_OK && strstr(field, "layers");
    if (fewer_layers) { /* a model of its first layers, which says what it leaves out */
        assert_non_null(qkv_model_unused(model, 0));
        qkv_model_free(model);
        return;
    }
    if (status == QKV_OK || error.message[0] == '\0')
        fail_msg("%s with %s = %s opens", folder, field, lied);
    if (status != QKV_ERR_SHAPE && status != QKV_ERR_FORMAT && status != QKV_ERR_LIMIT)
        fail_msg("%s with %s = %s: %s", folder, field, lied, error.message);
}

static void test_sizes(void **state) {
    (void)state;
    static const char *const fields[] = { "hidden_size",         "dim",
                                          "num_attention_heads", "n_heads",
                                          "num_hidden_layers",   "n_layers",
                                          "intermediate_size",   "hidden_dim",
                                          "vocab_size",          "max_position_embeddings",
                                          "type_vocab_size",     "embedding_size" };
    for (int i = 0; i < N_FOLDERS; i++) {
        files f;
        load_files(folders[i], &f);
        for (size_t n = 0; n < sizeof fields / sizeof *fields; n++) {
            if (strstr(fields[n], "heads")) {
                lie(&f, folders[i], fields[n], 5); /* 7 or 8: divides no hidden size here */
                continue;
            }
            lie(&f, folders[i], fields[n], 1);
            lie(&f, folders[i], fields[n], -1);
        }
        free_files(&f);
    }
}

/* ---- Vocabularies ---------------------------------------------------------------------------- */

static void refuse_token(const qkv_model *model, int32_t id) {
    const qkv_encoding text = { .n = 1, .ids = &id }, *const texts[] = { &text };
    qkv_ctx *ctx;
    qkv_run *run;
    qkv_error error;
    assert_int_equal(qkv_ctx_create(NULL, &ctx, NULL), QKV_OK);
    assert_int_equal(qkv_model_run(ctx, model, 1, texts, 0, NULL, &run, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "the model has ids 0 to"));
    qkv_ctx_free(ctx);
}

/*
 * More tokens than rows are accepted, with a warning, as fewer are: CF05. A text with one of them
 * is not.
 */
static void test_vocabularies(void **state) {
    (void)state;
    for (int i = 0; i < N_FOLDERS; i++) {
        files f;
        qkv_model *model;
        qkv_error error;
        load_files(folders[i], &f);
        char *const longer = malloc(f.n_vocab + 64 * 16);
        size_t n = f.n_vocab;
        memcpy(longer, f.vocab, n);
        for (int line = 0; line < 64; line++) n += (size_t)sprintf(longer + n, "more%d\n", line);
        free(f.vocab);
        f.vocab = longer;
        f.n_vocab = n;
        if (open_files(&f, &model, &error) != QKV_OK) fail_msg("%s", error.message);
        assert_non_null(strstr(qkv_model_warning(model, 0), "no text may use those from"));
        refuse_token(model, (int32_t)qkv_model_get_info(model)->vocab_size);
        qkv_model_free(model);
        free_files(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_vocabularies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
