/*
 * Checks of the calls of qkv/layers.h: sizes, and dense arrays, which must not be NULL, misaligned,
 * or overlap what they must not.
 */
#ifndef QKVI_LAYER_CALL_H
#define QKVI_LAYER_CALL_H

#include "attn/arrays.h"
#include "attn/ctx.h"

/* Checks a size: least <= value <= 2^31 - 1. */
QKV_NODISCARD qkv_status qkvi_call_size(qkv_ctx *ctx, const char *name, int64_t value,
                                        int64_t least);

/* Checks n_rows >= 0 and n >= 1. */
QKV_NODISCARD qkv_status qkvi_call_rows(qkv_ctx *ctx, int64_t n_rows, int64_t n);

/* Checks that a number is finite and at least 0. */
QKV_NODISCARD qkv_status qkvi_call_number(qkv_ctx *ctx, const char *name, double value);

/* Adds floats [n_rows][n] that the call reads, or writes; the caller may change the entry. */
qkvi_array *qkvi_call_input(qkvi_arrays *all, const char *name, const void *data, int64_t n_rows,
                            int64_t n);
qkvi_array *qkvi_call_output(qkvi_arrays *all, const char *name, const void *data, int64_t n_rows,
                             int64_t n);

/* Checks all arrays that were added. */
QKV_NODISCARD qkv_status qkvi_call_arrays(qkv_ctx *ctx, qkvi_arrays *all);

/* Reserves the context's arena: lay_out cuts its pieces, in two passes (core/arena.h). */
QKV_NODISCARD qkv_status qkvi_call_memory(qkv_ctx *ctx,
                                          void (*lay_out)(void *argument, qkvi_cutter *cutter),
                                          void *argument);

/* Cuts n elements; n may be SIZE_MAX, which means "does not fit". */
static inline void *qkvi_call_cut(qkvi_cutter *cutter, size_t n, size_t size) {
    return qkvi_cut(cutter, n < INT64_MAX ? (int64_t)n : INT64_MAX, size);
}

#endif
