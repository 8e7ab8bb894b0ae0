/*
 * The arrays of one call as a list, so that one function checks them all: strides, NULL, alignment,
 * the address space, rows of outputs apart, outputs apart from everything.
 */
#ifndef QKVI_ATTN_ARRAYS_H
#define QKVI_ATTN_ARRAYS_H

#include <stdbool.h>

#include "core/status.h"

#define QKVI_MAX_SPAN (INT64_MAX / 2) /* bytes from an array's first element to its end */

enum { QKVI_MAX_ARRAYS = 52 };

typedef struct qkvi_array {
    const char *name;
    const char *strides; /* the field with its strides; NULL: <name>_stride */
    const void *data;
    int64_t size[4];
    int64_t stride[4]; /* in elements */
    int64_t elem_bytes;
    bool output;
    const char *role;   /* of an output, for messages */
    const void *twin;   /* the output with which it may coincide exactly; NULL: none */
    int64_t span_bytes; /* first element to the end of the last; 0: empty. Filled by the check. */
} qkvi_array;

typedef struct qkvi_arrays {
    qkvi_array list[QKVI_MAX_ARRAYS];
    int count;
} qkvi_arrays;

/* Adds an array of floats whose last stride is 1, and returns it for what is special about it. */
qkvi_array *qkvi_arrays_add(qkvi_arrays *all, const char *name, const void *data,
                            const int64_t size[4], const int64_t stride[3], bool output);

/* Adds bytes that the call may write as it likes, at data, which is not NULL. */
void qkvi_arrays_add_scratch(qkvi_arrays *all, const char *name, const void *data, int64_t bytes);

/* Without pointers, only what strides alone can get wrong is checked. */
qkv_status qkvi_arrays_check(qkvi_arrays *all, bool pointers, qkv_error *error);

#endif
