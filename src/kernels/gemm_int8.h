/*
 * Matrix products of 8-bit integers with scales: C[m][n] = A[m][k] B[k][n] (+ bias[n]), A of floats
 * that are rounded in groups, B rounded and packed beforehand. int8.h has both forms and the order
 * of operations, which is that of the scalar build on every processor.
 */
#ifndef QKVI_KERNELS_GEMM_INT8_H
#define QKVI_KERNELS_GEMM_INT8_H

#include "core/ints.h"
#include "kernels/gemm.h"
#include "kernels/int8.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/* Panels that a packed k x n matrix takes; SIZE_MAX if their bytes do not fit. */
size_t qkvi_int8_packed_panels(int64_t k, int64_t n);

/*
 * A piece of B, as qkvi_gemm_pack_piece takes it; c0 is a multiple of 64, and n_c, too, unless it
 * ends with B.
 */
void qkvi_int8_pack_piece(const qkvi_kernels *kernels, int64_t k, const qkvi_gemm_piece *piece,
                          qkvi_int8_panel *packed);

/*
 * Packs B, whose element [c][j] lies at b[c * row_stride + j * col_stride]; packed is aligned to
 * 64. pool may be NULL, and so may kernels: all pack the same bits.
 */
void qkvi_int8_pack_b(const qkvi_kernels *kernels, qkvi_pool *pool, int64_t k, int64_t n,
                      const float *b, int64_t row_stride, int64_t col_stride,
                      qkvi_int8_panel *packed);

/* B[c][j] of a packed matrix with k rows, rounded once. */
static inline float qkvi_int8_packed_at(int64_t k, int64_t c, int64_t j,
                                        const qkvi_int8_panel *packed) {
    const int64_t n_groups = qkvi_ceil_div(k, QKVI_INT8_GROUP);
    const qkvi_int8_panel *const panel =
        &packed[j / QKVI_INT8_COLUMNS * n_groups + c / QKVI_INT8_GROUP];
    const int64_t col = j % QKVI_INT8_COLUMNS, at = c % QKVI_INT8_GROUP;
    return panel->scale[col] * (float)((int)panel->q[at / 4][col][at % 4] - 128);
}

typedef struct qkvi_gemm_int8_job {
    const qkvi_kernels *kernels;
    int64_t m, n, k;
    const float *a; /* [i][c] lies at a[i * k + c] */
    const qkvi_int8_panel *packed_b;
    float *c;              /* [m][n] */
    const float *bias;     /* nullable */
    qkvi_gemm_map *map;    /* nullable: gemm.h */
    float *mapped;         /* [m][n] */
    qkvi_int8_group *rows; /* A rounded: qkvi_int8_groups(m, k); NULL: no memory for it */
} qkvi_gemm_int8_job;

/* Of A rounded; SIZE_MAX if their bytes do not fit. */
size_t qkvi_int8_groups(int64_t m, int64_t k);

/*
 * Products with the same A, m, k and rows, side by side: threads wait for each other once. k = 0 is
 * a product of zeros. Without memory for A they compute the same bits slowly.
 */
enum { QKVI_GEMM_INT8_JOBS = 3 };
void qkvi_gemm_int8(qkvi_pool *pool, int n_jobs, const qkvi_gemm_int8_job *jobs);

#pragma GCC visibility pop

#endif
