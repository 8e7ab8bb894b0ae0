/*
 * Matrix products in bf16 with sums in f32: C[m][n] = A[m][k] B[k][n] (+ bias[n]), A of floats that
 * are rounded to bf16 (to nearest even), B rounded and packed beforehand. Two classes (class.h),
 * each with one order of operations on every processor (docs/numerics.md, Layers):
 *
 *     dp    a chain of steps over pairs of k, as VDPBF16PS adds them (tmpl/dp.h)
 *     amx   for every 32 of k, c = c + (even + odd), where even and odd are chains of fmaf from 0
 *           over the even and the odd k of the 32, as TDPBF16PS adds them
 *
 * k is padded with zeros to a multiple of 32. Subnormal factors count as zeros of their sign, and
 * so do sums below 2^-126 after rounding. The bias is added last, as a float.
 *
 * B is packed in panels of 32 columns, [k / 2][32], of pairs: of row 2i in the lower half of a word
 * and of row 2i + 1 in the upper. Both instructions read it as it lies.
 */
#ifndef QKVI_KERNELS_GEMM_BF16_H
#define QKVI_KERNELS_GEMM_BF16_H

#include "core/half.h"
#include "core/ints.h"
#include "kernels/gemm.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

enum { QKVI_BF16_STEP = 32 }; /* k is padded to a multiple: what a tile of AMX is deep */

/* Words that a packed k x n matrix takes; SIZE_MAX if that does not fit. */
size_t qkvi_bf16_packed_words(int64_t k, int64_t n);

/*
 * Packs B, whose element [c][j] lies at b[c * row_stride + j * col_stride]; one of the strides is
 * 1. pool may be NULL; packed is aligned to 64. All kernels pack the same bits; without being told
 * by which, it asks for the best that the processor has, which takes some 50 microseconds in a
 * virtual machine.
 */
void qkvi_bf16_pack_b(qkvi_pool *pool, int64_t k, int64_t n, const float *b, int64_t row_stride,
                      int64_t col_stride, uint32_t *packed);
void qkvi_bf16_pack_b_by(const qkvi_kernels *kernels, qkvi_pool *pool, int64_t k, int64_t n,
                         const float *b, int64_t row_stride, int64_t col_stride, uint32_t *packed);

/* A piece of B, as qkvi_gemm_pack_piece takes it; one of its strides is 1. */
void qkvi_bf16_pack_piece(const qkvi_kernels *kernels, int64_t k, const qkvi_gemm_piece *piece,
                          uint32_t *packed);

/* B[c][j] of a packed matrix with k rows. */
static inline float qkvi_bf16_packed_at(int64_t k, int64_t c, int64_t j, const uint32_t *packed) {
    const int64_t n_pairs = qkvi_round_up(k, QKVI_BF16_STEP) / 2;
    const uint32_t two = packed[qkvi_gemm_packed_at(n_pairs, c / 2, j)];
    return qkvi_f32_of_bf16((uint16_t)(two >> c % 2 * 16));
}

/*
 * half is A in bf16. A job fills it, unless it is half_filled: by a job with the same A, or as what
 * that one has rounded.
 *
 * rounded, where it is given (which needs half), gets what would be in mapped, or without a map in
 * c, as half of a job of the same class that reads it; c and mapped then mean nothing. rows, where
 * it is given (without a map), gets C rounded to bf16, row after row; c then means nothing.
 */
typedef struct qkvi_gemm_bf16_job {
    const qkvi_kernels *kernels;
    qkvi_arithmetic class; /* one of bf16 that the kernels have here */
    int64_t m, n, k;
    const float *a;       /* [i][c] lies at a[i * a_row + c], */
    int64_t a_row, a_col; /* or, if a_col > 1, at a[i + c * a_col] */
    const uint32_t *packed_b;
    float *c; /* [m][n], rows c_row apart */
    int64_t c_row;
    const float *bias;  /* nullable */
    qkvi_gemm_map *map; /* nullable: gemm.h */
    float *mapped;
    uint16_t *half; /* qkvi_bf16_input_elems(m, k), aligned to 64; NULL: no memory for it */
    bool half_filled;
    uint16_t *rounded; /* nullable; qkvi_bf16_input_elems(m, n), aligned to 64 */
    uint16_t *rows;    /* nullable; [m][n] */
    float *sums;       /* qkvi_bf16_sums_elems(pool), aligned to 64; NULL: slower */
} qkvi_gemm_bf16_job;

/* Of A in bf16; SIZE_MAX if that does not fit. */
size_t qkvi_bf16_input_elems(int64_t m, int64_t k);

/* Floats that threads keep their sums in. */
size_t qkvi_bf16_sums_elems(const qkvi_pool *pool);

/* k = 0 is a product of zeros. Without memory for A it computes the same bits slowly. */
void qkvi_gemm_bf16(qkvi_pool *pool, const qkvi_gemm_bf16_job *job);

#pragma GCC visibility pop

#endif
