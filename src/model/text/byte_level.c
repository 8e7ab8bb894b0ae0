/** See byte_level.h. */
#include "model/text/byte_level.h"

#include "model/text/unicode.h"

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
