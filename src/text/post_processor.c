/**
 * Templates around a text, in the forms of a tokenizer.json:
 *
 *     BertProcessing      {"sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}
 *     RobertaProcessing   the same, and trim_offsets, add_prefix_space
 *     ByteLevel           {"trim_offsets": true, "add_prefix_space": true}: adds no tokens
 *     Sequence            {"processors": [ByteLevel …, one of the others]}
 *     TemplateProcessing  {"single": [PLACE, …], "pair": [PLACE, …], "special_tokens": {…}}
 *
 * where a PLACE is {"SpecialToken": {"id": "[CLS]", "type_id": 0}} or {"Sequence": {"id": "A",
 * "type_id": 0}}. Every id of a template must be in the vocabulary, and each text occur once.
 */
#include "text/tokenizer_json.h"

#include "files/json.h"

/* ["[SEP]", 102] */
static qkv_status read_special_pair(const qkvi_tokenizer_reader *r, const json_t *object,
                                    const char *field, int32_t *id) {
    const char *token;
    json_int_t number;
    if (json_unpack((json_t *)object, "{s:[s,I]}", field, &token, &number) != 0)
        return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: post_processor.%s is not [token, id]",
                              r->name, field);
    *id = qkv_tokenizer_id(r->tokenizer, token, strlen(token));
    if (*id >= 0 && *id == number) return QKV_OK;
    return qkvi_error_set(r->error, QKV_ERR_FORMAT,
                          "%s: post_processor.%s: \"%s\" does not have id %lld", r->name, field,
                          QKVI_PRINTABLE(96, token), (long long)number);
}

static qkv_status template_failed(const qkvi_tokenizer_reader *r, const char *field,
                                  const char *rule) {
    return qkvi_error_set(r->error, QKV_ERR_FORMAT, "%s: post_processor.%s: %s", r->name, field,
                          rule);
}

static qkv_status append_item(const qkvi_tokenizer_reader *r, const char *field,
                              qkvi_template *template, int64_t id, json_int_t type) {
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
static qkv_status append_special(const qkvi_tokenizer_reader *r, const char *field,
                                 const json_t *specials, const json_t *item,
                                 qkvi_template *template) {
    const char *name;
    json_int_t type;
    if (json_unpack((json_t *)item, "{s:s,s:I}", "id", &name, "type_id", &type) != 0)
        return template_failed(r, field, "a SpecialToken lacks id or type_id");
    const json_t *ids = json_object_get(json_object_get(specials, name), "ids");
    if (!json_is_array(ids)) return template_failed(r, field, "a token is not in special_tokens");
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *value = json_array_get(ids, i);
        const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        size_t n_bytes;
        if (id < 0 || id > INT32_MAX ||
            !qkv_tokenizer_token(r->tokenizer, (int32_t)id, &n_bytes)) /* ids may have gaps */
            return template_failed(r, field, "an id of special_tokens is not in the vocabulary");
        QKV_TRY(append_item(r, field, template, id, type));
    }
    return QKV_OK;
}

/* {"Sequence": {"id": "A", "type_id": 0}} */
static qkv_status append_sequence(const qkvi_tokenizer_reader *r, const char *field,
                                  const json_t *item, qkvi_template *template) {
    const char *name;
    json_int_t type;
    if (json_unpack((json_t *)item, "{s:s,s:I}", "id", &name, "type_id", &type) != 0)
        return template_failed(r, field, "a Sequence lacks id or type_id");
    if (strcmp(name, "A") != 0 && strcmp(name, "B") != 0)
        return template_failed(r, field, "a Sequence is neither A nor B");
    return append_item(r, field, template, *name == 'A' ? QKVI_TEMPLATE_TEXT : QKVI_TEMPLATE_PAIR,
                       type);
}

