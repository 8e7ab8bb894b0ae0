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
#include "core/ints.h"
#include "kernels/gemm.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

typedef enum qkvi_bf16_class { QKVI_BF16_DP, QKVI_BF16_AMX } qkvi_bf16_class;

/* Words that a packed k x n matrix takes; SIZE_MAX if that does not fit. */
size_t qkvi_bf16_packed_words(int64_t k, int64_t n);

/*
 * Packs B, whose element [c][j] lies at b[c * row_stride + j * col_stride]; one of the strides is 1. pool
 * may be NULL. All kernels pack the same bits; without being told by which, it takes the best that the
 * processor has, which needs some 50 microseconds in a virtual machine.
 */
void qkvi_bf16_pack_b(qkvi_pool *pool, int64_t k, int64_t n, const float *b, int64_t row_stride,
                      int64_t col_stride, uint32_t *packed);
void qkvi_bf16_pack_b_by(const qkvi_kernels *kernels, qkvi_pool *pool, int64_t k, int64_t n,
                         const float *b, int64_t row_stride, int64_t col_stride, uint32_t *packed);

/* A piece of B, as qkvi_gemm_pack_piece takes it; one of its strides is 1. packed: aligned to 64. */
void qkvi_bf16_pack_piece(const qkvi_kernels *kernels, int64_t k, const qkvi_gemm_piece *piece,
                          uint32_t *packed);

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
    bool half_filled; /* half has A already: by a job with the same A, or as its `rounded` */
    uint16_t
        *rounded; /* nullable, with half: what would be in mapped (without a map: in c) in bf16, as
                          half of a job of the same class whose A it is; qkvi_bf16_input_elems(m, n) of them
                          aligned to 64. What c and mapped then have means nothing */
    float *sums;  /* qkvi_bf16_sums_elems(pool) of them, aligned to 64; NULL: slower */
    int64_t
        a_col; /* 0 or 1: rows of A are dense; else its columns are, a_row is 1, and [i][c] lies at a[i + c a_col] */
} qkvi_gemm_bf16_job;

/* Of A in bf16; SIZE_MAX if that does not fit. */
size_t qkvi_bf16_input_elems(int64_t m, int64_t k);

/* Floats that threads keep their sums in. */
size_t qkvi_bf16_sums_elems(const qkvi_pool *pool);

/*
 * k = 0 is a product of zeros. Without memory for A it computes the same bits slowly. Tiles of AMX are used if the kernels are
 * those of AVX512-BF16.
 */
void qkvi_gemm_bf16(qkvi_pool *pool, const qkvi_gemm_bf16_job *job);

#pragma GCC visibility pop

/*
 * A as tiles of bf16 for AMX, of m rows: groups of 128 rows but the last; in each the depth (k
 * rounded up to 32) in chunks of 256 but the last; in each [rows / 16][depth / 32][16 rows][32].
 * Zeros beyond k; nobody reads what is beyond m. A product that goes through A chunk by chunk reads
 * it in order, and a block of rows is one piece, which does not compete with itself for sets of the
 * second-level cache.
 */
enum {
    QKVI_AMX_GROUP = 128,
    QKVI_AMX_CHUNK = 256,
    QKVI_AMX_ROWS = 64 /* at once, that read a chunk of B from the first-level cache */
};

typedef struct qkvi_amx_tiles {
    uint16_t *at;
    int64_t rows, depth; /* m rounded up to 16, k to 32 */
} qkvi_amx_tiles;

/* The tile of row i, a multiple of 16, and column c, a multiple of 32. */
static inline uint16_t *qkvi_amx_tile(const qkvi_amx_tiles *t, int64_t i, int64_t c) {
    const int64_t i0 = i / QKVI_AMX_GROUP * QKVI_AMX_GROUP;
    const int64_t c0 = c / QKVI_AMX_CHUNK * QKVI_AMX_CHUNK;
    const int64_t rows = qkvi_min_i64(t->rows - i0, QKVI_AMX_GROUP);
    const int64_t chunk = qkvi_min_i64(t->depth - c0, QKVI_AMX_CHUNK);
    return t->at + i0 * t->depth + rows * c0 + (i - i0) * chunk + 16 * (c - c0);
}

/*
 * Class amx by its instruction. round: n_rows <= 16 rows of x become those from `row` on.
 *
 * multiply: C = A B of n_rows and one panel of b, then what a job says. At every 32 of k `lines`
 * lines from `ahead` on are fetched. Between qkvi_amx_begin and qkvi_amx_end of the same thread.
 */
typedef struct qkvi_amx_panel {
    int64_t first_row, n_rows; /* first_row is a multiple of 16 */
    int64_t first_col;
    int n_cols; /* <= 32 */
    qkvi_amx_tiles tiles;
    const uint32_t *b;
    float *c, *mapped; /* element [0][first_col] */
    int64_t c_row;
    bool past_caches;  /* C is more than they hold */
    const float *bias; /* of first_col on */
    qkvi_gemm_map *map;
    qkvi_amx_tiles rounded;
    float *sums; /* [QKVI_AMX_ROWS][32]; NULL: 32 rows at once, slower */
    const char *ahead;
    int lines;
} qkvi_amx_panel;

void qkvi_amx_round(int n_rows, int64_t k, const float *x, int64_t x_row, const qkvi_amx_tiles *to,
                    int64_t row);
void qkvi_amx_begin(void);
void qkvi_amx_end(void);
void qkvi_amx_multiply(const qkvi_amx_panel *panel);

#endif
