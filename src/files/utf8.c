#include "files/utf8.h"

#include <string.h>
#include <utf8proc.h>

size_t qkvi_utf8_mark(const char *bytes, size_t n) {
    return n >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

size_t qkvi_utf8_next(const char *bytes, size_t n, int32_t *code) {
    const unsigned char first = (unsigned char)bytes[0];
    if (first < 128) {
        *code = first;
        return 1;
    }
    const utf8proc_ssize_t length =
        utf8proc_iterate((const utf8proc_uint8_t *)bytes, n < 4 ? (utf8proc_ssize_t)n : 4, code);
    return length > 0 ? (size_t)length : 0;
}

size_t qkvi_utf8_put(int32_t code, char bytes[4]) {
    return (size_t)utf8proc_encode_char(code, (utf8proc_uint8_t *)bytes);
}

size_t qkvi_utf8_valid(const char *bytes, size_t n) {
    size_t at = 0;
    while (at < n) {
        int32_t code;
        const size_t length = qkvi_utf8_next(bytes + at, n - at, &code);
        if (length == 0) break;
        at += length;
    }
    return at;
}
