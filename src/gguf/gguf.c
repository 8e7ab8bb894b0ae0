/* A model in GGUF files: see gguf.h. */
#include "gguf/gguf.h"

#include "gguf/tokenizer.h"

struct qkvi_gguf_own {
    qkvi_gguf_parts parts;
    qkvi_gguf_keys keys;
    qkvi_gguf_config config;
    qkvi_gguf_texts texts;
    qkvi_gguf_views views;
    char *texts_of_json[3];
    char names[4][QKVI_NAME_BYTES];
};

/* ---- Texts ----------------------------------------------------------------------------------- */

static qkv_status no_memory(const qkvi_gguf *gguf, qkv_error *error) {
    return qkvi_file_fail(error, QKV_ERR_MEMORY, gguf->own->parts.files[0]->source.name,
                          "no memory for its keys");
}

/* Messages name the file, and which of its readers found something. */
static void name_text(const qkvi_gguf *gguf, int i, const char *as, qkvi_text_file *file) {
    char *const name = gguf->own->names[i];
    snprintf(name, QKVI_NAME_BYTES, "%.450s (as %s)", gguf->own->parts.files[0]->source.name, as);
    file->name = name;
}

static qkv_status dump(qkvi_gguf *gguf, int i, const json_t *json, const char *as,
                       qkvi_text_file *file, qkv_error *error) {
    char *const text = gguf->own->texts_of_json[i] = json_dumps(json, JSON_REAL_PRECISION(17));
    if (!text) return no_memory(gguf, error);
    name_text(gguf, i, as, file);
    file->bytes = text;
    file->n_bytes = strlen(text);
    return QKV_OK;
}

static qkv_status make_texts(qkvi_gguf *gguf, qkv_error *error) {
    struct qkvi_gguf_own *const own = gguf->own;
    qkvi_text_files *const files = &gguf->tokenizer;
    QKV_TRY(
        qkvi_gguf_texts_make(&own->keys, own->config.family->arch, own->config.json, &own->texts));
    QKV_TRY(dump(gguf, 0, own->config.json, "config.json", &gguf->config, error));
    QKV_TRY(
        dump(gguf, 1, own->texts.generation, "generation_config.json", &gguf->generation, error));
    QKV_TRY(dump(gguf, 2, own->texts.settings, "tokenizer_config.json", &files->tokenizer_config,
                 error));
    name_text(gguf, 3, "tokenizer.json", &files->tokenizer);
    files->tokenizer.bytes = (const char *)own->texts.tokenizer.data;
    files->tokenizer.n_bytes = own->texts.tokenizer.n;
    files->vocab.name = files->tokenizer.name;
    files->special_tokens_map.name = files->added_tokens.name = files->chat_template.name =
        files->tokenizer.name;
    files->config = gguf->config;
    return QKV_OK;
}

/* ---- What is not used ------------------------------------------------------------------------ */

/* Keys that say how a file was made, or what others do with the model. */
static bool is_ignored(const char *name) {
    static const char *const prefixes[] = { "general.", "quantize.", "split.",
                                            "tokenizer.chat_template" };
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++)
        if (strncmp(name, prefixes[p], strlen(prefixes[p])) == 0) return true;
    return strncmp(name, "tokenizer.ggml.", 15) == 0 &&
           (qkvi_ends_with(name, "_token_id") || qkvi_ends_with(name, "_token_ids") ||
            qkvi_ends_with(name, "token_type_count") || strcmp(name + 15, "scores") == 0 ||
            strcmp(name + 15, "pre") == 0 || qkvi_ends_with(name, "_token"));
}

static qkv_status warn(qkvi_gguf *gguf, const char *text, qkv_error *error) {
    int w = 0;
    while (gguf->warnings[w]) w++;
    gguf->warnings[w] = strdup(text);
    return gguf->warnings[w] ? QKV_OK : no_memory(gguf, error);
}

static qkv_status warn_of_keys(qkvi_gguf *gguf, qkv_error *error) {
    const qkvi_gguf_file *const file = gguf->own->parts.files[0];
    char text[400];
    int64_t n = 0, first = -1;
    for (int64_t k = 0; k < file->n_keys; k++) {
        if (gguf->own->keys.asked[k] || is_ignored(file->keys[k].name)) continue;
        if (n++ == 0) first = k;
    }
    if (n == 0) return QKV_OK;
    snprintf(text, sizeof text, "%lld key%s of the file %s not used; the first is '%s'",
             (long long)n, n == 1 ? "" : "s", n == 1 ? "is" : "are",
             QKVI_PRINTABLE(160, file->keys[first].name));
    return warn(gguf, text, error);
}

