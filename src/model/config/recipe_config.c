/*
 * What is done with a text before it becomes a vector: see recipe.h. The longest text is
 * max_seq_length of the first of these files; without one, what the tokenizer says.
 */

#include "model/config/config.h"
#include "model/config/recipe.h"

enum { MAX_PROMPTS = 1024 };

/* The first is the model's; the others are the Transformer's, whose first that is there counts. */
const char *const qkvi_recipe_files[] = { "config_sentence_transformers.json",
                                          "sentence_bert_config.json",
                                          "sentence_roberta_config.json",
                                          "sentence_distilbert_config.json",
                                          "sentence_camembert_config.json",
                                          "sentence_albert_config.json",
                                          "sentence_xlm-roberta_config.json",
                                          "sentence_xlnet_config.json",
                                          NULL };

/* ---- sentence_bert_config.json --------------------------------------------------------------- */

/* What must be as it is where it is not said. */
static qkv_status check_words(const qkvi_json_reader *reader) {
    QKV_TRY(qkvi_config_word(reader, "transformer_task", "feature-extraction"));
    return qkvi_config_word(reader, "module_output_name", "token_embeddings");
}

/* {"text": {"method": "forward", "method_output_name": "last_hidden_state"}} */
static qkv_status check_modality(const qkvi_json_reader *reader) {
    const json_t *all = NULL, *text = NULL;
    QKV_TRY(qkvi_json_take_object(reader, "modality_config", &all));
    if (all == NULL) return QKV_OK;
    const qkvi_json_reader outer = { reader->file, "modality_config", all, reader->error };
    QKV_TRY(qkvi_json_take_object(&outer, "text", &text));
    if (text == NULL || json_object_get(all, "message"))
        return qkvi_recipe_refuse(reader->file, "modality_config",
                                  text ? "message" : "without text", reader->error);
    const qkvi_json_reader inner = { reader->file, "modality_config.text", text, reader->error };
    QKV_TRY(qkvi_config_word(&inner, "method", "forward"));
    return qkvi_config_word(&inner, "method_output_name", "last_hidden_state");
}

/* Arguments of what is called, which may change anything. */
static qkv_status refuse_arguments(const qkvi_json_reader *reader) {
    static const char *const names[] = { "processing_kwargs", "model_kwargs",   "processor_kwargs",
                                         "config_kwargs",     "model_args",     "tokenizer_args",
                                         "config_args",       "query_expansion" };
    const char *other = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *object = NULL;
        QKV_TRY(qkvi_json_take_object(reader, names[i], &object));
        if (json_object_size(object) > 0)
            return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                                  "%s is not empty, which is not supported", names[i]);
    }
    QKV_TRY(qkvi_json_take_string(reader, "tokenizer_name_or_path", &other));
    if (other == NULL) return QKV_OK;
    return qkvi_recipe_refuse(reader->file, "tokenizer_name_or_path", other, reader->error);
}

static qkv_status take_transformer(const qkvi_json_reader *reader, const qkv_model_info *info,
                                   qkvi_recipe *s) {
    int64_t longest = s->max_len;
    QKV_TRY(check_words(reader));
    QKV_TRY(check_modality(reader));
    QKV_TRY(refuse_arguments(reader));
    QKV_TRY(qkvi_json_take_bool(reader, "do_lower_case", &s->lower_case));
    QKV_TRY(qkvi_json_take_limit(reader, "max_seq_length", info->max_len, &longest));
    if (longest < 1)
        return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "max_seq_length = 0 is less than 1");
    s->max_len = longest;
    return QKV_OK;
}

/* By the first of the names that it had. */
static qkv_status read_transformer(const char *folder, const qkv_model_info *info, qkvi_recipe *s,
                                   qkv_error *error) {
    for (int i = 1; qkvi_recipe_files[i]; i++) {
        char file[1024];
        json_t *root;
        QKV_TRY(qkvi_recipe_load(folder, qkvi_recipe_files[i], file, &root, error));
        const qkvi_json_reader reader = { file, "", root, error };
        const int has_fields = json_object_size(root) > 0;
        qkv_status status = QKV_OK;
        if (root && !json_is_object(root))
            status = qkvi_error_set(error, QKV_ERR_FORMAT, "%s: the JSON is not an object", file);
        if (has_fields) status = take_transformer(&reader, info, s);
        json_decref(root);
        if (status != QKV_OK || has_fields) return status;
    }
    return QKV_OK;
}

