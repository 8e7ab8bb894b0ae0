/**
 * tokenizer.json: the part of Hugging Face's format that BERT-like models use.
 *
 *     added_tokens    cut out of the raw text          normalizer       BertNormalizer
 *     model           WordPiece                        pre_tokenizer    BertPreTokenizer
 *     post_processor  BertProcessing or TemplateProcessing
 *
 * What would change ids and is not implemented is refused by its name: other types, added tokens
 * that are normalised, strip white space or stand as single words only. truncation and padding are
 * ignored: nothing is ever cut or padded here.
 */
#include <string.h>

#include "core/status.h"
#include "model/store/json.h"
#include "model/text/tokenizer.h"

static const qkvi_json_limits tokenizer_limits = { .max_bytes = (size_t)64 << 20,
                                                   .max_values = 2000000,
                                                   .max_depth = 64 };

enum { ADDED_MAX_BYTES = 256 }; /* bounds the walk at each byte of a text */

/* The file being read. */
struct reader {
    const char *name;
    const json_t *root;
    qkv_tokenizer *tokenizer;
    qkv_error *error;
};

static qkvi_json_reader fields(const struct reader *r, const char *path, const json_t *object) {
    return (qkvi_json_reader){ r->name, path, object, r->error };
}

static qkv_status refuse(const struct reader *r, const char *part, const char *type) {
    char escaped[96];
    return qkvi_error_set(r->error, QKV_ERR_UNSUPPORTED, "%s: %s \"%s\" is not supported", r->name,
                          part, qkvi_escape(escaped, sizeof escaped, type, strlen(type)));
}

/* A part of the file with its type; absent or null parts are refused as "null". */
static qkv_status part_of(const struct reader *r, const char *part, const json_t **object,
                          const char **type) {
    const qkvi_json_reader top = fields(r, "", r->root);
    QKV_TRY(qkvi_json_take_object(&top, part, object));
    if (*object == NULL) return refuse(r, part, "null");
    const qkvi_json_reader inner = fields(r, part, *object);
    return qkvi_json_need_string(&inner, "type", type);
}

static qkv_status read_normalizer(const struct reader *r) {
    const json_t *object = NULL;
    const char *type = "";
    QKV_TRY(part_of(r, "normalizer", &object, &type));
    if (strcmp(type, "BertNormalizer") != 0) return refuse(r, "normalizer", type);
    const qkvi_json_reader inner = fields(r, "normalizer", object);
    qkvi_bert_rules *rules = &r->tokenizer->rules;
    int strip = -1;
    QKV_TRY(qkvi_json_take_bool(&inner, "clean_text", &rules->clean_text));
    QKV_TRY(qkvi_json_take_bool(&inner, "handle_chinese_chars", &rules->split_cjk));
    QKV_TRY(qkvi_json_take_bool(&inner, "lowercase", &rules->lowercase));
    QKV_TRY(qkvi_json_take_bool(&inner, "strip_accents", &strip));
    rules->strip_accents = strip < 0 ? rules->lowercase : strip;
    return QKV_OK;
}

static qkv_status read_pre_tokenizer(const struct reader *r) {
    const json_t *object = NULL;
    const char *type = "";
    QKV_TRY(part_of(r, "pre_tokenizer", &object, &type));
    return strcmp(type, "BertPreTokenizer") == 0 ? QKV_OK : refuse(r, "pre_tokenizer", type);
}

/* ---- Vocabulary ------------------------------------------------------------------------------- */

static qkv_status add_token(const struct reader *r, qkvi_pieces *pieces, const char *path,
                            const char *token, size_t n_bytes, int64_t id) {
    char escaped[96];
    qkvi_escape(escaped, sizeof escaped, token, n_bytes);
    if (id < 0 || id >= QKVI_PIECES_MAX_IDS)
        return qkvi_error_set(r->error, id < 0 ? QKV_ERR_FORMAT : QKV_ERR_LIMIT,
                              "%s: %s: \"%s\" has id %lld, the limit is %d", r->name, path, escaped,
                              (long long)id, QKVI_PIECES_MAX_IDS - 1);
    if (n_bytes > QKVI_PIECE_MAX_BYTES)
        return qkvi_error_set(r->error, QKV_ERR_LIMIT,
                              "%s: %s: \"%s\" has %zu bytes, the limit is %d", r->name, path,
                              escaped, n_bytes, QKVI_PIECE_MAX_BYTES);
    if (id < pieces->n_ids && pieces->tokens[id].length >= 0)
        return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: %s: two tokens have id %lld", r->name,
                              path, (long long)id);
    if (qkvi_pieces_add(pieces, (int32_t)id, token, n_bytes) != QKV_OK)
        return qkvi_error_set(r->error, QKV_ERR_MEMORY, "%s: no memory for the vocabulary",
                              r->name);
    return QKV_OK;
}

