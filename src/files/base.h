/**
 * Helpers that most files above src/core use: growing arrays, error messages, names.
 */
#ifndef QKVI_FILES_BASE_H
#define QKVI_FILES_BASE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"

/**
 * A text from outside, escaped for a message (qkvi_escape) and cut to `room` bytes, which live
 * until the end of the block.
 */
#define QKVI_PRINTABLE(room, text) QKVI_PRINTABLE_BYTES(room, text, strlen(text))
#define QKVI_PRINTABLE_BYTES(room, bytes, n_bytes)                                                 \
    qkvi_escape((char[room]){ 0 }, (room), (bytes), (n_bytes))

/** Sets "no memory for WHAT"; returns MEMORY. */
qkv_status qkvi_no_memory(qkv_error *error, const char *what);
/** Sets "FILE: …" as printf does; returns status. */
qkv_status qkvi_file_fail(qkv_error *error, qkv_status status, const char *file, const char *format,
                          ...) QKVI_PRINTF(4, 5);
/** ARGUMENT, "NAME is NULL", if the pointer is NULL. */
qkv_status qkvi_need(const void *pointer, const char *name, qkv_error *error);

/**
 * Makes room for n elements of `width` bytes in a growing array: `list` points to its pointer,
 * *capacity is its room, which is doubled. On MEMORY both are unchanged.
 */
qkv_status qkvi_grow(void *list, size_t *capacity, size_t n, size_t width);
static inline qkv_status qkvi_reserve(void *list, size_t *capacity, size_t n, size_t width) {
    return n <= *capacity ? QKV_OK : qkvi_grow(list, capacity, n, width);
}

bool qkvi_ends_with(const char *text, const char *ending);
/** Does a text end with `ending`, with something before it? */
bool qkvi_has_stem(const char *text, const char *ending);

enum { QKVI_NEAREST_BYTES = 160 };

/** Levenshtein's distance; INT32_MAX if a name is longer than QKVI_NEAREST_BYTES. */
int qkvi_edit_distance(const char *a, const char *b);

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/** Growing bytes, all 0 at first, such as a file to be written. After `failed` nothing is added. */
typedef struct qkvi_bytes {
    unsigned char *data;
    size_t n, capacity;
    int failed;
} qkvi_bytes;

void qkvi_bytes_add(qkvi_bytes *bytes, const void *more, size_t n);
void qkvi_bytes_text(qkvi_bytes *bytes, const char *text);
void qkvi_bytes_free(qkvi_bytes *bytes);

#pragma GCC visibility pop

/** Growing bytes, all 0 at first, with a status for each call. Free bytes by free(). */
typedef struct qkvi_growing {
    char *bytes;
    size_t n, capacity;
} qkvi_growing;

/** Appends a copy; MEMORY. */
qkv_status qkvi_growing_put(qkvi_growing *growing, const void *bytes, size_t n);

#endif