static qkv_status read_template(const qkvi_tokenizer_reader *r, const json_t *object,
                                const char *field, int n_texts, qkvi_template *template) {
    const json_t *specials = json_object_get(object, "special_tokens");
    const json_t *list = json_object_get(object, field);
    *template = (qkvi_template){ 0 };
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

/* trim_offsets and add_prefix_space, true unless the file says otherwise. */
static qkv_status read_trim(const qkvi_tokenizer_reader *r, const json_t *object) {
    const qkvi_json_reader fields = { r->name, "post_processor", object, r->error };
    int trim = 1, prefix = 1;
    QKV_TRY(qkvi_json_take_bool(&fields, "trim_offsets", &trim));
    QKV_TRY(qkvi_json_take_bool(&fields, "add_prefix_space", &prefix));
    r->tokenizer->trim_offsets = trim;
    r->tokenizer->trim_keeps_first = prefix;
    return QKV_OK;
}

/* {"sep": ["[SEP]", 102], "cls": ["[CLS]", 101]} */
static qkv_status read_around(const qkvi_tokenizer_reader *r, const json_t *object,
                              void (*set)(qkv_tokenizer *, int32_t cls, int32_t sep)) {
    int32_t cls = -1, sep = -1;
    QKV_TRY(read_special_pair(r, object, "cls", &cls));
    QKV_TRY(read_special_pair(r, object, "sep", &sep));
    set(r->tokenizer, cls, sep);
    return QKV_OK;
}

static qkv_status read_bare(const qkvi_tokenizer_reader *r, const json_t *object) {
    r->tokenizer->single = qkvi_bare_single;
    r->tokenizer->pair = qkvi_bare_pair;
    return read_trim(r, object);
}

static qkv_status read_one(const qkvi_tokenizer_reader *r, const json_t *object, const char *type) {
    if (strcmp(type, "TemplateProcessing") == 0) {
        QKV_TRY(read_template(r, object, "single", 1, &r->tokenizer->single));
        return read_template(r, object, "pair", 2, &r->tokenizer->pair);
    }
    if (strcmp(type, "BertProcessing") == 0)
        return read_around(r, object, qkvi_tokenizer_bert_templates);
    if (strcmp(type, "RobertaProcessing") == 0) {
        QKV_TRY(read_trim(r, object));
        return read_around(r, object, qkvi_tokenizer_roberta_templates);
    }
    if (strcmp(type, "ByteLevel") == 0 && r->tokenizer->kind->may_be_bare)
        return read_bare(r, object);
    return qkvi_error_set(r->error, QKV_ERR_UNSUPPORTED,
                          "%s: post_processor \"%s\" is not supported", r->name,
                          QKVI_PRINTABLE(96, type));
}

/* Ranges are trimmed before anything is put around a text: what puts it there comes last. */
static qkv_status read_sequence(const qkvi_tokenizer_reader *r, const json_t *object) {
    const json_t *const list = json_object_get(object, "processors");
    const size_t n = json_array_size(list);
    r->tokenizer->single = qkvi_bare_single;
    r->tokenizer->pair = qkvi_bare_pair;
    if (!json_is_array(list)) return read_one(r, object, "Sequence");
    for (size_t i = 0; i < n; i++) {
        const json_t *const one = json_array_get(list, i);
        const char *const type = json_string_value(json_object_get(one, "type"));
        if (type == NULL || (i + 1 < n && strcmp(type, "ByteLevel") != 0))
            return read_one(r, object, "Sequence");
        QKV_TRY(read_one(r, one, type));
    }
    return n > 0 || r->tokenizer->kind->may_be_bare ? QKV_OK : read_one(r, object, "Sequence");
}

/* Absent or null: nothing stands around a text, as in the reference; a model of BERT's kind cannot
 * use that. */
qkv_status qkvi_tokenizer_read_post_processor(const qkvi_tokenizer_reader *r) {
    const json_t *value = json_object_get(r->root, "post_processor");
    const json_t *object = NULL;
    const char *type = "";
    if ((value == NULL || json_is_null(value)) && r->tokenizer->kind->may_be_bare) {
        r->tokenizer->single = qkvi_bare_single;
        r->tokenizer->pair = qkvi_bare_pair;
        return QKV_OK;
    }
    QKV_TRY(qkvi_tokenizer_part(r, "post_processor", &object, &type));
    return strcmp(type, "Sequence") == 0 ? read_sequence(r, object) : read_one(r, object, type);
}
