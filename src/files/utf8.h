/** Encoding and decoding UTF-8. Properties of code points are in text/unicode.h. */
#ifndef QKVI_FILES_UTF8_H
#define QKVI_FILES_UTF8_H

#include <stddef.h>
#include <stdint.h>

/** The length of a byte order mark at the beginning of a text: 3, or 0 if there is none. */
size_t qkvi_utf8_mark(const char *bytes, size_t n);

/** Decodes the code point at bytes[0 … n), n > 0. Returns its length, or 0 if it is invalid. */
size_t qkvi_utf8_next(const char *bytes, size_t n, int32_t *code);

/** Encodes a scalar value. Returns the length, 1 … 4. */
size_t qkvi_utf8_put(int32_t code, char bytes[4]);

/** The offset of the first byte that is not valid UTF-8, or n. */
size_t qkvi_utf8_valid(const char *bytes, size_t n);

#endif
