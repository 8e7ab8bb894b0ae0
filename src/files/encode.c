/**
 * Escapes of HTML and JSON, and base64. Whatever a token contains, no byte of it can end the
 * element or the string that it is in.
 */
#include "files/encode.h"

#include <ctype.h>
#include <math.h>

char *qkvi_shown(const char *bytes) {
    const size_t n = bytes ? strlen(bytes) : 0;
    char *shown = qkvi_malloc_array(n + 1, 4);
    if (shown == NULL) return NULL;
    return qkvi_escape(shown, 4 * (n + 1), bytes ? bytes : "", n);
}

char *qkvi_shown_lines(const char *bytes) {
    const size_t n = bytes ? strlen(bytes) : 0;
    char *shown = qkvi_malloc_array(n + 1, 4);
    if (shown == NULL) return NULL;
    char *out = shown;
    *out = '\0';
    for (const char *line = bytes ? bytes : ""; *line;) {
        const size_t length = strcspn(line, "\n");
        qkvi_escape(out, 4 * (length + 1), line, length);
        out += strlen(out);
        line += length;
        if (*line == '\n') *out++ = *line++;
        *out = '\0';
    }
    return shown;
}

void qkvi_number(char *text, size_t text_bytes, double x, int decimals) {
    long long scale = 1;
    for (int i = 0; i < decimals; i++) scale *= 10;
    const long long value = llround(fabs(x) * (double)scale);
    const char *sign = x < 0 && value ? "-" : "";
    if (decimals == 0)
        snprintf(text, text_bytes, "%s%lld", sign, value);
    else
        snprintf(text, text_bytes, "%s%lld.%0*lld", sign, value / scale, decimals, value % scale);
}

void qkvi_digits(char text[32], double x, int digits) {
    char local[40];
    size_t n = 0;
    snprintf(local, sizeof local, "%.*g", digits, x);
    for (const char *at = local; *at; at++) {
        if (isalnum((unsigned char)*at) || strchr("+-", *at))
            text[n++] = *at;
        else if (n > 0 && text[n - 1] != '.') /* the locale's point, of any number of bytes */
            text[n++] = '.';
    }
    text[n] = '\0';
}

void qkvi_markup_add(qkvi_bytes *bytes, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '<')
            qkvi_bytes_text(bytes, "&lt;");
        else if (text[i] == '>')
            qkvi_bytes_text(bytes, "&gt;");
        else if (text[i] == '&')
            qkvi_bytes_text(bytes, "&amp;");
        else
            qkvi_bytes_add(bytes, text + i, 1);
    }
}

/* How many bytes of text are written as \uXXXX, and which number that is; 0: none. */
static size_t hidden_in_json(const unsigned char *text, unsigned *code) {
    const unsigned char c = text[0];
    const int separator = c == 0xE2 && text[1] == 0x80 && (text[2] & 0xFE) == 0xA8;
    *code = separator ? 0x2000u + (text[2] & 0x3Fu) : c;
    if (separator) return 3;
    return c < 0x20 || c == '<' || c == '>' || c == '&' || c == '"' || c == '\\';
}

void qkvi_json_text(qkvi_bytes *bytes, const char *text) {
    char *const shown = qkvi_shown_lines(text);
    if (shown == NULL) {
        bytes->failed = 1;
        return;
    }
    qkvi_bytes_text(bytes, "\"");
    for (const char *at = shown; *at;) {
        unsigned code;
        const size_t n = hidden_in_json((const unsigned char *)at, &code);
        char escape[8];
        if (n > 0) snprintf(escape, sizeof escape, "\\u%04x", code);
        qkvi_bytes_add(bytes, n ? escape : at, n ? 6 : 1);
        at += n ? n : 1;
    }
    qkvi_bytes_text(bytes, "\"");
    free(shown);
}

void qkvi_json_string(qkvi_bytes *bytes, const char *text, size_t n) {
    static const char short_names[] = "btn.fr"; /* 8 … 13; 11 has none */
    size_t from = 0;
    qkvi_bytes_text(bytes, "\"");
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        char escape[8];
        if (c >= ' ' && c != '"' && c != '\\') continue;
        if (c >= ' ')
            snprintf(escape, sizeof escape, "\\%c", c);
        else if (c >= 8 && c <= 13 && c != 11)
            snprintf(escape, sizeof escape, "\\%c", short_names[c - 8]);
        else
            snprintf(escape, sizeof escape, "\\u%04x", c);
        qkvi_bytes_add(bytes, text + from, i - from);
        qkvi_bytes_text(bytes, escape);
        from = i + 1;
    }
    qkvi_bytes_add(bytes, text + from, n - from);
    qkvi_bytes_text(bytes, "\"");
}

static void add_number(qkvi_bytes *bytes, double x, int digits) {
    char number[32] = "null";
    if (isfinite(x)) qkvi_digits(number, x, digits);
    qkvi_bytes_text(bytes, number);
}

void qkvi_json_real(qkvi_bytes *bytes, double x) { add_number(bytes, x, 9); }

void qkvi_json_double(qkvi_bytes *bytes, double x) { add_number(bytes, x, 17); }

void qkvi_json_int(qkvi_bytes *bytes, int64_t x) {
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)x);
    qkvi_bytes_text(bytes, number);
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void qkvi_base64_add(qkvi_bytes *bytes, const void *data, size_t n) {
    const unsigned char *const from = data;
    char line
        [1024]; /* written by lines: a call for each four characters would take most of the time */
    size_t used = 0;
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t second = i + 1 < n ? from[i + 1] : 0, third = i + 2 < n ? from[i + 2] : 0;
        const uint32_t group = (uint32_t)from[i] << 16 | second << 8 | third;
        line[used++] = digits[group >> 18];
        line[used++] = digits[group >> 12 & 63];
        line[used++] = i + 1 < n ? digits[group >> 6 & 63] : '=';
        line[used++] = i + 2 < n ? digits[group & 63] : '=';
        if (used == sizeof line) {
            qkvi_bytes_add(bytes, line, used);
            used = 0;
        }
    }
    qkvi_bytes_add(bytes, line, used);
}

/* The value of a digit, or -1. */
static int digit_of(char c) {
    const char *const at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

int64_t qkvi_base64_take(const char *text, size_t n, char *bytes) {
    int64_t used = 0;
    if (n % 4 != 0) return -1;
    for (size_t i = 0; i < n; i += 4) {
        const int is_last = i + 4 == n;
        const int n_padding = is_last ? (text[i + 3] == '=') + (text[i + 2] == '=') : 0;
        uint32_t group = 0;
        for (int d = 0; d < 4; d++) {
            const int digit = d < 4 - n_padding ? digit_of(text[i + (size_t)d]) : 0;
            if (digit < 0) return -1;
            group = group << 6 | (uint32_t)digit;
        }
        if (group & ((1u << 8 * n_padding) - 1)) return -1; /* bits that no byte has */
        for (int b = 0; b < 3 - n_padding; b++) bytes[used++] = (char)(group >> (16 - 8 * b));
    }
    return used;
}
