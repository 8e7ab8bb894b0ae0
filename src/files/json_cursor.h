/**
 * Reading large lists of a JSON text one string or number at a time, without a value for each in
 * memory. As strict as jansson: UTF-8, escapes, no control characters, no NUL, no lone surrogates.
 */
#ifndef QKVI_FILES_JSON_CURSOR_H
#define QKVI_FILES_JSON_CURSOR_H

#include "files/base.h"

enum { QKVI_JSON_DECIMAL_BYTES = 128 }; /* of a number and a NUL */

/**
 * A position in text[0 … end). The calls below skip white space, read what follows, and move the
 * cursor behind it. If that is not what they are to read, they return 0 and leave the cursor at the
 * syntax error.
 */
typedef struct qkvi_json_cursor {
    const char *text;
    size_t at, end;
} qkvi_json_cursor;

/** Takes a punctuation mark of JSON, if it comes next. */
int qkvi_json_take_mark(qkvi_json_cursor *cursor, char mark);
/** The next byte that is not white space, or 0 at the end; the cursor does not move over it. */
char qkvi_json_peek(qkvi_json_cursor *cursor);
/** Takes a string: at most its first `capacity` bytes; *n_bytes is its whole length. */
int qkvi_json_take_text(qkvi_json_cursor *cursor, char *bytes, size_t capacity, size_t *n_bytes);
/** Takes an integer of at most 18 digits, without fraction and exponent. */
int qkvi_json_take_number(qkvi_json_cursor *cursor, int64_t *number);
/** Takes a number as a string. */
int qkvi_json_take_decimal(qkvi_json_cursor *cursor, char text[QKVI_JSON_DECIMAL_BYTES]);
/** The line of the cursor, from 1, for messages. */
int64_t qkvi_json_line(const qkvi_json_cursor *cursor);

#endif
