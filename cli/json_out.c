/*
 * JSON as the tool writes it: one line an object, 9 significant digits, null for what JSON cannot
 * say.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "input.h"
#include "term.h"

static const size_t STYLE = JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9);

json_t *json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *text_json(const char *bytes, size_t n) {
    json_t *text = json_stringn(bytes, n);
    if (text) return text;
    char *escaped = term_escape(bytes, n);
    text = json_string(escaped ? escaped : "");
    free(escaped);
    return text;
}

json_t *json_text(const char *text) { return text_json(text, strlen(text)); }

json_t *text_token_json(const struct session *session, int32_t id) {
    size_t n = 0;
    const char *token = qkv_tokenizer_token(session->tokenizer, id, &n);
    return text_json(token ? token : "", token ? n : 0);
}

json_t *text_tokens_json(const struct session *session, const qkv_encoding *input) {
    json_t *tokens = json_array();
    for (int64_t i = 0; i < input->n; i++)
        json_array_append_new(tokens, text_token_json(session, input->ids[i]));
    return tokens;
}

bool json_print(FILE *out, json_t *object) {
    const bool written = object && json_dumpf(object, out, STYLE) == 0 && fputc('\n', out) != EOF;
    if (!object) cli_fail("out of memory");
    json_decref(object);
    return written;
}

qkv_status json_write_file(const char *path, json_t *object, qkv_error *error) {
    char temporary[4096];
    const int length = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    const int file = length < (int)sizeof temporary ? mkstemp(temporary) : -1;
    FILE *out = file >= 0 ? fdopen(file, "w") : NULL;
    if (!out) {
        const int reason = length < (int)sizeof temporary ? errno : ENAMETOOLONG;
        if (file >= 0) close(file), unlink(temporary);
        json_decref(object);
        return text_error(error, QKV_ERR_IO, "%s: %s", path, strerror(reason));
    }
    bool good = json_print(out, object) && fflush(out) == 0;
    const mode_t mask = umask(0);
    umask(mask);
    good = good && fchmod(file, 0666 & ~mask) == 0 && fsync(file) == 0;
    good = fclose(out) == 0 && good;
    good = good && rename(temporary, path) == 0;
    if (good) return QKV_OK;
    text_error(error, QKV_ERR_IO, "%s: %s", path, strerror(errno));
    unlink(temporary);
    return QKV_ERR_IO;
}
