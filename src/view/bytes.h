/** Bytes that grow: a picture's file before it is written. */
#ifndef QKVI_VIEW_BYTES_H
#define QKVI_VIEW_BYTES_H

#include <cairo.h>
#include <stddef.h>

/** Zeros are an empty one. After a failure (no memory) nothing more is added. */
typedef struct qkvi_bytes {
    unsigned char *data;
    size_t n, capacity;
    int failed;
} qkvi_bytes;

void qkvi_bytes_add(qkvi_bytes *bytes, const void *more, size_t n);
void qkvi_bytes_text(qkvi_bytes *bytes, const char *text);
void qkvi_bytes_free(qkvi_bytes *bytes);

/** For cairo's stream writers: closure is the bytes. */
cairo_status_t qkvi_bytes_receive(void *closure, const unsigned char *data, unsigned int n);

#endif