static qkv_status read_vocabulary(const struct reader *r, const json_t *vocab) {
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)vocab, key, value) {
        if (!json_is_integer(value))
            return qkvi_error_set(r->error, QKV_ERR_FORMAT,
                                  "%s: an id in model.vocab is no integer", r->name);
        QKV_TRY(add_token(r, &r->tokenizer->model.pieces, "model.vocab", key, strlen(key),
                          json_integer_value(value)));
    }
    return qkvi_tokenizer_seal_model(r->tokenizer, r->error);
}

static qkv_status read_mark(const struct reader *r, const qkvi_json_reader *inner) {
    const char *mark = "##";
    qkvi_wordpiece *model = &r->tokenizer->model;
    QKV_TRY(qkvi_json_take_string(inner, "continuing_subword_prefix", &mark));
    if (strlen(mark) >= sizeof model->mark)
        return qkvi_error_set(r->error, QKV_ERR_LIMIT,
                              "%s: model.continuing_subword_prefix has %zu bytes, the limit is %zu",
                              r->name, strlen(mark), sizeof model->mark - 1);
    memcpy(model->mark, mark, strlen(mark) + 1);
    return QKV_OK;
}

static qkv_status read_model(const struct reader *r) {
    const json_t *object = NULL, *vocab = NULL;
    const char *type = "", *unk = "[UNK]";
    int64_t max_chars = QKVI_WORDPIECE_MAX_CHARS;
    QKV_TRY(part_of(r, "model", &object, &type));
    if (strcmp(type, "WordPiece") != 0) return refuse(r, "model", type);
    const qkvi_json_reader inner = fields(r, "model", object);
    QKV_TRY(read_mark(r, &inner));
    QKV_TRY(qkvi_json_take_string(&inner, "unk_token", &unk));
    QKV_TRY(qkvi_json_take_int(&inner, "max_input_chars_per_word", QKVI_WORDPIECE_LIMIT_CHARS,
                               &max_chars));
    QKV_TRY(qkvi_json_take_object(&inner, "vocab", &vocab));
    if (vocab == NULL)
        return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: model.vocab is missing", r->name);
    QKV_TRY(read_vocabulary(r, vocab));
    qkvi_wordpiece *model = &r->tokenizer->model;
    model->max_chars = (uint32_t)max_chars;
    model->unk = qkvi_pieces_find(&model->pieces, unk, strlen(unk));
    r->tokenizer->special[QKV_TOKEN_UNK] = model->unk;
    if (model->unk >= 0) return QKV_OK;
    char escaped[96];
    return qkvi_error_set(r->error, QKV_ERR_FORMAT,
                          "%s: model.unk_token \"%s\" is not in model.vocab", r->name,
                          qkvi_escape(escaped, sizeof escaped, unk, strlen(unk)));
}

