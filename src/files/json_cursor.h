/**
 * Reading large lists of a JSON text by their bytes: words and numbers, one after the other,
 * without a value for each in memory. Strict where jansson is: UTF-8, escapes, no control
 * characters, no NUL, no lone surrogates.
 */
#ifndef QKVI_FILES_JSON_CURSOR_H
#define QKVI_FILES_JSON_CURSOR_H

#include "files/base.h"

enum { QKVI_JSON_DECIMAL_BYTES = 128 }; /* of a number, with a NUL behind it */

/**
 * A place in text[0 … end). What is taken stands behind it, after blanks; a take that fails returns
 * 0 and leaves the cursor where the text breaks its format.
 */
typedef struct qkvi_json_cursor {
    const char *text;
    size_t at, end;
} qkvi_json_cursor;

/** A punctuation mark of JSON, if it is there. */
int qkvi_json_take_mark(qkvi_json_cursor *cursor, char mark);
/** The next byte that is no blank, or 0 at the end. */
char qkvi_json_peek(qkvi_json_cursor *cursor);
/** A string: its first `capacity` bytes, and how many it has, which may be more. */
int qkvi_json_take_text(qkvi_json_cursor *cursor, char *bytes, size_t capacity, size_t *n_bytes);
/** An integer of at most 18 digits, without fraction or exponent. */
int qkvi_json_take_number(qkvi_json_cursor *cursor, int64_t *number);
/** A number as it is written, ended by a NUL. */
int qkvi_json_take_decimal(qkvi_json_cursor *cursor, char text[QKVI_JSON_DECIMAL_BYTES]);
/** The line of the cursor, from 1, for messages. */
int64_t qkvi_json_line(const qkvi_json_cursor *cursor);

#endif
