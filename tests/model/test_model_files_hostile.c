/*
 * Hostile model folders (ids of docs/hostile-inputs.md): config.json, weights that disagree with
 * it, and texts longer than the model. The config.json of each row replaces that of a tiny BERT,
 * and the folder is opened as a user would.
 */
#include "hostile/cage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/status.h"
#include "files/file.h"
#include "files/safetensors.h"
#include "model/model_impl.h"

#define OLD QKV_TEST_DATA "/golden/bert_old"

/* ---- config.json ----------------------------------------------------------------------------- */

/* The sizes of OLD, without the heads. */
#define SIZES                                                                                      \
    "\"hidden_size\":20,\"num_hidden_layers\":2,\"intermediate_size\":37,\"vocab_size\":53,"       \
    "\"max_position_embeddings\":23"
#define BERT         "{\"model_type\":\"bert\","
#define CONFIG(more) HOSTILE_WHOLE(BERT SIZES ",\"num_attention_heads\":2" more "}")
#define HEADS(value) HOSTILE_WHOLE(BERT SIZES ",\"num_attention_heads\":" value "}")
#define WHOLE        HOSTILE_WHOLE
#define REPEATED     HOSTILE_REPEATED
/* Another number of layers. */
#define LAYERS(value)                                                                              \
    WHOLE(BERT "\"hidden_size\":20,\"num_hidden_layers\":" value                                   \
               ",\"intermediate_size\":37,\"vocab_size\":53,\"max_position_embeddings\":23,"       \
               "\"num_attention_heads\":2}")
#define VOCAB_SIZE(value)                                                                          \
    WHOLE(BERT "\"hidden_size\":20,\"num_hidden_layers\":2,\"intermediate_size\":37,"              \
               "\"vocab_size\":" value                                                             \
               ",\"max_position_embeddings\":23,\"num_attention_heads\":2}")

