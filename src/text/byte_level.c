/** See byte_level.h. */
#include "text/byte_level.h"

#include "files/utf8.h"
#include "text/unicode.h"

int32_t qkvi_byte_char(int byte) {
    if (byte <= 32) return 256 + byte;
    if (byte >= 127 && byte <= 160) return 256 + 33 + (byte - 127);
    return byte == 173 ? 256 + 33 + 34 : byte;
}

int qkvi_char_byte(int32_t code) {
    if (code < 0 || code > 256 + 67) return -1;
    if (code <= 255) return qkvi_byte_char(code) == code ? code : -1;
    const int place = code - 256;
    if (place <= 32) return place;
    return place <= 66 ? 127 + (place - 33) : 173;
}

size_t qkvi_byte_level_bytes(const char *token, size_t n_token, char *bytes) {
    size_t n = 0;
    for (size_t at = 0; at < n_token;) {
        int32_t code = 0;
        at += qkvi_utf8_next(token + at, n_token - at, &code);
        const int byte = qkvi_char_byte(code);
        if (byte < 0) {
            memcpy(bytes, token, n_token);
            return n_token;
        }
        bytes[n++] = (char)byte;
    }
    return n;
}

/* How many bytes at the front of what is no UTF-8 could begin a character (Unicode 15, table 3-7);
 * at least 1. */
static size_t subpart(const char *bytes, size_t n) {
    const unsigned char first = (unsigned char)bytes[0];
    if (first < 0xC2 || first > 0xF4) return 1;
    unsigned char low = 0x80, high = 0xBF;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    size_t i = 1;
    for (; i < length && i < n; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        if (byte < low || byte > high) break;
        low = 0x80;
        high = 0xBF;
    }
    return i;
}

qkv_status qkvi_byte_level_text(const char *bytes, size_t n, qkvi_growing *text) {
    while (n > 0) {
        const size_t valid = qkvi_utf8_valid(bytes, n);
        QKV_TRY(qkvi_growing_put(text, bytes, valid));
        bytes += valid;
        n -= valid;
        if (n == 0) break;
        const size_t part = subpart(bytes, n);
        QKV_TRY(qkvi_growing_put(text, "\xEF\xBF\xBD", 3));
        bytes += part;
        n -= part;
    }
    return QKV_OK;
}

/* ---- Bytes as people read them --------------------------------------------------------------- */

/*
 * One rule for all kinds of tokenizers whose tokens hold the spaces between words: what cannot be
 * seen has a sign that every font with mathematical signs has, and is neither left out nor written
 * as vocabularies write it. What is shown tells the bytes back, unless the text itself has such a
 * sign or a backslash.
 */

static const char *sign_of(int32_t code) {
    switch (code) {
    case ' ': return "\xE2\x90\xA3";
    case '\n': return "\xE2\x86\xB5";
    case '\t': return "\xE2\x87\xA5";
    default: return NULL;
    }
}

static qkv_status put_bytes(const char *bytes, size_t n, qkvi_growing *text) {
    for (size_t i = 0; i < n; i++) {
        char escaped[8];
        const int length = snprintf(escaped, sizeof escaped, "\\x%02x", (unsigned char)bytes[i]);
        QKV_TRY(qkvi_growing_put(text, escaped, (size_t)length));
    }
    return QKV_OK;
}

qkv_status qkvi_show(const char *bytes, size_t n, qkvi_growing *text) {
    for (size_t at = 0, length; at < n; at += length) {
        int32_t code = 0;
        length = qkvi_utf8_next(bytes + at, n - at, &code);
        const char *const sign = length ? sign_of(code) : NULL;
        const int is_control = code < 0x20 || (code >= 0x7F && code <= 0x9F);
        if (sign)
            QKV_TRY(qkvi_growing_put(text, sign, strlen(sign)));
        else if (length == 0 || is_control)
            QKV_TRY(put_bytes(bytes + at, length ? length : 1, text));
        else
            QKV_TRY(qkvi_growing_put(text, bytes + at, length));
        if (length == 0) length = 1;
    }
    return QKV_OK;
}
