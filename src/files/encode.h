/** Encoding text, numbers and bytes for HTML, SVG and JSON. */
#ifndef QKVI_FILES_ENCODE_H
#define QKVI_FILES_ENCODE_H

#include "files/base.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/** Any bytes as printable text: all else is escaped. "" for NULL. To be freed. */
char *qkvi_shown(const char *bytes);
/** The same, but line breaks stay. */
char *qkvi_shown_lines(const char *bytes);

/** Formats x with so many decimals and a point, whatever the locale. |x| < 1e15. */
void qkvi_number(char *text, size_t text_bytes, double x, int decimals);

/** Adds text between tags of HTML or XML: valid UTF-8 without control characters. */
void qkvi_markup_add(qkvi_bytes *bytes, const char *text, size_t n);

/**
 * Adds a JSON string, with its quotes, that is safe inside <script>: <, >, & and the line
 * separators U+2028 and U+2029 are written as \uXXXX. Any bytes: unprintable ones are escaped
 * first, by qkvi_shown.
 */
void qkvi_json_text(qkvi_bytes *bytes, const char *text);
/** Adds a number with 9 significant digits and a point in any locale; null for NaN and infinity. */
void qkvi_json_real(qkvi_bytes *bytes, double x);
/** The same with 17 digits, which are the double itself. */
void qkvi_json_double(qkvi_bytes *bytes, double x);
void qkvi_json_int(qkvi_bytes *bytes, int64_t x);

/** Adds base64 of RFC 4648, with padding, without line breaks. */
void qkvi_base64_add(qkvi_bytes *bytes, const void *data, size_t n);

#pragma GCC visibility pop

/** Formats x as %.{digits}g does, with a point, whatever the locale; at most 17 digits. */
void qkvi_digits(char text[32], double x, int digits);

/**
 * Adds a JSON string, with its quotes, of n bytes of valid UTF-8: only '"', '\' and control
 * characters are escaped, by their short form if they have one.
 */
void qkvi_json_string(qkvi_bytes *bytes, const char *text, size_t n);

/** Decodes base64 into at most n / 4 · 3 bytes. Returns their number, or -1: it is no base64. */
int64_t qkvi_base64_take(const char *text, size_t n, char *bytes);

#endif
