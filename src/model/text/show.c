/**
 * One rule for all kinds of tokenizers whose tokens hold the spaces between words: what cannot be seen has a
 * sign that every font with mathematical signs has, and is neither left out nor written as vocabularies
 * write it. What is shown tells the bytes back, unless the text itself has such a sign or a backslash.
 */
#include "model/text/show.h"

#include "model/text/unicode.h"

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