static const hostile_file cases[] = {
    { "CF", "a valid one", QKV_OK, "", CONFIG("") },
    { "CF", "unknown fields", QKV_OK, "", CONFIG(",\"x\":[1,{\"y\":null}],\"version\":\"4\"") },
    { "CF", "a list", QKV_ERR_FORMAT, "is not an object", WHOLE("[1]") },
    { "CF", "no JSON", QKV_ERR_FORMAT, "line 1, column", WHOLE("{'a': 1}") },
    { "CF", "cut short", QKV_ERR_FORMAT, "line 1", WHOLE("{\"model_type\":\"be") },
    { "CF", "no bytes", QKV_ERR_FORMAT, "config.json: line", WHOLE("") },
    { "CF", "a byte order mark", QKV_ERR_FORMAT, "line 1", WHOLE("\xef\xbb\xbf{}") },
    { "CF", "invalid UTF-8", QKV_ERR_FORMAT, "line 1", WHOLE(BERT "\"x\":\"\xff\"}") },
    { "CF", "16 levels", QKV_OK, "",
      REPEATED(BERT SIZES ",\"num_attention_heads\":2,\"a\":", "[", "]]]]]]]]]]]]]]]}", 15) },
    { "CF", "17 levels", QKV_ERR_FORMAT, "deeper than 16 levels",
      REPEATED("{\"a\":", "[", "]]]]]]]]]]]]]]]]}", 16) },
    { "CF", "a million '['", QKV_ERR_FORMAT, "deeper than 16 levels",
      REPEATED("{\"a\":", "[", "}", 1000000) },
    { "CF", "a million values", QKV_ERR_LIMIT, "more than 20000 values",
      REPEATED("{\"a\":[", "1,", "1]}", 500000) },
    { "CF", "above 1 MiB", QKV_ERR_LIMIT, "the limit is 1048576",
      REPEATED("{\"a\":[", "1", "1]}", 1 << 20) },

    { "CF01", "hidden size no multiple of the heads", QKV_ERR_SHAPE,
      "hidden_size = 20 is not a multiple of num_attention_heads = 3", HEADS("3") },
    { "CF01", "no heads", QKV_ERR_SHAPE, "num_attention_heads = 0 is less than 1", HEADS("0") },
    { "CF01", "heads that key/value heads do not divide", QKV_ERR_SHAPE,
      "num_key_value_heads = 3 is not num_attention_heads = 2",
      CONFIG(",\"num_key_value_heads\":3") },
    { "CF01", "fewer key/value heads", QKV_ERR_SHAPE,
      "num_key_value_heads = 1 is not num_attention_heads = 2",
      CONFIG(",\"num_key_value_heads\":1") },
    { "CF01", "no key/value heads", QKV_ERR_SHAPE, "num_key_value_heads = 0 is not",
      CONFIG(",\"num_key_value_heads\":0") },
    { "CF02", "1,000,000,000 layers", QKV_ERR_LIMIT,
      "num_hidden_layers = 1000000000 is above the limit 1024", LAYERS("1000000000") },
    { "CF02", "a layer without tensors", QKV_ERR_FORMAT,
      "tensor 'bert.encoder.layer.2.attention.self.query.weight' is missing", LAYERS("3") },
    { "CF02", "1024 layers, 2 of them stored", QKV_ERR_FORMAT, "is missing", LAYERS("1024") },
    { "CF02", "no layers", QKV_ERR_SHAPE, "num_hidden_layers = 0 is less than 1", LAYERS("0") },
    { "CF03", "2.0 heads", QKV_ERR_FORMAT, "num_attention_heads is a number, must be an integer",
      HEADS("2.0") },
    { "CF03", "2e0 heads", QKV_ERR_FORMAT, "num_attention_heads is a number, must be an integer",
      HEADS("2e0") },
    { "CF03", "2^31 heads", QKV_ERR_FORMAT, "= 2147483648 is not between 0 and 2147483647",
      HEADS("2147483648") },
    { "CF03", "2^64 heads", QKV_ERR_FORMAT, "= 1.84467e+19 is not between 0 and 2147483647",
      HEADS("18446744073709551616") },
    { "CF03", "-2 heads", QKV_ERR_FORMAT, "= -2 is not between", HEADS("-2") },
    { "CF03", "\"2\" heads", QKV_ERR_FORMAT, "num_attention_heads is a string, must be an integer",
      HEADS("\"2\"") },
    { "CF03", "true heads", QKV_ERR_FORMAT, "num_attention_heads is true, must be an integer",
      HEADS("true") },
    { "CF03", "null heads", QKV_ERR_FORMAT, "num_attention_heads is missing", HEADS("null") },
    { "CF03", "no word of the heads", QKV_ERR_FORMAT, "num_attention_heads is missing",
      WHOLE(BERT SIZES "}") },
    { "CF03", "hidden_size twice", QKV_ERR_FORMAT, "duplicate", CONFIG(",\"hidden_size\":20") },
    { "CF04", "no model type", QKV_ERR_UNSUPPORTED, "model_type is missing",
      WHOLE("{" SIZES ",\"num_attention_heads\":2}") },
    { "CF04", "another model type", QKV_ERR_UNSUPPORTED, "model_type 'whisper' is not supported",
      WHOLE("{\"model_type\":\"whisper\"," SIZES ",\"num_attention_heads\":2}") },
    { "CF04", "a model type that is a number", QKV_ERR_FORMAT, "model_type is an integer",
      WHOLE("{\"model_type\":7," SIZES ",\"num_attention_heads\":2}") },
    { "CF04", "another activation", QKV_ERR_UNSUPPORTED, "hidden_act 'gelu_10' is not supported",
      CONFIG(",\"hidden_act\":\"gelu_10\"") },
    { "CF04", "an activation that would colour the terminal", QKV_ERR_UNSUPPORTED, "'\\x1b[31m'",
      CONFIG(",\"hidden_act\":\"\\u001b[31m\"") },
    { "CF04", "other positions", QKV_ERR_UNSUPPORTED,
      "position_embedding_type 'relative_key' is not supported",
      CONFIG(",\"position_embedding_type\":\"relative_key\"") },
    { "CF09", "no ties, and no head", QKV_OK, "", CONFIG(",\"tie_word_embeddings\":false") },
    { "CF09", "ties that are no switch", QKV_ERR_FORMAT, "tie_word_embeddings is a string",
      CONFIG(",\"tie_word_embeddings\":\"no\"") },
    { "CF04", "a decoder", QKV_ERR_UNSUPPORTED, "is_decoder 'true'",
      CONFIG(",\"is_decoder\":true") },
    { "CF05", "fewer rows stored than vocab_size", QKV_ERR_SHAPE,
      "has shape [53,20], config.json asks for [54,20]", VOCAB_SIZE("54") },
    { "CF05", "more rows stored than vocab_size", QKV_ERR_SHAPE,
      "has shape [53,20], config.json asks for [52,20]", VOCAB_SIZE("52") },
    { "CF07", "eps 0", QKV_ERR_FORMAT, "layer_norm_eps = 0 is not between",
      CONFIG(",\"layer_norm_eps\":0") },
    { "CF07", "eps below 0", QKV_ERR_FORMAT, "layer_norm_eps = -1e-12",
      CONFIG(",\"layer_norm_eps\":-1e-12") },
    { "CF07", "eps NaN", QKV_ERR_FORMAT, "line 1", CONFIG(",\"layer_norm_eps\":NaN") },
    { "CF07", "eps 1e999", QKV_ERR_FORMAT, "line 1", CONFIG(",\"layer_norm_eps\":1e999") },
    { "CF07", "eps \"1e-12\"", QKV_ERR_FORMAT, "layer_norm_eps is a string, must be a number",
      CONFIG(",\"layer_norm_eps\":\"1e-12\"") },
    { "CF07", "eps true", QKV_ERR_FORMAT, "must be a number", CONFIG(",\"layer_norm_eps\":true") },
    { "CF07", "eps 1", QKV_ERR_FORMAT, "layer_norm_eps = 1 is not between",
      CONFIG(",\"layer_norm_eps\":1") },
    { "CF", "no segments", QKV_ERR_SHAPE, "type_vocab_size = 0", CONFIG(",\"type_vocab_size\":0") },
    { "CF", "257 segments", QKV_ERR_LIMIT, "above the limit 256",
      CONFIG(",\"type_vocab_size\":257") },
};

