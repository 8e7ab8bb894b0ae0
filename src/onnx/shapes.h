/* The shapes of a node whose attributes and types are checked. */
#ifndef QKVI_ONNX_SHAPES_H
#define QKVI_ONNX_SHAPES_H

#include "onnx/node.h"

/*
 * The first opset with lengths of the batch and masks that are shorter than the keys; with windows;
 * that refuses numbers of heads beside rank 4, and a present beside lengths.
 */
enum { QKVI_ONNX_LENGTHS = 24, QKVI_ONNX_WINDOWS = 25, QKVI_ONNX_STRICT = 25 };

QKV_NODISCARD qkv_status qkvi_onnx_read_shapes(qkvi_onnx *x, qkv_error *error);

#endif
