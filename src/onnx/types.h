/*
 * Elements of ONNX's types, as doubles. Of 64-bit integers the nearest double; all others are
 * exact. A double becomes a float or a 16-bit number in one rounding, to nearest, ties to even.
 */
#ifndef QKVI_ONNX_TYPES_H
#define QKVI_ONNX_TYPES_H

#include <stdbool.h>

#include "qkv/onnx.h"

typedef struct qkvi_onnx_type_row {
    const char *name; /* "FLOAT16" */
    int64_t bytes;
    bool is_float;
} qkvi_onnx_type_row;

/* NULL for what no input of Attention may have. */
const qkvi_onnx_type_row *qkvi_onnx_type_of(int64_t type);

/* Elements at, at + 1, …, at + n - 1 of an array. data is not read if n is 0. */
void qkvi_onnx_load(qkv_onnx_type type, const void *data, int64_t at, int64_t n, double *to);

/* The same, into an array of floats. */
void qkvi_onnx_store(qkv_onnx_type type, void *data, int64_t at, int64_t n, const double *from);

#endif
