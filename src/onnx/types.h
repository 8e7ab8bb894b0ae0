/*
 * Converting elements of ONNX's types to doubles and back. 64-bit integers become the nearest
 * double; all other types are exact. A double is rounded once, to nearest, ties to even.
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

/* The row of a type; NULL for types that no input of Attention may have. */
const qkvi_onnx_type_row *qkvi_onnx_type_of(int64_t type);

/* Converts elements at … at + n - 1 of an array to doubles. data is not read if n is 0. */
void qkvi_onnx_load(qkv_onnx_type type, const void *data, int64_t at, int64_t n, double *to);

/* Converts n doubles to elements at … at + n - 1 of an array of a float type. */
void qkvi_onnx_store(qkv_onnx_type type, void *data, int64_t at, int64_t n, const double *from);

#endif
