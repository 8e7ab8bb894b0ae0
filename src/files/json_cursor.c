/* Strings and numbers of a JSON text: see json_cursor.h. RFC 8259, sections 6 and 7. */
#include "files/json_cursor.h"

#include <utf8proc.h>

#include "files/json.h"

enum { MAX_DIGITS = 18 };

char qkvi_json_peek(qkvi_json_cursor *c) {
    c->at = qkvi_json_skip_blanks(c->text, c->end, c->at);
    return c->at < c->end ? c->text[c->at] : '\0';
}

int qkvi_json_take_mark(qkvi_json_cursor *c, char mark) {
    if (qkvi_json_peek(c) != mark) return 0;
    c->at++;
    return 1;
}

int64_t qkvi_json_line(const qkvi_json_cursor *c) {
    int64_t line = 1;
    for (size_t i = 0; i < c->at && i < c->end; i++) line += c->text[i] == '\n';
    return line;
}

/* ---- Strings --------------------------------------------------------------------------------- */

/* What a string becomes; bytes beyond its room are counted only. */
struct room {
    char *bytes;
    size_t capacity, n;
};

static void put(struct room *room, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++, room->n++)
        if (room->n < room->capacity) room->bytes[room->n] = bytes[i];
}

/* Four hexadecimal digits, or -1. */
static int32_t take_hex(qkvi_json_cursor *c) {
    int32_t code = 0;
    if (c->end - c->at < 4) return -1;
    for (int i = 0; i < 4; i++, c->at++) {
        const char digit = c->text[c->at];
        const int low = digit | 0x20;
        if (digit >= '0' && digit <= '9')
            code = code * 16 + (digit - '0');
        else if (low >= 'a' && low <= 'f')
            code = code * 16 + (low - 'a' + 10);
        else
            return -1;
    }
    return code;
}

static int is_high(int32_t code) { return code >= 0xD800 && code <= 0xDBFF; }
static int is_low(int32_t code) { return code >= 0xDC00 && code <= 0xDFFF; }

/* Behind \u: a scalar value but 0, of two halves where the first is one. */
static int take_escaped_code(qkvi_json_cursor *c, struct room *room) {
    int32_t code = take_hex(c);
    char bytes[4];
    if (code <= 0 || is_low(code)) return 0;
    if (is_high(code)) {
        if (c->end - c->at < 6 || c->text[c->at] != '\\' || c->text[c->at + 1] != 'u') return 0;
        c->at += 2;
        const int32_t low = take_hex(c);
        if (!is_low(low)) return 0;
        code = 0x10000 + (code - 0xD800) * 0x400 + (low - 0xDC00);
    }
    put(room, bytes, (size_t)utf8proc_encode_char(code, (utf8proc_uint8_t *)bytes));
    return 1;
}

/* Behind a backslash. */
static int take_escape(qkvi_json_cursor *c, struct room *room) {
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char name = c->at < c->end ? c->text[c->at++] : '\0';
    if (name == 'u') return take_escaped_code(c, room);
    const char *const known = name ? strchr(names, name) : NULL;
    if (known == NULL) return 0;
    put(room, &meanings[known - names], 1);
    return 1;
}

/* A character as it stands. */
static int take_char(qkvi_json_cursor *c, struct room *room) {
    const size_t left = c->end - c->at;
    const unsigned char first = (unsigned char)c->text[c->at];
    int32_t code = first;
    utf8proc_ssize_t length = first >= 0x20;
    if (first >= 0x80)
        length = utf8proc_iterate((const utf8proc_uint8_t *)c->text + c->at,
                                  left < 4 ? (utf8proc_ssize_t)left : 4, &code);
    if (length <= 0) return 0;
    put(room, c->text + c->at, (size_t)length);
    c->at += (size_t)length;
    return 1;
}

int qkvi_json_take_text(qkvi_json_cursor *c, char *bytes, size_t capacity, size_t *n_bytes) {
    struct room room = { bytes, capacity, 0 };
    if (!qkvi_json_take_mark(c, '"')) return 0;
    while (c->at < c->end && c->text[c->at] != '"') {
        const int is_escape = c->text[c->at] == '\\';
        c->at += (size_t)is_escape;
        if (!(is_escape ? take_escape : take_char)(c, &room)) return 0;
    }
    *n_bytes = room.n;
    return qkvi_json_take_mark(c, '"');
}

/* ---- Numbers --------------------------------------------------------------------------------- */

int qkvi_json_take_number(qkvi_json_cursor *c, int64_t *number) {
    const int is_negative = qkvi_json_take_mark(c, '-');
    const size_t first = c->at;
    int64_t value = 0;
    for (; c->at < c->end && c->text[c->at] >= '0' && c->text[c->at] <= '9'; c->at++) {
        if (c->at - first >= MAX_DIGITS) return 0;
        value = value * 10 + (c->text[c->at] - '0');
    }
    if (c->at == first || (c->at - first > 1 && c->text[first] == '0')) return 0;
    if (c->at < c->end && c->text[c->at] && strchr(".eE", c->text[c->at])) return 0;
    *number = is_negative ? -value : value;
    return 1;
}

/* How many digits stand at a place. */
static size_t count_digits(const char *at) { return strspn(at, "0123456789"); }

/* Is it a number as JSON writes them? RFC 8259, section 6. */
static int is_decimal(const char *at) {
    at += *at == '-';
    const size_t whole = count_digits(at);
    if (whole == 0 || (whole > 1 && *at == '0')) return 0;
    at += whole;
    if (*at == '.') {
        const size_t fraction = count_digits(++at);
        if (fraction == 0) return 0;
        at += fraction;
    }
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        const size_t exponent = count_digits(at);
        if (exponent == 0) return 0;
        at += exponent;
    }
    return *at == '\0';
}

int qkvi_json_take_decimal(qkvi_json_cursor *c, char text[QKVI_JSON_DECIMAL_BYTES]) {
    size_t n = 0;
    qkvi_json_peek(c);
    while (c->at + n < c->end && c->text[c->at + n] &&
           strchr("0123456789+-.eE", c->text[c->at + n]))
        if (++n == QKVI_JSON_DECIMAL_BYTES) return 0;
    memcpy(text, c->text + c->at, n);
    text[n] = '\0';
    if (!is_decimal(text)) return 0;
    c->at += n;
    return 1;
}