static qkv_status check_added(const struct reader *r, const qkvi_json_reader *inner,
                              const char *content, int64_t id) {
    static const char *const unsupported[] = { "normalized", "single_word", "lstrip", "rstrip" };
    char escaped[96];
    const size_t n_bytes = strlen(content);
    qkvi_escape(escaped, sizeof escaped, content, n_bytes);
    for (size_t i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++) {
        int set = 0;
        QKV_TRY(qkvi_json_take_bool(inner, unsupported[i], &set));
        if (set)
            return qkvi_error_set(r->error, QKV_ERR_UNSUPPORTED,
                                  "%s: added token \"%s\" with \"%s\": true is not supported",
                                  r->name, escaped, unsupported[i]);
    }
    if (n_bytes == 0 || n_bytes > ADDED_MAX_BYTES)
        return qkvi_error_set(r->error, n_bytes ? QKV_ERR_LIMIT : QKV_ERR_FORMAT,
                              "%s: added token \"%s\" has %zu bytes, must be 1 to %d", r->name,
                              escaped, n_bytes, ADDED_MAX_BYTES);
    const int32_t known = qkvi_pieces_find(&r->tokenizer->model.pieces, content, n_bytes);
    size_t other = 0;
    const char *taken = qkv_tokenizer_token(r->tokenizer, (int32_t)id, &other);
    if ((known >= 0 && known != id) || (known < 0 && taken))
        return qkvi_error_set(r->error, QKV_ERR_FORMAT,
                              "%s: added token \"%s\" has id %lld, model.vocab disagrees", r->name,
                              escaped, (long long)id);
    return QKV_OK;
}

static qkv_status read_added_tokens(const struct reader *r) {
    const json_t *list = NULL;
    const qkvi_json_reader top = fields(r, "", r->root);
    QKV_TRY(qkvi_json_take_array(&top, "added_tokens", &list));
    for (size_t i = 0; list && i < json_array_size(list); i++) {
        const json_t *object = json_array_get(list, i);
        if (!json_is_object(object))
            return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: added_tokens[%zu] is no object",
                                  r->name, i);
        const qkvi_json_reader inner = fields(r, "added_tokens", object);
        const char *content = "";
        int64_t id = -1;
        QKV_TRY(qkvi_json_need_string(&inner, "content", &content));
        QKV_TRY(qkvi_json_need_int(&inner, "id", QKVI_PIECES_MAX_IDS - 1, &id));
        QKV_TRY(check_added(r, &inner, content, id));
        QKV_TRY(add_token(r, &r->tokenizer->added, "added_tokens", content, strlen(content), id));
    }
    return qkvi_tokenizer_seal(r->tokenizer, r->error);
}

/* ---- What is put around a text ---------------------------------------------------------------- */

/* ["[SEP]", 102] */
static qkv_status read_special_pair(const struct reader *r, const json_t *object, const char *field,
                                    int32_t *id) {
    const char *token;
    json_int_t number;
    if (json_unpack((json_t *)object, "{s:[s,I]}", field, &token, &number) != 0)
        return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: post_processor.%s is not [token, id]",
                              r->name, field);
    *id = qkv_tokenizer_id(r->tokenizer, token, strlen(token));
    if (*id >= 0 && *id == number) return QKV_OK;
    char escaped[96];
    return qkvi_error_set(
        r->error, QKV_ERR_FORMAT, "%s: post_processor.%s: \"%s\" does not have id %lld", r->name,
        field, qkvi_escape(escaped, sizeof escaped, token, strlen(token)), (long long)number);
}

static qkv_status template_failed(const struct reader *r, const char *field, const char *rule) {
    return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: post_processor.%s: %s", r->name, field,
                          rule);
}

static qkv_status append_item(const struct reader *r, const char *field, qkvi_template *template,
                              int64_t id, json_int_t type) {
    if (template->n == QKVI_TEMPLATE_MAX)
        return qkvi_error_set(r->error, QKV_ERR_LIMIT,
                              "%s: post_processor.%s has more than %d places, the limit", r->name,
                              field, QKVI_TEMPLATE_MAX);
    if (type < 0 || type > 255) return template_failed(r, field, "a type_id is not in 0 … 255");
    template->items[template->n++] = (qkvi_template_item){ (int32_t)id, (uint8_t)type };
    return QKV_OK;
}

/* {"SpecialToken": {"id": "[CLS]", "type_id": 0}}: the ids of special_tokens["[CLS]"], which may be
 * several. */
