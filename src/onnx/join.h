/* Joins past and new keys, and values, to dense arrays [n_batch][n_kv_heads][len_k][dim]. */
#ifndef QKVI_ONNX_JOIN_H
#define QKVI_ONNX_JOIN_H

#include "core/pool.h"
#include "onnx/node.h"

void qkvi_onnx_join(qkvi_pool *pool, const qkvi_onnx *x, void *k, void *v);

#endif
