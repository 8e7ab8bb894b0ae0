/** Text and bytes as what a file in HTML, SVG or JSON can hold. */
#ifndef QKVI_FILES_ENCODE_H
#define QKVI_FILES_ENCODE_H

#include "files/base.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/** Any bytes as text that can be shown: what is not printable is escaped. "" for NULL. Free it. */
char *qkvi_shown(const char *bytes);
/** The same, but line breaks stay. */
char *qkvi_shown_lines(const char *bytes);

/** x with a number of decimals and a point, whatever the locale. |x| < 1e15. */
void qkvi_number(char *text, size_t text_bytes, double x, int decimals);

/** Text between tags of HTML or XML: valid UTF-8 that holds no control characters. */
void qkvi_markup_add(qkvi_bytes *bytes, const char *text, size_t n);

/**
 * A JSON string, with its quotes, that stays one inside <script>: <, >, & and the separators of
 * lines U+2028 and U+2029 are written as \uXXXX. Any bytes: what cannot be shown is escaped first.
 */
void qkvi_json_text(qkvi_bytes *bytes, const char *text);
/** 9 significant digits, with a point in any locale; null for what is no number. */
void qkvi_json_real(qkvi_bytes *bytes, double x);
void qkvi_json_int(qkvi_bytes *bytes, int64_t x);

/** Base64 of RFC 4648 with padding, without breaks. */
void qkvi_base64_add(qkvi_bytes *bytes, const void *data, size_t n);

#pragma GCC visibility pop

/**
 * A JSON string, with its quotes, of n bytes of valid UTF-8, as files have it: only '"', '\' and
 * control characters are escaped, those that have a short name by it.
 */
void qkvi_json_string(qkvi_bytes *bytes, const char *text, size_t n);

/** The bytes of such text, which take at most n / 4 · 3. Returns how many, or -1: it is none. */
int64_t qkvi_base64_take(const char *text, size_t n, char *bytes);

#endif
