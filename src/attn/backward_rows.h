/*
 * Backward: what only depends on the queries, and the gradient of the sinks, which needs no more.
 */
#ifndef QKV_ATTN_BACKWARD_ROWS_H
#define QKV_ATTN_BACKWARD_ROWS_H

#include "attn/sequence.h"
#include "kernels/table.h"

/* lse and delta = <d_o, o> - d_lse of queries [i0, i0 + n); zeros up to QKVI_BWD_QUERIES. */
void qkvi_backward_rows(const qkvi_problem *problem, const qkvi_grads *grads,
                        const qkvi_kernels *kernels, int64_t b, int64_t h, int64_t i0, int64_t n,
                        float *lse, float *delta);

/* delta of all rows that count, [n_batch][n_heads][len_q]. */
void qkvi_backward_deltas(const qkvi_problem *problem, const qkvi_grads *grads,
                          const qkvi_kernels *kernels, float *delta);

/* d_sinks[h] = -sum over b, i of exp(sink - lse) delta, if the caller wants it. */
void qkvi_backward_sinks(const qkvi_problem *problem, const qkvi_grads *grads,
                         const qkvi_kernels *kernels);

#endif