static char *load(const char *path, size_t *n) {
    char *bytes;
    qkv_error error;
    if (qkvi_file_load(path, 1 << 22, &bytes, n, &error)) fail_msg("%s", error.message);
    return bytes;
}

static void save(const char *path, const void *bytes, size_t n) {
    FILE *const out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(out);
}

/* A copy of a file of OLD beside the config.json of a row. */
static void put_beside(const char *name) {
    char path[512];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", OLD, name);
    char *const bytes = load(path, &n);
    save(hostile_path(path, name), bytes, n);
    free(bytes);
}

static void remove_beside(const char *name) {
    char path[512];
    unlink(hostile_path(path, name));
}

static qkv_status open_folder(const char *path, qkv_error *error) {
    qkv_model *model = (qkv_model *)1;
    const qkv_status status = qkv_model_open(path, NULL, &model, error);
    if (status != QKV_OK) return model ? HOSTILE_BROKEN : status;
    qkv_model_free(model);
    return QKV_OK;
}

/* The folder of a config.json. */
static qkv_status read_config(const char *path, qkv_error *error) {
    char folder[512];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    return open_folder(folder, error);
}

/* ---- CF05: rows and tokens ------------------------------------------------------------------- */

/* A model whose table has 53 rows, with the first n lines of its vocabulary. */
static void open_with_lines(int n_lines, const char *more, qkv_status status, const char *says,
                            const char *warning) {
    size_t n_config, n_vocab, n_weights, n = 0;
    char *const config = load(OLD "/config.json", &n_config);
    char *const vocab = load(OLD "/vocab.txt", &n_vocab);
    char *const weights = load(OLD "/model.safetensors", &n_weights);
    char lines[4096];
    qkv_model *model;
    qkv_error error = { QKV_OK, "" };
    for (int line = 0; line < n_lines; n++) line += vocab[n] == '\n';
    snprintf(lines, sizeof lines, "%.*s%s", (int)n, vocab, more);
    const qkv_status got = qkv_model_open_memory(config, n_config, lines, strlen(lines), weights,
                                                 n_weights, NULL, &model, &error);
    if (got != status || !strstr(error.message, says))
        fail_msg("%d lines: %s \"%s\"", n_lines, qkv_status_name(got), error.message);
    assert_true((got == QKV_OK) == (model != NULL));
    if (model) {
        const char *const said = qkv_model_warning(model, 0);
        if (warning ? !said || !strstr(said, warning) : said != NULL)
            fail_msg("%d lines: warned \"%s\"", n_lines, said ? said : "nothing");
        assert_null(qkv_model_warning(model, said != NULL));
        assert_null(qkv_model_warning(model, -1));
    }
    qkv_model_free(model);
    free(config);
    free(vocab);
    free(weights);
}

