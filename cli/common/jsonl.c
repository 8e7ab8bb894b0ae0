/* Lines of JSON: see lines.h. */
#include "common/lines.h"

#include <utf8proc.h>

static const char not_texts[] = "not a string, nor an array of two strings";

static qkv_status check_utf8(const struct text *line, qkv_error *error) {
    for (size_t at = 0; at < line->n;) {
        utf8proc_int32_t code;
        const utf8proc_ssize_t n =
            utf8proc_iterate((const utf8proc_uint8_t *)line->bytes + at,
                             (utf8proc_ssize_t)(line->n - at < 4 ? line->n - at : 4), &code);
        if (n <= 0) return text_error(error, QKV_ERR_FORMAT, "not valid UTF-8 at byte %zu", at);
        at += (size_t)n;
    }
    return QKV_OK;
}

/* Outside of strings there may be one '[' and one ','. What else is wrong the parser finds. */
static qkv_status check_values(const struct text *line, qkv_error *error) {
    int n_arrays = 0, n_commas = 0;
    bool in_string = false;
    for (size_t at = 0; at < line->n; at++) {
        const char c = line->bytes[at];
        if (c == '"') in_string = !in_string;
        if (in_string && c == '\\') at++;
        if (in_string) continue;
        n_arrays += c == '[';
        n_commas += c == ',';
        if (n_arrays > 1 || n_commas > 1 || c == '{')
            return text_error(error, QKV_ERR_FORMAT, "%s", not_texts);
    }
    return QKV_OK;
}

static qkv_status parse(const struct text *line, json_t **root, qkv_error *error) {
    json_error_t reason;
    qkv_status status = check_utf8(line, error);
    if (status == QKV_OK) status = check_values(line, error);
    if (status != QKV_OK) return status;
    *root =
        json_loadb(line->n ? line->bytes : "", line->n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &reason);
    if (*root) return QKV_OK;
    return text_error(error, QKV_ERR_FORMAT, "%s", reason.text);
}

qkv_status jsonl_parse(const struct text *line, struct text texts[2], int *n_texts, json_t **root,
                       qkv_error *error) {
    const qkv_status status = parse(line, root, error);
    if (status != QKV_OK) return status;
    const bool pair = json_is_array(*root) && json_array_size(*root) == 2;
    *n_texts = pair ? 2 : 1;
    for (int i = 0; i < *n_texts; i++) {
        const json_t *item = pair ? json_array_get(*root, (size_t)i) : *root;
        if (!json_is_string(item)) return text_error(error, QKV_ERR_FORMAT, "%s", not_texts);
        texts[i] =
            (struct text){ (char *)(uintptr_t)json_string_value(item), json_string_length(item) };
    }
    return QKV_OK;
}
