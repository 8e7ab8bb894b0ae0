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

/* What follows a product: n elements of a row, by the thread that made them; y may be x. */
typedef void qkvi_gemm_map(int64_t n, const float *x, float *y);

/*
 * A[i][c] lies at a[i * a_row + c * a_col], C[i][j] at c[i * c_row + j]; C overlaps nothing. k = 0
 * is a product of zeros.
 */
typedef struct qkvi_gemm_job {
    const qkvi_kernels *kernels;
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_col;
    const float *packed_b;
    float *c;
    int64_t c_row;
    const float *bias;  /* [n], nullable */
    bool accumulate;    /* what C was is added to */
    qkvi_gemm_map *map; /* nullable: then mapped[i * c_row + j] = map(C[i][j]) */
    float *mapped;      /* may be c */
    float *space;       /* nullable: floats, of qkvi_gemm_copy_elems, to which A is copied */
} qkvi_gemm_job;

void qkvi_gemm(qkvi_pool *pool, const qkvi_gemm_job *job);

#pragma GCC visibility pop

/*
 * Floats that a job does well to have as space: 0 where A is best read where it lies. Otherwise
 * lines that belong to a tile or a block share few sets of the caches, and push each other out.
 * The bits are the same. l1_ways: qkvi_cpu_l1_ways.
 */
size_t qkvi_gemm_copy_elems(const qkvi_pool *pool, const qkvi_gemm_job *job, int l1_ways);

/*
 * Panels in each block of n_panels, where about n_blocks are wanted beside each other. Of few rows
 * these are all the blocks that there are: then a few panels less or one more, so that n_threads
 * that draw blocks end together.
 */
int64_t qkvi_gemm_panels(int64_t n_panels, int64_t n_row_blocks, int64_t n_blocks, int n_threads);

#endif