static void test_rows_and_tokens(void **state) {
    (void)state;
    open_with_lines(53, "", QKV_OK, "", NULL);
    open_with_lines(
        53, "one too many\n", QKV_OK, "",
        "the tokenizer has 54 tokens, config.json says vocab_size = 53: no text may use "
        "those from 53 on");
    open_with_lines(50, "", QKV_OK, "", "3 rows of the embedding have no token");
    open_with_lines(52, "the\n", QKV_OK, "",
                    "1 of 53 tokens are in the vocabulary again with a later id, which is used; "
                    "the first is 'the', ids 5 and 52"); /* VO01b */
}

/* ---- CF06: long texts ------------------------------------------------------------------------ */

/* Runs a model of 23 positions on an encoding of n tokens. */
static qkv_status run_long(const void *number, qkv_error *error) {
    const int64_t n = *(const int64_t *)number;
    int32_t *const ids = calloc((size_t)n, sizeof *ids);
    qkv_encoding encoding = { .n = n, .ids = ids };
    const qkv_encoding *const encodings[] = { &encoding };
    qkv_model *model = NULL;
    qkv_ctx *ctx = NULL;
    qkv_run *run = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = 1;
    qkv_status status = qkv_model_open(OLD, NULL, &model, error);
    if (status == QKV_OK) status = qkv_ctx_create(&options, &ctx, error);
    if (status == QKV_OK) status = qkv_model_run(ctx, model, 1, encodings, 0, NULL, &run, error);
    if (status != QKV_OK && run) status = HOSTILE_BROKEN;
    qkv_run_free(run);
    qkv_ctx_free(ctx);
    qkv_model_free(model);
    free(ids);
    return status;
}

static void test_long_texts(void **state) {
    (void)state;
    static const struct {
        int64_t n;
        qkv_status status;
        const char *says;
    } rows[] = {
        { 23, QKV_OK, "" },
        { 24, QKV_ERR_SHAPE, "24" },
        { 10000000, QKV_ERR_SHAPE, "10000000" },
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char label[64];
        snprintf(label, sizeof label, "CF06 %lld tokens", (long long)rows[r].n);
        hostile_expect(label, run_long, &rows[r].n, rows[r].status, rows[r].says);
    }
}

/* ---- CF08: weights of mixed types ------------------------------------------------------------ */

