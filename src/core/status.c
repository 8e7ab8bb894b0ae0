/*
 * Status names, error texts, and the printing of untrusted bytes.
 */
#include "core/status.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(x)  TEXT_OF_(x)
#define TEXT_OF_(x) #x
#define PART(name)  TEXT_OF(QKV_VERSION_##name)

const char *qkv_version(void) {
    return PART(MAJOR) "." PART(MINOR) "." PART(PATCH) QKV_VERSION_SUFFIX;
}

const char *qkv_status_name(qkv_status status) {
    switch (status) {
    case QKV_OK: return "QKV_OK";
    case QKV_ERR_ARGUMENT: return "QKV_ERR_ARGUMENT";
    case QKV_ERR_SHAPE: return "QKV_ERR_SHAPE";
    case QKV_ERR_STRIDE: return "QKV_ERR_STRIDE";
    case QKV_ERR_DTYPE: return "QKV_ERR_DTYPE";
    case QKV_ERR_MEMORY: return "QKV_ERR_MEMORY";
    case QKV_ERR_VERSION: return "QKV_ERR_VERSION";
    case QKV_ERR_FORMAT: return "QKV_ERR_FORMAT";
    case QKV_ERR_LIMIT: return "QKV_ERR_LIMIT";
    case QKV_ERR_UNSUPPORTED: return "QKV_ERR_UNSUPPORTED";
    case QKV_ERR_IO: return "QKV_ERR_IO";
    case QKV_ERR_BUSY: return "QKV_ERR_BUSY";
    case QKV_ERR_CANCELLED: return "QKV_ERR_CANCELLED";
    }
    return "unknown status";
}

qkv_status qkvi_error_vset(qkv_error *error, qkv_status status, const char *format,
                           va_list arguments) {
    if (error) {
        error->status = status;
        vsnprintf(error->message, sizeof error->message, format, arguments);
    }
    return status;
}

qkv_status qkvi_error_set(qkv_error *error, qkv_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    qkvi_error_vset(error, status, format, arguments);
    va_end(arguments);
    return status;
}

/*
 * Length of the valid UTF-8 sequence at s (Unicode 15, table 3-7), its code point in *code; 0 if
 * there is none.
 */
static size_t utf8_length(const unsigned char *s, size_t n, uint32_t *code) {
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    const size_t length = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (s[0] < 0xC2 || s[0] > 0xF4 || length > n) return 0;
    uint32_t value = s[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
        value = value << 6 | (s[i] & 0x3Fu);
    }
    if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return 0;
    *code = value;
    return length;
}

/* Characters that a terminal obeys or hides instead of showing. */
static int is_unsafe(uint32_t code) {
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0xAD || code == 0x61C ||
           code == 0x180E || (code >= 0x200B && code <= 0x200F) ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) ||
           code == 0xFEFF || (code >= 0xFFF0 && code <= 0xFFFB) || (code & 0xFFFE) == 0xFFFE ||
           code >= 0xE0000;
}

char *qkvi_escape(char *dst, size_t dst_bytes, const void *bytes, size_t n_bytes) {
    const unsigned char *s = bytes;
    size_t used = 0, cut = 0; /* cut: the last place where "..." still fits */
    for (size_t i = 0; i < n_bytes;) {
        char piece[8];
        uint32_t code = 0;
        size_t taken = utf8_length(s + i, n_bytes - i, &code), length = taken;
        if (taken == 0 || is_unsafe(code)) {
            taken = 1;
            length = (size_t)snprintf(piece, sizeof piece, "\\x%02x", s[i]);
        } else if (code == '\\') {
            memcpy(piece, "\\\\", length = 2);
        } else {
            memcpy(piece, s + i, length);
        }
        if (used + length >= dst_bytes) {
            memcpy(dst + cut, "...", 4);
            return dst;
        }
        memcpy(dst + used, piece, length);
        used += length;
        i += taken;
        if (used + 4 <= dst_bytes) cut = used;
    }
    dst[used] = 0;
    return dst;
}
