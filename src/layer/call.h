/*
 * What the calls of qkv/layers.h check before they compute: sizes, and dense arrays that are there,
 * aligned, and overlap nothing that they must not.
 */
#ifndef QKVI_LAYER_CALL_H
#define QKVI_LAYER_CALL_H

#include "attn/arrays.h"
#include "attn/ctx.h"

/* A size of a call: least <= value <= 2^31 - 1. */
QKV_NODISCARD qkv_status qkvi_call_size(qkv_ctx *ctx, const char *name, int64_t value,
                                        int64_t least);

/* The sizes n_rows >= 0 and n >= 1. */
QKV_NODISCARD qkv_status qkvi_call_rows(qkv_ctx *ctx, int64_t n_rows, int64_t n);

/* Finite, and at least 0. */
QKV_NODISCARD qkv_status qkvi_call_number(qkv_ctx *ctx, const char *name, double value);

/* Adds floats [n_rows][n] that the call reads, or writes; returns them for what is special. */
qkvi_array *qkvi_call_input(qkvi_arrays *all, const char *name, const void *data, int64_t n_rows,
                            int64_t n);
qkvi_array *qkvi_call_output(qkvi_arrays *all, const char *name, const void *data, int64_t n_rows,
                             int64_t n);

/* All arrays that were added. */
QKV_NODISCARD qkv_status qkvi_call_arrays(qkv_ctx *ctx, qkvi_arrays *all);

/* The context's arena in two passes (core/arena.h): lay_out cuts, for its argument. */
QKV_NODISCARD qkv_status qkvi_call_memory(qkv_ctx *ctx,
                                          void (*lay_out)(void *argument, qkvi_cutter *cutter),
                                          void *argument);

/* Pieces of a size that may be SIZE_MAX, "does not fit". */
static inline void *qkvi_call_cut(qkvi_cutter *cutter, size_t n, size_t size) {
    return qkvi_cut(cutter, n < INT64_MAX ? (int64_t)n : INT64_MAX, size);
}

#endif
