/**
 * tokenizer.json: the part of Hugging Face's format that our models use.
 *
 *     model           by its type, with normalizer and pre_tokenizer: the kinds below
 *     added_tokens    cut out of the raw text
 *     post_processor  what is put around a text
 *     decoder         that of the kind, for decoding
 *
 * What would change ids and is not implemented is refused by its name: other types, added tokens
 * of a kind that normalises which are normalised too. truncation and padding are
 * ignored: nothing is ever cut or padded here.
 */
#include "model/text/tokenizer_json.h"

#include <string.h>

#include "core/status.h"
#include "model/text/bpe.h"
#include "model/text/post_processor.h"
#include "model/text/wordpiece.h"

const qkvi_json_limits qkvi_json_limits_tokenizer = {
    .max_bytes = (size_t)16 << 20, .max_values = 600000, .max_containers = 120000, .max_depth = 64
};

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

qkv_status qkvi_tokenizer_take_flags(const qkvi_json_reader *token, unsigned *flags) {
    static const struct {
        const char *name;
        unsigned flag;
    } switches[] = {
        { "special", QKVI_ADDED_SPECIAL },         { "normalized", QKVI_ADDED_NORMALIZED },
        { "lstrip", QKVI_ADDED_LSTRIP },           { "rstrip", QKVI_ADDED_RSTRIP },
        { "single_word", QKVI_ADDED_SINGLE_WORD },
    };
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        int set = (*flags & switches[i].flag) != 0;
        QKV_TRY(qkvi_json_take_bool(token, switches[i].name, &set));
        *flags = set ? *flags | switches[i].flag : *flags & ~switches[i].flag;
    }
    return QKV_OK;
}

qkv_status qkvi_tokenizer_add_added(const qkvi_tokenizer_reader *r, const char *path,
                                    const char *content, int64_t id, unsigned flags) {
    char escaped[96];
    size_t other = 0;
    const size_t n_bytes = strlen(content);
    qkvi_escape(escaped, sizeof escaped, content, n_bytes);
    if ((flags & QKVI_ADDED_NORMALIZED) && r->tokenizer->kind->normalizes)
        return qkvi_error_set(r->error, QKV_ERR_UNSUPPORTED,
                              "%s: added token \"%s\" with \"normalized\": true is not supported",
                              r->name, escaped);
    if (n_bytes == 0 || n_bytes > QKVI_ADDED_MAX_BYTES)
        return qkvi_error_set(r->error, n_bytes ? QKV_ERR_LIMIT : QKV_ERR_FORMAT,
                              "%s: added token \"%s\" has %zu bytes, must be 1 to %d", r->name,
                              escaped, n_bytes, QKVI_ADDED_MAX_BYTES);
    if (id < 0 || id >= QKVI_PIECES_MAX_IDS)
        return qkvi_error_set(r->error, id < 0 ? QKV_ERR_FORMAT : QKV_ERR_LIMIT,
                              "%s: %s: \"%s\" has id %lld, the limit is %d", r->name, path, escaped,
                              (long long)id, QKVI_PIECES_MAX_IDS - 1);
    if (qkvi_added_token(&r->tokenizer->added, (int32_t)id, &other))
        return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: %s: two tokens have id %lld", r->name,
                              path, (long long)id);
    const int32_t known = qkvi_pieces_find(&r->tokenizer->pieces, content, n_bytes);
    const char *taken = qkvi_pieces_token(&r->tokenizer->pieces, (int32_t)id, &other);
    if ((known >= 0 && known != id) || (known < 0 && taken))
        return qkvi_error_set(r->error, QKV_ERR_FORMAT,
                              "%s: added token \"%s\" has id %lld, the vocabulary disagrees",
                              r->name, escaped, (long long)id);
    if (qkvi_added_add(&r->tokenizer->added, (int32_t)id, content, n_bytes, flags) != QKV_OK)
        return qkvi_error_set(r->error, QKV_ERR_MEMORY, "%s: no memory for the vocabulary",
                              r->name);
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
        unsigned flags = 0;
        QKV_TRY(qkvi_tokenizer_take_flags(&inner, &flags));
        QKV_TRY(qkvi_tokenizer_add_added(r, "added_tokens", content, id, flags));
    }
    return qkvi_tokenizer_seal(r->tokenizer, r->error);
}

/* Absent or null: nothing stands around a text, as in the reference; a model of BERT's kind cannot
 * use that. */
static qkv_status read_post_processor(const qkvi_tokenizer_reader *r) {
    const json_t *value = json_object_get(r->root, "post_processor");
    const json_t *object = NULL;
    const char *type = "";
    if ((value == NULL || json_is_null(value)) && r->tokenizer->kind->may_be_bare) {
        r->tokenizer->single = qkvi_bare_single;
        r->tokenizer->pair = qkvi_bare_pair;
        return QKV_OK;
    }
    QKV_TRY(qkvi_tokenizer_part(r, "post_processor", &object, &type));
    return qkvi_post_processor_read(r->name, object, type, r->tokenizer, r->error);
}

/* A decoder changes no ids: one that is not the kind's is refused when something is decoded. */
static qkv_status read_decoder(const qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    const char *type = "";
    const qkvi_json_reader top = qkvi_tokenizer_fields(r, "", r->root);
    QKV_TRY(qkvi_json_take_object(&top, "decoder", &object));
    r->tokenizer->decoder = QKVI_DECODER_PLAIN;
    if (object == NULL) return QKV_OK;
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "decoder", object);
    QKV_TRY(qkvi_json_need_string(&inner, "type", &type));
    r->tokenizer->decoder =
        strcmp(type, r->tokenizer->kind->decoder) == 0 ? QKVI_DECODER_KIND : QKVI_DECODER_OTHER;
    return QKV_OK;
}

/* Kinds of model, by model.type. */
static const struct {
    const qkvi_tokenizer_kind *kind;
    qkvi_tokenizer_read_kind *read;
} kinds[] = {
    { &qkvi_wordpiece_kind, qkvi_wordpiece_read_json },
    { &qkvi_bpe_kind, qkvi_bpe_read_json },
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
    QKV_TRY(qkvi_json_load(name, json, json_bytes, &qkvi_json_limits_tokenizer, &root, error));
    qkvi_tokenizer_reader r = { name, root, NULL, error };
    qkv_status status = read_kind(&r);
    if (status == QKV_OK) status = read_added_tokens(&r);
    if (status == QKV_OK) status = read_post_processor(&r);
    if (status == QKV_OK) status = read_decoder(&r);
    json_decref(root);
    if (status != QKV_OK) {
        qkv_tokenizer_free(r.tokenizer);
        return status;
    }
    *out = r.tokenizer;
    return QKV_OK;
}
