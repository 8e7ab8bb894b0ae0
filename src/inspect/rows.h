/**
 * Rows of weights of one head, some at a time: memory is O(len_k), whatever len_q is. A block is
 * qkv_attention_weights of all its keys; what is done with it is the caller's, row by row, on
 * threads.
 */
#ifndef QKVI_INSPECT_ROWS_H
#define QKVI_INSPECT_ROWS_H

#include "attn/problem.h"
#include "qkv/patterns.h"

typedef struct qkvi_weight_rows {
    qkv_head_view head;
    qkvi_batch batch;
    int64_t at_once; /* rows of a block */
    float *p;        /* [at_once][n_keys] */
} qkvi_weight_rows;

/** Shape and buffer. A view that is not one is refused by name; end is for what begin has made. */
QKV_NODISCARD qkv_status qkvi_rows_begin(const char *name, const qkv_head_view *head,
                                         qkvi_weight_rows *rows, qkv_error *error);
void qkvi_rows_end(qkvi_weight_rows *rows);

/** The queries [i0, i1), i1 - i0 <= at_once, into p. */
QKV_NODISCARD qkv_status qkvi_rows_get(qkv_ctx *ctx, const qkvi_weight_rows *rows, int64_t i0,
                                       int64_t i1, qkv_error *error);

/** The sum of a row: 0 for one that sees no key, NaN for one that is NaN. */
double qkvi_row_sum(const float *p, int64_t n);

/** A caller's call options, nullable. */
QKV_NODISCARD qkv_status qkvi_rows_call(const qkv_call_options *given, qkv_call_options *call,
                                        qkv_error *error);

/** Between blocks: progress, and whether the caller wants to go on. */
QKV_NODISCARD qkv_status qkvi_rows_watch(const qkv_call_options *call, int64_t done, int64_t total,
                                         qkv_error *error);

/** Status and message of a context's last call. */
qkv_status qkvi_ctx_told(const qkv_ctx *ctx, qkv_status status, qkv_error *error);

#endif
