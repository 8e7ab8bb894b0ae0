#include "text/tokenizer_fields.h"

const qkvi_json_limits qkvi_json_limits_tokenizer = { .max_bytes = (size_t)16 << 20,
                                                      .max_values = 600000,
                                                      .max_containers = 120000,
                                                      .max_depth = 64,
                                                      .wide_integers = 1 };

qkvi_json_reader qkvi_tokenizer_fields(const qkvi_tokenizer_reader *r, const char *path,
                                       const json_t *object) {
    return (qkvi_json_reader){ r->name, path, object, r->error };
}

qkvi_tokenizer_reader qkvi_tokenizer_reader_of(const qkvi_settings *s, const json_t *root,
                                               qkv_tokenizer *tokenizer) {
    return (qkvi_tokenizer_reader){ s->files->tokenizer.name, root,    tokenizer, s->error,
                                    s->files->lower_first,    s->words };
}

qkv_status qkvi_tokenizer_broken(const qkvi_tokenizer_reader *r, const char *path,
                                 const qkvi_json_cursor *at) {
    return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT, "line %lld: %s breaks its format",
                               (long long)qkvi_json_line(at), path);
}

qkv_status qkvi_tokenizer_refuse(const qkvi_tokenizer_reader *r, const char *part,
                                 const char *type) {
    return QKVI_TOKENIZER_FAIL(r, QKV_ERR_UNSUPPORTED, "%s \"%s\" is not supported", part,
                               QKVI_PRINTABLE(96, type));
}

qkv_status qkvi_tokenizer_part(const qkvi_tokenizer_reader *r, const char *part,
                               const json_t **object, const char **type) {
    const qkvi_json_reader top = qkvi_tokenizer_fields(r, "", r->root);
    QKV_TRY(qkvi_json_take_object(&top, part, object));
    if (*object == NULL) return qkvi_tokenizer_refuse(r, part, "null");
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, part, *object);
    return qkvi_json_need_string(&inner, "type", type);
}

/* "Lowercase", another type, or a Sequence of them. */
qkv_status qkvi_tokenizer_normalizer(const qkvi_tokenizer_reader *r, const json_t **last,
                                     int *lowers) {
    const json_t *object = json_object_get(r->root, "normalizer"), *list = NULL;
    const char *type = "";
    *last = NULL;
    *lowers = r->lower_first;
    if (object == NULL || json_is_null(object)) return QKV_OK;
    QKV_TRY(qkvi_tokenizer_part(r, "normalizer", &object, &type));
    if (strcmp(type, "Sequence") == 0) {
        const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "normalizer", object);
        QKV_TRY(qkvi_json_take_array(&inner, "normalizers", &list));
    }
    const size_t n = list ? json_array_size(list) : 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *const one = list ? json_array_get(list, i) : object;
        const char *name = json_string_value(json_object_get(one, "type"));
        if (name == NULL || (strcmp(name, "Lowercase") != 0 && i + 1 < n))
            return qkvi_tokenizer_refuse(r, "normalizer", type);
        if (strcmp(name, "Lowercase") == 0)
            *lowers = 1;
        else
            *last = one;
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
    if (!json_object_get(token->object, "normalized") && !(*flags & QKVI_ADDED_SPECIAL))
        *flags |= QKVI_ADDED_NORMALIZED;
    return QKV_OK;
}

qkv_status qkvi_tokenizer_model(const qkvi_tokenizer_reader *r, const char *type,
                                const json_t **model) {
    const char *is = "";
    QKV_TRY(qkvi_tokenizer_part(r, "model", model, &is));
    return strcmp(is, type) == 0 ? QKV_OK : qkvi_tokenizer_refuse(r, "model", is);
}

qkv_status qkvi_settings_token(const char *file, const char *field, const json_t *value,
                               int is_special, qkvi_named_token *token, qkv_error *error) {
    const qkvi_json_reader inner = { file, field, value, error };
    *token = (qkvi_named_token){ json_string_value(value), QKVI_ADDED_SPECIAL, 1 };
    if (token->content) return QKV_OK;
    if (!json_is_object(value))
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: %s is neither a string nor an object",
                              file, field);
    token->flags = is_special ? QKVI_ADDED_SPECIAL : 0;
    QKV_TRY(qkvi_json_need_string(&inner, "content", &token->content));
    QKV_TRY(qkvi_tokenizer_take_flags(&inner, &token->flags));
    if (!is_special) return QKV_OK;
    if (!json_object_get(value, "normalized")) token->flags &= ~(unsigned)QKVI_ADDED_NORMALIZED;
    token->flags |= QKVI_ADDED_SPECIAL;
    return QKV_OK;
}
