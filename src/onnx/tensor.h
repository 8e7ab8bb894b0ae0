/* Checks of one tensor, and its shape in messages. */
#ifndef QKVI_ONNX_TENSOR_H
#define QKVI_ONNX_TENSOR_H

#include "core/status.h"
#include "qkv/onnx.h"

/* The most elements, without dimensions of 0: twice their bytes, of any type, fit an int64_t. */
#define QKVI_ONNX_MAX_ELEMENTS (((int64_t)1 << 59) - 1)

enum { QKVI_ONNX_SHAPE_BYTES = 96 };

/* Writes "[2][3][4][8]" and returns it; nothing for a rank out of range. */
const char *qkvi_onnx_shape_text(const qkv_onnx_tensor *t, char text[QKVI_ONNX_SHAPE_BYTES]);

/* Checks that the rank is 0 to 4, no dimension negative, and the elements at most MAX_ELEMENTS. */
QKV_NODISCARD qkv_status qkvi_onnx_check_sizes(const char *name, const qkv_onnx_tensor *t,
                                               qkv_error *error);

/* Checks that dims[n] is `wanted`, which messages call `what`. */
QKV_NODISCARD qkv_status qkvi_onnx_check_dim(const char *name, const qkv_onnx_tensor *t, int n,
                                             int64_t wanted, const char *what, qkv_error *error);

#endif
