/* Parts of a tokenizer.json: see tokenizer_parts.h. */
#include "text/tokenizer_parts.h"

size_t qkvi_part_count(const json_t *part, const char *list) {
    const json_t *const all = json_object_get(part, list);
    return all ? json_array_size(all) : json_is_object(part);
}

const json_t *qkvi_part_entry(const json_t *part, const char *list, size_t i) {
    const json_t *const all = json_object_get(part, list);
    return all ? json_array_get(all, i) : part;
}

const char *qkvi_part_type(const json_t *part) {
    const char *const type = json_string_value(json_object_get(part, "type"));
    return type ? type : "";
}

int qkvi_part_is(const json_t *part, const char *type) {
    return strcmp(qkvi_part_type(part), type) == 0;
}

int qkvi_part_has_pattern(const json_t *part, const char *kind, const char *text) {
    return qkvi_part_has_text(json_object_get(part, "pattern"), kind, text);
}

int qkvi_part_has_text(const json_t *part, const char *field, const char *text) {
    const char *const is = json_string_value(json_object_get(part, field));
    return is && strcmp(is, text) == 0;
}

int qkvi_part_is_null(const json_t *part) { return part == NULL || json_is_null(part); }

/* ---- Metaspace ------------------------------------------------------------------------------- */

/* prepend_scheme, or add_prefix_space of older files, which may only confirm it. */
static qkv_status read_scheme(const qkvi_tokenizer_reader *r, const char *path, const json_t *part,
                              qkvi_prepend *prepend) {
    static const char *const names[] = { "never", "first", "always" };
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, path, part);
    const char *scheme = "always";
    int prefix = 1;
    QKV_TRY(qkvi_json_take_string(&inner, "prepend_scheme", &scheme));
    QKV_TRY(qkvi_json_take_bool(&inner, "add_prefix_space", &prefix));
    if (!qkvi_part_has_text(part, "replacement", QKVI_META))
        return QKVI_TOKENIZER_FAIL(r, QKV_ERR_UNSUPPORTED,
                                   "%s.replacement that is not U+2581 is not supported", path);
    for (int i = 0; i < 3; i++) {
        if (strcmp(scheme, names[i]) != 0) continue;
        *prepend = (qkvi_prepend)i;
        if (prefix || i == 0) return QKV_OK;
    }
    return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT,
                               "%s.prepend_scheme \"%s\" is not always, first or never, or "
                               "contradicts add_prefix_space",
                               path, QKVI_PRINTABLE(96, scheme));
}

qkv_status qkvi_metaspace_read(const qkvi_tokenizer_reader *r, const json_t *part,
                               qkvi_metaspace *rules) {
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "pre_tokenizer", part);
    rules->is_on = rules->splits = 1;
    QKV_TRY(qkvi_json_take_bool(&inner, "split", &rules->splits));
    return read_scheme(r, "pre_tokenizer", part, &rules->prepend);
}

/* The steps of a decoder in their order, each at most once; how many there are, or 0 for others. */
static int is_decoder(const json_t *part, qkvi_metaspace *rules) {
    static const char list[] = "decoders";
    static const char *const steps[] = { "Replace", "ByteFallback", "Fuse", "Strip" };
    size_t step = 0;
    int seen[4] = { 0 };
    for (size_t i = 0; i < qkvi_part_count(part, list); i++) {
        const json_t *const one = qkvi_part_entry(part, list, i);
        while (step < 4 && !qkvi_part_is(one, steps[step])) step++;
        if (step == 4) return 0;
        seen[step++] = 1;
        if (qkvi_part_is(one, "Replace") && !(qkvi_part_has_pattern(one, "String", QKVI_META) &&
                                              qkvi_part_has_text(one, "content", " ")))
            return 0;
        if (!qkvi_part_is(one, "Strip")) continue;
        const json_int_t start = json_integer_value(json_object_get(one, "start"));
        if (!qkvi_part_has_text(one, "content", " ") ||
            json_integer_value(json_object_get(one, "stop")) != 0 || start < 0 || start > 1024)
            return 0;
        rules->strips = (int)start;
    }
    rules->joins_bytes = seen[1];
    return seen[0] && (seen[2] || !seen[3]);
}

qkv_status qkvi_metaspace_read_decoder(const qkvi_tokenizer_reader *r, const json_t *part,
                                       qkvi_metaspace *rules) {
    qkvi_prepend prepend = QKVI_PREPEND_NEVER;
    r->tokenizer->decoder = QKVI_DECODER_KIND;
    if (qkvi_part_is(part, "Metaspace")) {
        QKV_TRY(read_scheme(r, "decoder", part, &prepend));
        rules->drops_first = prepend != QKVI_PREPEND_NEVER;
    } else if (!is_decoder(part, rules)) {
        r->tokenizer->decoder = QKVI_DECODER_OTHER;
    }
    return QKV_OK;
}
