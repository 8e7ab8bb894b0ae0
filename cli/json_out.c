/*
 * JSON as the tool writes it: one line an object, 9 significant digits, null for what JSON cannot
 * say.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "term.h"

static const size_t STYLE = JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9);

json_t *json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *json_bytes(const char *bytes, size_t n) {
    json_t *text = json_stringn(bytes, n);
    if (text) return text;
    char *escaped = term_escape(bytes, n);
    text = json_string(escaped ? escaped : "");
    free(escaped);
    return text;
}

json_t *json_text(const char *text) { return json_bytes(text, strlen(text)); }

json_t *token_json(const qkv_tokenizer *tokenizer, int32_t id) {
    size_t n = 0;
    const char *token = qkv_tokenizer_token(tokenizer, id, &n);
    return json_bytes(token ? token : "", token ? n : 0);
}

json_t *tokens_json(const qkv_tokenizer *tokenizer, const qkv_encoding *input) {
    json_t *tokens = json_array();
    for (int64_t i = 0; i < input->n; i++)
        json_array_append_new(tokens, token_json(tokenizer, input->ids[i]));
    return tokens;
}

json_t *text_token_json(const struct session *session, int32_t id) {
    return token_json(session->tokenizer, id);
}

json_t *text_tokens_json(const struct session *session, const qkv_encoding *input) {
    return tokens_json(session->tokenizer, input);
}

bool json_print(FILE *out, json_t *object) {
    const bool written = object && json_dumpf(object, out, STYLE) == 0 && fputc('\n', out) != EOF;
    if (!object) cli_fail("out of memory");
    json_decref(object);
    return written;
}

qkv_status json_write_file(const char *path, json_t *object, qkv_error *error) {
    char *line = object ? json_dumps(object, STYLE) : NULL;
    const size_t n = line ? strlen(line) : 0;
    json_decref(object);
    if (!line) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    line[n] = '\n'; /* in the place of the NUL */
    const qkv_status status = qkv_file_write(path, line, n + 1, error);
    free(line);
    return status;
}
