/*
 * Attention in double, by the textbook: all scores of a row, then its softmax, then the sum of
 * values. It reads elements of any type, and writes scores of every stage. The public header has
 * the formula.
 *
 * Work is shared out as blocks of QKVI_ONNX_ROWS queries of a head, each of which reads a key once.
 * A row's sums have a fixed order: channels in 8 lanes, joined as ((0+4)+(2+6)) + ((1+5)+(3+7)),
 * then keys one after another. So the bits do not depend on threads or instruction set. Hidden keys
 * are left out of sums; they are read only if a stage before the mask is asked for.
 */
#ifndef QKVI_ONNX_LOOP_H
#define QKVI_ONNX_LOOP_H

#include "attn/ctx.h"
#include "onnx/node.h"

enum { QKVI_ONNX_ROWS = 4 };

/* What belongs to one thread. */
typedef struct qkvi_onnx_slot {
    double *s;  /* [ROWS][len_k] */
    bool *sees; /* [ROWS][len_k] */
    double *q;  /* [ROWS][head_dim] */
    double *y;  /* [ROWS][head_dim_v] */
    double *k, *v;
} qkvi_onnx_slot;

/* How many threads work, at most max_threads. */
int qkvi_onnx_loop_threads(const qkvi_onnx *x, int max_threads);

qkvi_onnx_slot *qkvi_onnx_lay_out_loop(const qkvi_onnx *x, int n_threads, qkvi_cutter *cutter);

/* Writes y and qk, where they are not NULL. */
QKV_NODISCARD qkv_status qkvi_onnx_loop(qkv_ctx *ctx, const qkvi_onnx *x, void *y, void *qk,
                                        int n_threads, qkvi_onnx_slot *slots,
                                        const qkv_call_options *call);

#endif
