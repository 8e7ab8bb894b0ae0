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
#include "model/text/post_processor.h"

/* Half a million tokens fit. What is refused costs less than a second and 100 MB. */
static const qkvi_json_limits tokenizer_limits = {
    .max_bytes = (size_t)16 << 20, .max_values = 600000, .max_containers = 30000, .max_depth = 64
};

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

/* ---- Vocabulary ------------------------------------------------------------------------------ */

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

static qkv_status read_post_processor(const struct reader *r) {
    const json_t *object = NULL;
    const char *type = "";
    QKV_TRY(part_of(r, "post_processor", &object, &type));
    return qkvi_post_processor_read(r->name, object, type, r->tokenizer, r->error);
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
