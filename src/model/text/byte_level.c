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

/* ---- Words ----------------------------------------------------------------------------------- */

/*
 * The first of these that matches (GPT-2, encoder.py), written out:
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * Every character is a letter, a number, white space or something else, so after the contractions a
 * word is a run of one group with at most one space before it; and a run of white space leaves its
 * last character to what follows, unless it is the only one. A run is read once and given back by
 * at most one character, so that time is linear.
 */

static size_t contraction(const char *text, size_t n) {
    static const char *const endings[] = { "s", "t", "re", "ve", "m", "ll", "d" };
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const size_t length = strlen(endings[i]);
        if (n > length && memcmp(text + 1, endings[i], length) == 0) return 1 + length;
    }
    return 0;
}

static qkvi_char_group group_at(const char *text, size_t n, size_t *length) {
    int32_t code = 0;
    *length = qkvi_utf8_next(text, n, &code);
    return qkvi_char_group_of(code);
}

/* The end of the run of a group that begins at `at`; *last is where its last character does. */
static size_t run_end(const char *text, size_t n, size_t at, qkvi_char_group group, size_t *last) {
    while (at < n) {
        size_t length;
        if (group_at(text + at, n - at, &length) != group) break;
        *last = at;
        at += length;
    }
    return at;
}

size_t qkvi_gpt2_word(const char *text, size_t n) {
    size_t length = text[0] == '\'' ? contraction(text, n) : 0, last = 0;
    if (length > 0) return length;
    const size_t begin = text[0] == ' ' && n > 1;
    const qkvi_char_group group = group_at(text + begin, n - begin, &length);
    if (group != QKVI_GROUP_SPACE) return run_end(text, n, begin + length, group, &last);
    const size_t end = run_end(text, n, 0, QKVI_GROUP_SPACE, &last);
    return end == n || last == 0 ? end : last;
}

/* ---- Bytes as people read them --------------------------------------------------------------- */

/*
 * One rule for all kinds of tokenizers whose tokens hold the spaces between words: what cannot be seen has a
 * sign that every font with mathematical signs has, and is neither left out nor written as vocabularies
 * write it. What is shown tells the bytes back, unless the text itself has such a sign or a backslash.
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