/* Every other tensor as f64, which holds each f32 exactly: the same model. */
static void test_mixed_types(void **state) {
    enum { MOST = 100 };
    static qkvi_stored_out tensors[MOST];
    void *data[MOST];
    qkvi_safetensors *file;
    qkv_model *mixed, *plain;
    qkv_error error;
    char path[512];
    assert_int_equal(qkvi_safetensors_open(OLD "/model.safetensors", &file, &error), QKV_OK);
    const int64_t n = file->n_tensors;
    assert_true(n < MOST);
    for (int64_t t = 0; t < n; t++) {
        const qkvi_stored *const from = &file->tensors[t];
        float *const values = malloc(from->n_elems * sizeof *values + 1);
        double *const wide = malloc(from->n_elems * sizeof *wide + 1);
        assert_int_equal(qkvi_safetensors_read_f32(file, from, values, &error), QKV_OK);
        for (size_t i = 0; i < from->n_elems; i++) wide[i] = (double)values[i];
        data[t] = t % 2 ? (void *)wide : (void *)values;
        free(t % 2 ? (void *)values : (void *)wide);
        tensors[t] = (qkvi_stored_out){ .name = from->name,
                                        .type = t % 2 ? QKVI_F64 : QKVI_F32,
                                        .rank = from->rank,
                                        .data = data[t] };
        memcpy(tensors[t].shape, from->shape, sizeof from->shape);
    }
    put_beside("config.json");
    hostile_path(path, "model.safetensors"); /* in the place of the rows' own */
    assert_int_equal(qkvi_safetensors_write(path, tensors, n, NULL, NULL, &error), QKV_OK);
    assert_int_equal(qkv_model_open(OLD, NULL, &plain, &error), QKV_OK);
    if (qkv_model_open(*state, NULL, &mixed, &error)) fail_msg("%s", error.message);
    assert_memory_equal(mixed->arena, plain->arena, plain->params.n_elems * sizeof(float));
    qkv_model_free(mixed);
    qkv_model_free(plain);
    qkvi_safetensors_close(file);
    for (int64_t t = 0; t < n; t++) free(data[t]);
    remove_beside("config.json");
}

/* ---- ST35: weights that are no numbers ------------------------------------------------------- */

static void note_found(void *user, const qkv_not_finite *found) {
    snprintf(user, 200, "%s %d %d", found->tensor, (int)found->n_nan, (int)found->n_inf);
}

static void test_not_finite(void **state) {
    (void)state;
    size_t n_config, n_vocab, n_weights;
    char *const config = load(OLD "/config.json", &n_config);
    char *const vocab = load(OLD "/vocab.txt", &n_vocab);
    char *const weights = load(OLD "/model.safetensors", &n_weights);
    const float values[] = { NAN, -INFINITY, NAN };
    char found[200] = "";
    qkvi_safetensors *file;
    qkv_model *model;
    qkv_error error;
    assert_int_equal(qkvi_safetensors_open_memory("m", weights, n_weights, &file, &error), QKV_OK);
    const qkvi_stored *const tensor = qkvi_safetensors_find(file, "bert.pooler.dense.bias");
    memcpy(weights + tensor->begin + 4, values, sizeof values);
    qkvi_safetensors_close(file);
    assert_int_equal(qkv_model_open_memory(config, n_config, vocab, n_vocab, weights, n_weights,
                                           NULL, &model, &error),
                     QKV_OK);
    assert_int_equal(qkv_model_check_finite(model, note_found, found), 1);
    assert_string_equal(found, "bert.pooler.dense.bias 2 1");
    qkv_model_free(model);
    assert_int_equal(qkv_model_open(OLD, NULL, &model, &error), QKV_OK);
    assert_int_equal(qkv_model_check_finite(model, note_found, found), 0);
    qkv_model_free(model);
    free(config);
    free(vocab);
    free(weights);
}

/* What the rows' config.json lies beside. */
static void put_model(void) {
    put_beside("vocab.txt");
    put_beside("model.safetensors");
}

static void remove_model(void) {
    remove_beside("vocab.txt");
    remove_beside("model.safetensors");
}

int main(void) {
    const hostile_family family = { "hostile_model_files",        "config.json", read_config, cases,
                                    sizeof cases / sizeof *cases, put_model,     remove_model };
    const struct CMUnitTest others[] = {
        { "CF05 VO01b rows and tokens", test_rows_and_tokens, NULL, NULL, NULL },
        { "CF06 long texts", test_long_texts, NULL, NULL, NULL },
        { "CF08 mixed types", test_mixed_types, NULL, NULL, NULL },
        { "ST35 weights that are no numbers", test_not_finite, NULL, NULL, NULL },
    };
    return hostile_main(&family, others, sizeof others / sizeof *others);
}