/* ---- config_sentence_transformers.json ------------------------------------------------------- */

static qkv_status add_prompt(qkvi_recipe *s, const char *name, const char *text, qkv_error *error) {
    qkvi_prompt *const prompt = &s->prompts[s->n_prompts++];
    prompt->shown.name = prompt->name = strdup(name);
    prompt->shown.text = prompt->text = strdup(text);
    if (prompt->name && prompt->text) return QKV_OK;
    return qkvi_no_memory(error, "prompts");
}

static int64_t find_prompt(const qkvi_recipe *s, const char *name) {
    for (int64_t p = 0; p < s->n_prompts; p++)
        if (strcmp(s->prompts[p].name, name) == 0) return p;
    return -1;
}

/*
 * {"query": "query: ", …}; every model has "query" and "document", of no text unless a file gives
 * one.
 */
static qkv_status take_prompts(const qkvi_json_reader *reader, qkvi_recipe *s) {
    static const char *const always[] = { "query", "document" };
    const json_t *object = NULL, *value;
    const char *name;
    if (reader->object) QKV_TRY(qkvi_json_take_object(reader, "prompts", &object));
    if (json_object_size(object) > MAX_PROMPTS)
        return QKVI_JSON_FAIL(reader, QKV_ERR_LIMIT, "%zu prompts, the limit is %d",
                              json_object_size(object), MAX_PROMPTS);
    s->prompts = qkvi_calloc_array(json_object_size(object) + 2, sizeof *s->prompts);
    if (!s->prompts) return qkvi_no_memory(reader->error, "prompts");
    json_object_foreach((json_t *)object, name, value) {
        if (!json_is_string(value) && !json_is_null(value))
            return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "a prompt is neither a string nor null");
        QKV_TRY(add_prompt(s, name, json_is_null(value) ? "" : json_string_value(value),
                           reader->error));
    }
    for (int i = 0; i < 2; i++)
        if (find_prompt(s, always[i]) < 0) QKV_TRY(add_prompt(s, always[i], "", reader->error));
    return QKV_OK;
}

static qkv_status take_default(const qkvi_json_reader *reader, qkvi_recipe *s) {
    const char *name = NULL;
    QKV_TRY(qkvi_json_take_string(reader, "default_prompt_name", &name));
    if (name == NULL) return QKV_OK;
    s->default_prompt = find_prompt(s, name);
    if (s->default_prompt >= 0) s->prompts[s->default_prompt].shown.is_default = 1;
    if (s->default_prompt >= 0) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT,
                          "default_prompt_name '%s' is not among the prompts",
                          QKVI_PRINTABLE(128, name));
}

static qkv_status take_model(const qkvi_json_reader *reader, qkvi_recipe *s) {
    int64_t kept = s->dim;
    if (json_is_null(json_object_get(reader->object, "model_type"))) /* null is another type */
        return qkvi_recipe_refuse(reader->file, "model_type", "null", reader->error);
    QKV_TRY(qkvi_config_word(reader, "model_type", "SentenceTransformer"));
    QKV_TRY(take_default(reader, s));
    QKV_TRY(qkvi_json_take_limit(reader, "truncate_dim", INT32_MAX, &kept));
    if (kept < 1) return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "truncate_dim = 0 is less than 1");
    s->kept = kept < s->dim ? kept : s->dim;
    return QKV_OK;
}

static qkv_status read_model(const char *folder, qkvi_recipe *s, qkv_error *error) {
    char file[1024];
    json_t *root;
    QKV_TRY(qkvi_recipe_load(folder, qkvi_recipe_files[0], file, &root, error));
    const qkvi_json_reader reader = { file, "", root, error };
    qkv_status status = QKV_OK;
    if (root && !json_is_object(root))
        status = qkvi_error_set(error, QKV_ERR_FORMAT, "%s: the JSON is not an object", file);
    if (status == QKV_OK) status = take_prompts(&reader, s);
    if (status == QKV_OK && root) status = take_model(&reader, s);
    json_decref(root);
    return status;
}

qkv_status qkvi_recipe_config(const char *folder, const qkv_model_info *info, qkvi_recipe *s,
                              qkv_error *error) {
    const qkvi_json_reader none = { .error = error };
    if (!folder) return take_prompts(&none, s);
    QKV_TRY(read_transformer(folder, info, s, error));
    return read_model(folder, s, error);
}
