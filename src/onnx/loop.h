/*
 * Attention in double, as in a textbook: all scores of a row, then its softmax, then the sum of
 * values. It reads elements of any type, and writes the scores of any stage. qkv/onnx.h has the
 * formula.
 *
 * A thread takes blocks of QKVI_ONNX_ROWS queries of a head, and reads each key once for a block.
 * Sums of a row have a fixed order: channels in 8 lanes, added as ((0+4)+(2+6)) + ((1+5)+(3+7)),
 * then keys one after another. So bits do not depend on threads and instruction sets. Hidden keys
 * do not enter sums; they are read only if scores of a stage before the mask are an output.
 */
#ifndef QKVI_ONNX_LOOP_H
#define QKVI_ONNX_LOOP_H

#include "attn/ctx.h"
#include "onnx/node.h"

enum { QKVI_ONNX_ROWS = 4 };

/* Buffers of one thread; ROWS is QKVI_ONNX_ROWS. */
typedef struct qkvi_onnx_slot {
    double *s;  /* [ROWS][len_k] */
    bool *sees; /* [ROWS][len_k] */
    double *q;  /* [ROWS][head_dim] */
    double *y;  /* [ROWS][head_dim_v] */
    double *k, *v;
} qkvi_onnx_slot;

/* How many threads are used, at most max_threads. */
int qkvi_onnx_loop_threads(const qkvi_onnx *x, int max_threads);

qkvi_onnx_slot *qkvi_onnx_lay_out_loop(const qkvi_onnx *x, int n_threads, qkvi_cutter *cutter);

/* Writes y and qk, each unless it is NULL. */
QKV_NODISCARD qkv_status qkvi_onnx_loop(qkv_ctx *ctx, const qkvi_onnx *x, void *y, void *qk,
                                        int n_threads, qkvi_onnx_slot *slots,
                                        const qkv_call_options *call);

#endif
