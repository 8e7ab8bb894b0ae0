/*
 * Matrix products in bf16 with sums in f32: C[m][n] = A[m][k] B[k][n] (+ bias[n]), A of floats that
 * are rounded to bf16 (to nearest even), B rounded and packed beforehand. Two classes, each with one
 * order of operations on every processor (docs/numerics.md, Layers):
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
#include "kernels/gemm.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

typedef enum qkvi_bf16_class { QKVI_BF16_DP, QKVI_BF16_AMX } qkvi_bf16_class;

/* Words that a packed k x n matrix takes; SIZE_MAX if that does not fit. */
size_t qkvi_bf16_packed_words(int64_t k, int64_t n);

/* Packs B, whose element [c][j] lies at b[c * row_stride + j * col_stride]. pool may be NULL. */
void qkvi_bf16_pack_b(qkvi_pool *pool, int64_t k, int64_t n, const float *b, int64_t row_stride,
                      int64_t col_stride, uint32_t *packed);

/* A piece of B, as qkvi_gemm_pack_piece takes it. */
void qkvi_bf16_pack_piece(int64_t k, int64_t n, const qkvi_gemm_piece *piece, uint32_t *packed);

/* B[c][j] of a packed matrix with k rows. */
static inline float qkvi_bf16_packed_at(int64_t k, int64_t c, int64_t j, const uint32_t *packed) {
    const int64_t n_pairs = (k + 31) / 32 * 16;
    const uint32_t two = packed[qkvi_gemm_packed_at(n_pairs, c / 2, j)];
    return qkvi_f32_of_bf16((uint16_t)(two >> c % 2 * 16));
}

typedef struct qkvi_gemm_bf16_job {
    const qkvi_kernels *kernels;
    qkvi_bf16_class class;
    bool has_amx; /* qkvi_cpu_amx() */
    int64_t m, n, k;
    const float *a; /* [m][k], rows a_row apart */
    int64_t a_row;
    const uint32_t *packed_b;
    float *c; /* [m][n], rows c_row apart */
    int64_t c_row;
    const float *bias;  /* nullable */
    qkvi_gemm_map *map; /* nullable: gemm.h */
    float *mapped;
    uint16_t *half; /* qkvi_bf16_input_elems(m, k) of them, aligned to 64; NULL: no memory for A */
} qkvi_gemm_bf16_job;

/* Of A in bf16; SIZE_MAX if that does not fit. */
size_t qkvi_bf16_input_elems(int64_t m, int64_t k);

/*
 * Without memory for A it computes the same bits slowly. Tiles of AMX are used if the kernels are
 * those of AVX512-BF16.
 */
void qkvi_gemm_bf16(qkvi_pool *pool, const qkvi_gemm_bf16_job *job);

#pragma GCC visibility pop

/*
 * Class amx by its instruction. A is tiles of bf16: for each 16 rows, [k rounded up to 32, / 32][16
 * rows][32], zeros beyond rows and k; qkvi_amx_round makes those of n_rows <= 16 rows of floats.
 *
 * panel: C[n_rows][n_cols <= 32] = A B, then + bias if there is one; k is a multiple of 32, b one
 * panel. `lines` lines from `ahead` on are fetched at every 32 of k. Between qkvi_amx_begin and
 * qkvi_amx_end of the same thread.
 */
void qkvi_amx_round(int n_rows, int64_t k, const float *x, int64_t x_row, uint16_t *tiles);
void qkvi_amx_begin(void);
void qkvi_amx_end(void);
void qkvi_amx_panel(int64_t n_rows, int n_cols, int64_t k, const uint16_t *tiles, const uint32_t *b,
                    float *c, int64_t c_row, const float *bias, const char *ahead, int lines);

#endif
