/** Bytes that grow: a file before it is written. */
#ifndef QKVI_STORE_BYTES_H
#define QKVI_STORE_BYTES_H

#include "model/base.h"

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
