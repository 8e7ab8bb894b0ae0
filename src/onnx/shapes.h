/* Reading the shapes of a node, after its attributes and types. */
#ifndef QKVI_ONNX_SHAPES_H
#define QKVI_ONNX_SHAPES_H

#include "onnx/node.h"

/*
 * The first opset with nonpad_kv_seqlen and with masks shorter than the keys; with windows; and the
 * first that refuses numbers of heads with rank 4, and present outputs with nonpad_kv_seqlen.
 */
enum { QKVI_ONNX_LENGTHS = 24, QKVI_ONNX_WINDOWS = 25, QKVI_ONNX_STRICT = 25 };

QKV_NODISCARD qkv_status qkvi_onnx_read_shapes(qkvi_onnx *x, qkv_error *error);

#endif
