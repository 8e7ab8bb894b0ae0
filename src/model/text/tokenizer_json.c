/**
 * tokenizer.json: the part of Hugging Face's format that our models use.
 *
 *     model           by its type, with normalizer and pre_tokenizer: the kinds below
 *     added_tokens    cut out of the raw text
 *     post_processor  BertProcessing or TemplateProcessing
 *
 * What would change ids and is not implemented is refused by its name: other types, added tokens
 * that are normalised, strip white space or stand as single words only. truncation and padding are
 * ignored: nothing is ever cut or padded here.
 */
#include "model/text/tokenizer_json.h"

#include <string.h>

#include "core/status.h"
#include "model/text/post_processor.h"
#include "model/text/wordpiece.h"

/* Half a million tokens fit. What is refused costs less than a second and 100 MB. */
static const qkvi_json_limits tokenizer_limits = {
    .max_bytes = (size_t)16 << 20, .max_values = 600000, .max_containers = 30000, .max_depth = 64
};

enum { ADDED_MAX_BYTES = 256 }; /* bounds the walk at each byte of a text */

qkvi_json_reader qkvi_tokenizer_fields(const qkvi_tokenizer_reader *r, const char *path,
                                       const json_t *object) {
    return (qkvi_json_reader){ r->name, path, object, r->error };
}

qkv_status qkvi_tokenizer_refuse(const qkvi_tokenizer_reader *r, const char *part,
                                 const char *type) {
    char escaped[96];
    return qkvi_error_set(r->error, QKV_ERR_UNSUPPORTED, "%s: %s \"%s\" is not supported", r->name,
                          part, qkvi_escape(escaped, sizeof escaped, type, strlen(type)));
}

qkv_status qkvi_tokenizer_part(const qkvi_tokenizer_reader *r, const char *part,
                               const json_t **object, const char **type) {
    const qkvi_json_reader top = qkvi_tokenizer_fields(r, "", r->root);
    QKV_TRY(qkvi_json_take_object(&top, part, object));
    if (*object == NULL) return qkvi_tokenizer_refuse(r, part, "null");
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, part, *object);
    return qkvi_json_need_string(&inner, "type", type);
}

/* ---- Vocabulary ------------------------------------------------------------------------------ */

qkv_status qkvi_tokenizer_add(const qkvi_tokenizer_reader *r, qkvi_pieces *pieces, const char *path,
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

qkv_status qkvi_tokenizer_read_ids(const qkvi_tokenizer_reader *r, const char *path,
                                   const json_t *vocab) {
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)vocab, key, value) {
        if (!json_is_integer(value))
            return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: an id in %s is no integer",
                                  r->name, path);
        QKV_TRY(qkvi_tokenizer_add(r, &r->tokenizer->pieces, path, key, strlen(key),
                                   json_integer_value(value)));
    }
    return QKV_OK;
}

static qkv_status check_added(const qkvi_tokenizer_reader *r, const qkvi_json_reader *inner,
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
    const int32_t known = qkvi_pieces_find(&r->tokenizer->pieces, content, n_bytes);
    size_t other = 0;
    const char *taken = qkv_tokenizer_token(r->tokenizer, (int32_t)id, &other);
    if ((known >= 0 && known != id) || (known < 0 && taken))
        return qkvi_error_set(r->error, QKV_ERR_FORMAT,
                              "%s: added token \"%s\" has id %lld, model.vocab disagrees", r->name,
                              escaped, (long long)id);
    return QKV_OK;
}

static qkv_status read_added_tokens(const qkvi_tokenizer_reader *r) {
    const json_t *list = NULL;
    const qkvi_json_reader top = qkvi_tokenizer_fields(r, "", r->root);
    QKV_TRY(qkvi_json_take_array(&top, "added_tokens", &list));
    for (size_t i = 0; list && i < json_array_size(list); i++) {
        const json_t *object = json_array_get(list, i);
        if (!json_is_object(object))
            return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: added_tokens[%zu] is no object",
                                  r->name, i);
        const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "added_tokens", object);
        const char *content = "";
        int64_t id = -1;
        QKV_TRY(qkvi_json_need_string(&inner, "content", &content));
        QKV_TRY(qkvi_json_need_int(&inner, "id", QKVI_PIECES_MAX_IDS - 1, &id));
        QKV_TRY(check_added(r, &inner, content, id));
        QKV_TRY(qkvi_tokenizer_add(r, &r->tokenizer->added, "added_tokens", content,
                                   strlen(content), id));
    }
    return qkvi_tokenizer_seal(r->tokenizer, r->error);
}

static qkv_status read_post_processor(const qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    const char *type = "";
    QKV_TRY(qkvi_tokenizer_part(r, "post_processor", &object, &type));
    return qkvi_post_processor_read(r->name, object, type, r->tokenizer, r->error);
}

/* Kinds of model, by model.type. */
static const struct {
    const qkvi_tokenizer_kind *kind;
    qkvi_tokenizer_read_kind *read;
} kinds[] = {
    { &qkvi_wordpiece_kind, qkvi_wordpiece_read_json },
};

static qkv_status read_kind(qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    const char *type = "";
    QKV_TRY(qkvi_tokenizer_part(r, "model", &object, &type));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].kind->name, type) == 0) return kinds[i].read(r);
    }
    return qkvi_tokenizer_refuse(r, "model", type);
}

qkv_status qkvi_tokenizer_read_json(const char *name, const void *json, size_t json_bytes,
                                    qkv_tokenizer **out, qkv_error *error) {
    *out = NULL;
    json_t *root = NULL;
    QKV_TRY(qkvi_json_load(name, json, json_bytes, &tokenizer_limits, &root, error));
    qkvi_tokenizer_reader r = { name, root, NULL, error };
    qkv_status status = read_kind(&r);
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
