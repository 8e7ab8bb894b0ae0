/*
 * Rows in parallel: every layer but attention and the matrix products works on blocks of rows.
 *
 * A block is QKVI_ROW_BLOCK consecutive rows, whatever the number of threads. Sums over rows (the
 * gradients of biases, gamma, beta and embeddings) are made row by row within a block; then the
 * sums of the blocks are added in order. So they do not depend on threads.
 */
#ifndef QKVI_LAYER_ROWS_H
#define QKVI_LAYER_ROWS_H

#include "qkv/qkv.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

enum { QKVI_ROW_BLOCK = 64 };

typedef struct qkvi_rows {
    int64_t block, first, count; /* rows first … first + count - 1 */
} qkvi_rows;

typedef void qkvi_rows_task(qkv_ctx *ctx, void *argument, qkvi_rows rows);

int64_t qkvi_row_blocks(int64_t n_rows);

/* The mean of rows x [n_rows][n]: a sum in double, in the order of rows, rounded once. */
static inline void qkvi_mean_of_rows(int64_t n_rows, int64_t n, const float *x, float *mean) {
    for (int64_t c = 0; c < n; c++) {
        double sum = 0;
        for (int64_t i = 0; i < n_rows; i++) sum += (double)x[i * n + c];
        mean[c] = (float)(sum / (double)n_rows);
    }
}

/* Calls task for each block of n_rows rows, in parallel. */
void qkvi_rows_run(qkv_ctx *ctx, int64_t n_rows, qkvi_rows_task *task, void *argument);

/* y += x, both [n_rows][n]. */
void qkvi_rows_add(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x, float *y);

/* The floats of scratch for the partial sums of n columns. */
int64_t qkvi_colsum_elems(int64_t n_rows, int64_t n);

/* sum[c] = sum over rows of x[row][c]; scratch has qkvi_colsum_elems(n_rows, n) floats. */
void qkvi_colsum(qkv_ctx *ctx, int64_t n_rows, int64_t n, const float *x, float *scratch,
                 float *sum);

/* sum = the rows of partial [n_blocks][n], added in order from 0. */
void qkvi_colsum_join(qkv_ctx *ctx, int64_t n_blocks, int64_t n, const float *partial, float *sum);

#pragma GCC visibility pop

#endif
