/*
 * JSON as the tool writes it: one line an object, 9 significant digits, null for NaN and infinity.
 * Characters that could steer a terminal are \uXXXX, more than JSON requires (controls below
 * U+0020), and in files, too, so that a command writes the same bytes to a terminal and to a file.
 */
#include "common/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "common/csv.h"
#include "common/say.h"
#include "common/term.h"

json_t *json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *json_count(int64_t n) { return n < 0 ? json_null() : json_integer(n); }

json_t *json_bytes(const char *bytes, size_t n) {
    json_t *text = json_stringn(bytes, n);
    if (text) return text;
    char *escaped = term_escape(bytes, n);
    text = json_string(escaped ? escaped : "");
    free(escaped);
    return text;
}

json_t *json_text(const char *text) { return json_bytes(text, strlen(text)); }

json_t *json_doubles(int64_t n, const double *values) {
    json_t *const list = json_array();
    for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_number(values[i]));
    return list;
}

json_t *json_floats(int64_t n, const float *values) {
    json_t *const list = json_array();
    for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_number((double)values[i]));
    return list;
}

json_t *json_ids(int64_t n, const int32_t *ids) {
    json_t *const list = json_array();
    for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_integer(ids[i]));
    return list;
}

json_t *json_ints(int64_t n, const int64_t *values) {
    json_t *const list = json_array();
    for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_integer(values[i]));
    return list;
}

json_t *json_texts(int64_t n, char *const *texts) {
    json_t *const list = json_array();
    for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_text(texts[i]));
    return list;
}

static json_t *value_of(char kind, va_list *values) {
    switch (kind) {
    case 'i': return json_integer(va_arg(*values, int64_t));
    case 'd': return json_integer(va_arg(*values, int));
    case 'c': return json_count(va_arg(*values, int64_t));
    case 'b': return json_boolean(va_arg(*values, int));
    case 'n': return json_number(va_arg(*values, double));
    case 's': return json_string(va_arg(*values, const char *));
    case 't': return json_text(va_arg(*values, const char *));
    default: return va_arg(*values, json_t *);
    }
}

json_t *json_set(json_t *object, const char *members, ...) {
    va_list values;
    va_start(values, members);
    if (!object) object = json_object();
    for (const char *at = members; *at; at += *at == ' ') {
        char name[40];
        const size_t n = strcspn(at, ":");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        json_t *value = value_of(at[n + 1], &values);
        if (value) json_object_set_new(object, name, value);
        at += n + 2;
    }
    va_end(values);
    return object;
}

/* One unit of UTF-16, or two above U+FFFF. */
static bool put_units(FILE *out, uint32_t point) {
    if (point < 0x10000) return fprintf(out, "\\u%04X", (unsigned)point) > 0;
    const unsigned above = point - 0x10000;
    return fprintf(out, "\\u%04X\\u%04X", 0xD800 + (above >> 10), 0xDC00 + (above & 0x3FF)) > 0;
}

/* A piece of JSON, of whole characters. Those that are not shown can only be in strings. */
static int put_piece(const char *piece, size_t n, void *out) {
    size_t begin = 0; /* of what was not put yet */
    for (size_t i = 0; i < n;) {
        utf8proc_int32_t point;
        const utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)piece + i,
                                                         (utf8proc_ssize_t)(n - i), &point);
        if (length <= 0) return -1;
        if (!term_shows(point)) {
            fwrite(piece + begin, 1, i - begin, out);
            if (!put_units(out, (uint32_t)point)) return -1;
            begin = i + (size_t)length;
        }
        i += (size_t)length;
    }
    return fwrite(piece + begin, 1, n - begin, out) == n - begin ? 0 : -1;
}

bool json_put(FILE *out, const json_t *value) {
    static const size_t style =
        JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9) | JSON_ENCODE_ANY;
    return value && json_dump_callback(value, put_piece, out, style) == 0;
}

bool json_print(FILE *out, json_t *object) {
    const bool written = json_put(out, object) && fputc('\n', out) != EOF;
    if (!object) cli_fail("out of memory");
    json_decref(object);
    return written;
}

int json_emit(json_t *object) { return json_print(stdout, object) ? EXIT_OK : EXIT_FAILED; }

qkv_status json_write_file(const char *path, json_t *object, qkv_error *error) {
    struct csv file; /* any text that grows in memory */
    csv_open(&file);
    if (file.out) file.failed = !json_put(file.out, object) || fputc('\n', file.out) == EOF;
    json_decref(object);
    return csv_write(&file, path, error);
}