static qkv_status append_special(const struct reader *r, const char *field, const json_t *specials,
                                 const json_t *item, qkvi_template *template) {
    const char *name;
    json_int_t type;
    if (json_unpack((json_t *)item, "{s:s,s:I}", "id", &name, "type_id", &type) != 0)
        return template_failed(r, field, "a SpecialToken lacks id or type_id");
    const json_t *ids = json_object_get(json_object_get(specials, name), "ids");
    if (!json_is_array(ids)) return template_failed(r, field, "a token is not in special_tokens");
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *value = json_array_get(ids, i);
        const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id >= qkv_tokenizer_size(r->tokenizer))
            return template_failed(r, field, "an id of special_tokens is not in the vocabulary");
        QKV_TRY(append_item(r, field, template, id, type));
    }
    return QKV_OK;
}

/* {"Sequence": {"id": "A", "type_id": 0}} */
static qkv_status append_sequence(const struct reader *r, const char *field, const json_t *item,
                                  qkvi_template *template) {
    const char *name;
    json_int_t type;
    if (json_unpack((json_t *)item, "{s:s,s:I}", "id", &name, "type_id", &type) != 0)
        return template_failed(r, field, "a Sequence lacks id or type_id");
    if (strcmp(name, "A") != 0 && strcmp(name, "B") != 0)
        return template_failed(r, field, "a Sequence is neither A nor B");
    return append_item(r, field, template, *name == 'A' ? QKVI_TEMPLATE_TEXT : QKVI_TEMPLATE_PAIR,
                       type);
}

static qkv_status read_template(const struct reader *r, const json_t *object, const char *field,
                                int n_texts, qkvi_template *template) {
    const json_t *specials = json_object_get(object, "special_tokens");
    const json_t *list = json_object_get(object, field);
    if (!json_is_array(list)) return template_failed(r, field, "must be an array");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const json_t *special = json_object_get(item, "SpecialToken");
        const json_t *sequence = json_object_get(item, "Sequence");
        if (special)
            QKV_TRY(append_special(r, field, specials, special, template));
        else if (sequence)
            QKV_TRY(append_sequence(r, field, sequence, template));
        else
            return template_failed(r, field, "a place is neither SpecialToken nor Sequence");
    }
    int seen[2] = { 0, 0 };
    for (int i = 0; i < template->n; i++) {
        if (template->items[i].id < 0) seen[template->items[i].id == QKVI_TEMPLATE_PAIR]++;
    }
    if (seen[0] != 1 || seen[1] != n_texts - 1)
        return template_failed(
            r, field, n_texts == 1 ? "must hold A once and no B" : "must hold A and B once each");
    return QKV_OK;
}

static qkv_status read_post_processor(const struct reader *r) {
    const json_t *object = NULL;
    const char *type = "";
    QKV_TRY(part_of(r, "post_processor", &object, &type));
    if (strcmp(type, "TemplateProcessing") == 0) {
        QKV_TRY(read_template(r, object, "single", 1, &r->tokenizer->single));
        return read_template(r, object, "pair", 2, &r->tokenizer->pair);
    }
    if (strcmp(type, "BertProcessing") != 0) return refuse(r, "post_processor", type);
    int32_t cls = -1, sep = -1;
    QKV_TRY(read_special_pair(r, object, "cls", &cls));
    QKV_TRY(read_special_pair(r, object, "sep", &sep));
    qkvi_tokenizer_bert_templates(r->tokenizer, cls, sep);
    return QKV_OK;
}

qkv_status qkvi_tokenizer_read_json(const char *name, const void *json, size_t json_bytes,
                                    qkv_tokenizer **out, qkv_error *error) {
    *out = NULL;
    json_t *root = NULL;
    QKV_TRY(qkvi_json_load(name, json, json_bytes, &tokenizer_limits, &root, error));
    const struct reader r = { name, root, qkvi_tokenizer_new(), error };
    qkv_status status =
        r.tokenizer ? QKV_OK
                    : qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for a tokenizer", name);
    if (status == QKV_OK) status = read_normalizer(&r);
    if (status == QKV_OK) status = read_pre_tokenizer(&r);
    if (status == QKV_OK) status = read_model(&r);
    if (status == QKV_OK) status = read_added_tokens(&r);
    if (status == QKV_OK) status = read_post_processor(&r);
    json_decref(root);
    if (status != QKV_OK) {
        qkv_tokenizer_free(r.tokenizer);
        return status;
    }
    *out = r.tokenizer;
    return QKV_OK;
}
