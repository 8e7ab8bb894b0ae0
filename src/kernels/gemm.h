/*
 * Matrix products of any size: the threaded loops around the register tile of kernels/table.h.
 *
 * C[m][n] = A[m][k] B[k][n] (+ C) (+ bias[n]), with B packed beforehand into panels of 32 columns
 * (kernels/table.h).
 *
 * The order of operations is a contract, the same for every instruction set, shape and number of
 * threads: k in blocks of QKVI_GEMM_K_BLOCK, each one fmaf chain from 0 in the order of k; blocks
 * are added to C in order, the first stored (or added to C when accumulating); the bias is added
 * last. Threads split m and n, never k.
 */
#ifndef QKVI_KERNELS_GEMM_H
#define QKVI_KERNELS_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/pool.h"
#include "kernels/ahead.h"
#include "kernels/table.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

enum { QKVI_GEMM_K_BLOCK = 256 };

/*
 * Floats that a packed k x n matrix takes: k * n with n rounded up to 32; SIZE_MAX if that does not
 * fit.
 */
size_t qkvi_gemm_packed_elems(int64_t k, int64_t n);

/*
 * Packs B, whose element [c][j] lies at b[c * row_stride + j * col_stride]; packed is aligned to 64
 * bytes. pool and kernels may be NULL; without kernels dense columns are transposed in plain C.
 */
void qkvi_gemm_pack_b(qkvi_pool *pool, const qkvi_kernels *kernels, int64_t k, int64_t n,
                      const float *b, int64_t row_stride, int64_t col_stride, float *packed);

/*
 * Announces n floats of each of some rows that are too short for the processor to see where they
 * go: the lines that begin in them (ahead.h).
 */
static inline void qkvi_fetch_rows(const float *x, int64_t x_row, int64_t n_rows, int64_t n) {
    for (int64_t i = 0; i < n_rows; i++) {
        const qkvi_ahead row = qkvi_ahead_bytes(x + i * x_row, n * (int64_t)sizeof *x);
        for (int64_t line = 0; line < row.left; line++) qkvi_announce(row.at + line * row.step);
    }
}

/* Where a packed k x n matrix has B[c][j]. */
static inline int64_t qkvi_gemm_packed_at(int64_t k, int64_t c, int64_t j) {
    return j / QKVI_PANEL * QKVI_PANEL * k + c * QKVI_PANEL + j % QKVI_PANEL;
}

/*
 * B[c0 … c0 + n_c - 1][j0 … j0 + n_j - 1], for matrices that come in pieces. c0 and j0 are
 * multiples of 32, n_c and n_j too unless the piece ends with B. B[c0 + c][j0 + j] lies at b[c *
 * row_stride + j * col_stride].
 */
typedef struct qkvi_gemm_piece {
    int64_t c0, n_c, j0, n_j;
    const float *b;
    int64_t row_stride, col_stride;
} qkvi_gemm_piece;

/* Its place of a packed k x n matrix; all pieces together are what qkvi_gemm_pack_b makes. */
void qkvi_gemm_pack_piece(int64_t k, int64_t n, const qkvi_gemm_piece *piece, float *packed);

/*
 * A[i][c] lies at a[i * a_row_stride + c * a_col_stride], C[i][j] at c[i * c_row_stride + j]; C
 * overlaps nothing. bias is nullable. k = 0 is a product of zeros.
 */
void qkvi_gemm(qkvi_pool *pool, const qkvi_kernels *kernels, int64_t m, int64_t n, int64_t k,
               const float *a, int64_t a_row_stride, int64_t a_col_stride, const float *packed_b,
               float *c, int64_t c_row_stride, const float *bias, bool accumulate);

/*
 * The same, and then mapped = map(C), element by element: mapped[i * c_row_stride + j]; it may be
 * c. map does n elements and is called for pieces of rows, by the thread that made them.
 */
typedef void qkvi_gemm_map(int64_t n, const float *x, float *y);
void qkvi_gemm_mapped(qkvi_pool *pool, const qkvi_kernels *kernels, int64_t m, int64_t n, int64_t k,
                      const float *a, int64_t a_row_stride, int64_t a_col_stride,
                      const float *packed_b, float *c, int64_t c_row_stride, const float *bias,
                      bool accumulate, qkvi_gemm_map *map, float *mapped);

#pragma GCC visibility pop

/*
 * C = A B where A's columns are dense: A[i][c] lies at a[i + c * a_col_stride]. Each block copies
 * its part of A to space, of qkvi_gemm_columns_elems floats, once for all its columns: where the
 * stride is a multiple of some KiB, lines that belong to a block share a few sets of the caches and
 * would push each other out. NULL: A is read where it lies. The same bits.
 */
size_t qkvi_gemm_columns_elems(const qkvi_pool *pool);
void qkvi_gemm_columns(qkvi_pool *pool, const qkvi_kernels *kernels, int64_t m, int64_t n,
                       int64_t k, const float *a, int64_t a_col_stride, const float *packed_b,
                       float *c, int64_t c_row_stride, float *space);

/*
 * Panels in each block of n_panels, where about n_blocks are wanted beside each other. Of few rows
 * these are all the blocks that there are: then a few panels less or one more, so that n_threads
 * that draw blocks end together.
 */
int64_t qkvi_gemm_panels(int64_t n_panels, int64_t n_row_blocks, int64_t n_blocks, int n_threads);

#endif
