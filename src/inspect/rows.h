/**
 * Weights of one head, computed a block of rows at a time by qkv_attention_weights, so that memory
 * is O(len_k) for any len_q. Also helpers for calls that pass over such blocks.
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

/**
 * Reads the shape of a view and allocates a block. `name` is the argument in messages.
 * qkvi_rows_end frees the block, after a failure too.
 */
QKV_NODISCARD qkv_status qkvi_rows_begin(const char *name, const qkv_head_view *head,
                                         qkvi_weight_rows *rows, qkv_error *error);
void qkvi_rows_end(qkvi_weight_rows *rows);

/** Computes the weights of the queries [i0, i1), i1 - i0 <= at_once, into p. */
QKV_NODISCARD qkv_status qkvi_rows_get(qkv_ctx *ctx, const qkvi_weight_rows *rows, int64_t i0,
                                       int64_t i1, qkv_error *error);

/** The sum of a row: 0 if it sees no key, NaN if it has a NaN. */
double qkvi_row_sum(const float *p, int64_t n);

/** Checks and copies a caller's call options; given is nullable. */
QKV_NODISCARD qkv_status qkvi_rows_call(const qkv_call_options *given, qkv_call_options *call,
                                        qkv_error *error);

/** To be called between blocks: reports progress; CANCELLED if the caller has cancelled. */
QKV_NODISCARD qkv_status qkvi_rows_watch(const qkv_call_options *call, int64_t done, int64_t total,
                                         qkv_error *error);

/** Returns status, the result of a call with ctx, and copies the context's message to error. */
qkv_status qkvi_ctx_told(const qkv_ctx *ctx, qkv_status status, qkv_error *error);

#endif
