/* Checks of one tensor, and how messages name it. */
#ifndef QKVI_ONNX_TENSOR_H
#define QKVI_ONNX_TENSOR_H

#include "core/status.h"
#include "qkv/onnx.h"

/* Of a tensor, dimensions of 0 left out: then bytes of every type fit an int64_t twice. */
#define QKVI_ONNX_MAX_ELEMENTS (((int64_t)1 << 59) - 1)

enum { QKVI_ONNX_SHAPE_BYTES = 96 };

/* "[2][3][4][8]", and returns it. A rank out of range has no dimensions. */
const char *qkvi_onnx_shape_text(const qkv_onnx_tensor *t, char text[QKVI_ONNX_SHAPE_BYTES]);

/* Rank 0 to 4, dimensions from 0 up, elements that can be counted. */
QKV_NODISCARD qkv_status qkvi_onnx_check_sizes(const char *name, const qkv_onnx_tensor *t,
                                               qkv_error *error);

/* dims[n] of the tensor is `wanted`, which messages call `what`. */
QKV_NODISCARD qkv_status qkvi_onnx_check_dim(const char *name, const qkv_onnx_tensor *t, int n,
                                             int64_t wanted, const char *what, qkv_error *error);

#endif
