/**
 * What almost every file above the layers needs: memory, texts and statuses, and the few calls that
 * many of them share.
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
 * Text of strangers as a message may have it: see qkvi_escape. Cut to `room` bytes, which live
 * until the block ends.
 */
#define QKVI_PRINTABLE(room, text) QKVI_PRINTABLE_BYTES(room, text, strlen(text))
#define QKVI_PRINTABLE_BYTES(room, bytes, n_bytes)                                                 \
    qkvi_escape((char[room]){ 0 }, (room), (bytes), (n_bytes))

/** "no memory for WHAT": MEMORY. */
qkv_status qkvi_no_memory(qkv_error *error, const char *what);
/** "FILE: …", as printf has it; returns status. */
qkv_status qkvi_file_fail(qkv_error *error, qkv_status status, const char *file, const char *format,
                          ...) QKVI_PRINTF(4, 5);
/** ARGUMENT, "NAME is NULL", if a pointer is. */
qkv_status qkvi_need(const void *pointer, const char *name, qkv_error *error);

/**
 * Room for n elements of `width` bytes in a list: the pointer at `list`, which has room for
 * *capacity. It grows by doubling. MEMORY: it is as it was.
 */
qkv_status qkvi_grow(void *list, size_t *capacity, size_t n, size_t width);
static inline qkv_status qkvi_reserve(void *list, size_t *capacity, size_t n, size_t width) {
    return n <= *capacity ? QKV_OK : qkvi_grow(list, capacity, n, width);
}

/** Whether a text ends in that way, and whether something stands before the ending, too. */
bool qkvi_ends_with(const char *text, const char *ending);
bool qkvi_has_stem(const char *text, const char *ending);

enum { QKVI_NEAREST_BYTES = 160 };

/** Levenshtein's distance; INT32_MAX if a name is longer than QKVI_NEAREST_BYTES. */
int qkvi_edit_distance(const char *a, const char *b);

/** Bytes that grow: a file before it is written. */

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/** Zeros are an empty one. After a failure (no memory) nothing more is added. */
typedef struct qkvi_bytes {
    unsigned char *data;
    size_t n, capacity;
    int failed;
} qkvi_bytes;

void qkvi_bytes_add(qkvi_bytes *bytes, const void *more, size_t n);
void qkvi_bytes_text(qkvi_bytes *bytes, const char *text);
void qkvi_bytes_free(qkvi_bytes *bytes);

#pragma GCC visibility pop

/** Zeros: no bytes. Free bytes by free(). */
typedef struct qkvi_growing {
    char *bytes;
    size_t n, capacity;
} qkvi_growing;

/** Appends a copy; MEMORY. */
qkv_status qkvi_growing_put(qkvi_growing *growing, const void *bytes, size_t n);

#endif