static qkv_status warn_of_all(qkvi_gguf *gguf, qkv_error *error) {
    QKV_TRY(warn_of_keys(gguf, error));
    if (gguf->own->config.may_slide)
        QKV_TRY(warn(gguf,
                     "the model has the sizes of Mistral 7B v0.1, whose window of 4096 tokens a "
                     "GGUF file does not have: no layer has a window",
                     error));
    if (!gguf->own->texts.guesses_case) return QKV_OK;
    return warn(gguf,
                "the file does not say whether texts are put in lower case; they are, as no word "
                "of its vocabulary has a capital letter",
                error);
}

/* What a file of another version of quantisation means is not known. */
static qkv_status check_version(const qkvi_gguf_keys *keys) {
    int64_t version = 2;
    QKV_TRY(qkvi_gguf_take_int(keys, "general.quantization_version", &version));
    if (version == 2) return QKV_OK;
    return QKVI_GGUF_FAIL(keys, QKV_ERR_UNSUPPORTED,
                          "key 'general.quantization_version' is %lld, not 2", (long long)version);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static qkv_status read_all(qkvi_gguf *gguf, qkv_error *error) {
    struct qkvi_gguf_own *const own = gguf->own;
    const qkvi_gguf_file *const first = own->parts.files[0];
    own->keys = (qkvi_gguf_keys){ first, NULL, error };
    own->keys.asked = calloc((size_t)first->n_keys + 1, sizeof *own->keys.asked);
    if (!own->keys.asked) return no_memory(gguf, error);
    QKV_TRY(check_version(&own->keys));
    QKV_TRY(qkvi_gguf_config_make(&own->keys, &own->parts, &own->config));
    gguf->pooling = own->config.pooling;
    QKV_TRY(make_texts(gguf, error));
    QKV_TRY(qkvi_gguf_views_of(own->config.family, &own->config.sizes, &own->parts, &own->views,
                               error));
    QKV_TRY(qkvi_gguf_weights(&own->parts, &own->views, &gguf->weights, error));
    return warn_of_all(gguf, error);
}

static qkv_status start(qkvi_gguf **gguf, qkv_error *error) {
    *gguf = calloc(1, sizeof **gguf);
    if (*gguf) (*gguf)->own = calloc(1, sizeof *(*gguf)->own);
    if (*gguf && (*gguf)->own) return QKV_OK;
    free(*gguf);
    *gguf = NULL;
    return qkvi_no_memory(error, "a GGUF file");
}

static qkv_status finish(qkv_status status, qkvi_gguf **gguf, qkv_error *error) {
    if (status == QKV_OK) status = read_all(*gguf, error);
    if (status == QKV_OK) return QKV_OK;
    qkvi_gguf_close(*gguf);
    *gguf = NULL;
    return status;
}

qkv_status qkvi_gguf_open(const char *path, qkvi_gguf **gguf, qkv_error *error) {
    QKV_TRY(start(gguf, error));
    return finish(qkvi_gguf_parts_open(path, &(*gguf)->own->parts, error), gguf, error);
}

qkv_status qkvi_gguf_open_memory(const char *name, const void *bytes, size_t n_bytes,
                                 qkvi_gguf **gguf, qkv_error *error) {
    QKV_TRY(start(gguf, error));
    return finish(qkvi_gguf_parts_memory(name, bytes, n_bytes, &(*gguf)->own->parts, error), gguf,
                  error);
}

void qkvi_gguf_close(qkvi_gguf *gguf) {
    if (!gguf) return;
    struct qkvi_gguf_own *const own = gguf->own;
    qkvi_safetensors_close(gguf->weights);
    qkvi_gguf_views_free(&own->views);
    qkvi_gguf_texts_free(&own->texts);
    qkvi_gguf_config_free(&own->config);
    qkvi_gguf_parts_close(&own->parts);
    for (int t = 0; t < 3; t++) free(own->texts_of_json[t]);
    for (int w = 0; w < QKVI_GGUF_WARNINGS; w++) free(gguf->warnings[w]);
    free(own->keys.asked);
    free(own);
    free(gguf);
}

qkv_status qkvi_gguf_refuse_unused(const qkvi_gguf *gguf, const char *parameter, qkv_error *error) {
    const qkvi_gguf_views *const views = &gguf->own->views;
    const char *name = parameter;
    for (size_t v = 0; v < views->n; v++)
        if (strcmp(views->views[v].name, parameter) == 0) name = views->views[v].tensor->name;
    return qkvi_file_fail(error, QKV_ERR_UNSUPPORTED, gguf->own->parts.files[0]->source.name,
                          "tensor '%s' is not known in architecture '%s'",
                          QKVI_PRINTABLE(160, name), gguf->own->config.family->arch);
}
