/** Bytes that grow at their end. */
#ifndef QKVI_TEXT_GROWING_H
#define QKVI_TEXT_GROWING_H

#include "model/base.h"

/** Zeros: no bytes. Free bytes by free(). */
typedef struct qkvi_growing {
    char *bytes;
    size_t n, capacity;
} qkvi_growing;

/** Appends a copy; MEMORY. */
qkv_status qkvi_growing_put(qkvi_growing *growing, const void *bytes, size_t n);

#endif
