/*
 * Products by weights that stay in the blocks of a GGUF file: C[m][n] = A[m][k] W[n][k]^T
 * (+ bias[n]). A row of W is k / n_elems blocks, one after the other, and rows follow each other:
 *
 *     kind                  block     weight of integer q
 *     Q8_0, Q4_0, Q5_0      32        d (q - z), z = 0, 8, 16
 *     Q4_1                  32        d q + m
 *     Q6_K                  256       d s (q - 32), s of each 16
 *     Q4_K, Q5_K            256       d s q - m t, s and t of each 32
 *
 * A row of A is cut into groups as long as a block, which are rounded as in kernels/int8.h:
 *
 *     element = scale q,  scale = max|x| / 127,  q = x · (127 / max|x|), to the nearest integer
 *
 * Of a block and a group, with z as above,
 *
 *     I = Σ s (q_W - z) q_A                      an integer below 2^28, and exact
 *     L = Σ q_A, or of Q4_K and Q5_K -Σ t q_A    the same
 *     C = fma(I, d · scale, C); then, where there is m, C = fma(L, m · scale, C)
 *
 * block after block, from +0; then the bias is added. I and L are rounded to floats once. So the
 * bits do not depend on the instruction set.
 */
#ifndef QKVI_KERNELS_BLOCKS_H
#define QKVI_KERNELS_BLOCKS_H

#include <stdint.h>

#include "kernels/gemm.h"

typedef enum qkvi_block_kind {
    QKVI_Q4_0,
    QKVI_Q4_1,
    QKVI_Q5_0,
    QKVI_Q8_0,
    QKVI_Q4_K,
    QKVI_Q5_K,
    QKVI_Q6_K,
    QKVI_N_BLOCK_KINDS
} qkvi_block_kind;

typedef struct qkvi_block_format {
    qkvi_block_kind kind;
    int n_elems, n_bytes;
    void (*to_f32)(const uint8_t *block, float *values); /* exact */
} qkvi_block_format;

/* Of a row of A, where blocks have 32 elements and where they have 256. */
typedef struct qkvi_short_group {
    float scale;
    int32_t sum; /* Σ q */
    int8_t q[32];
} qkvi_short_group;
typedef struct qkvi_long_group {
    float scale;
    int16_t sums[16]; /* of 16 each */
    int8_t q[256];
} qkvi_long_group;

/* What an instruction set does of it. */
typedef struct qkvi_block_kernels {
    const char *name;
    uint32_t need; /* QKVI_CPU_... */
    /* n_groups groups of n_elems floats each: qkvi_short_group or qkvi_long_group. */
    void (*round)(int n_elems, int64_t n_groups, const float *x, void *groups);
    /*
     * c[i * c_row + j] of n_rows rows of groups, a_row bytes apart, and n_cols rows of n_blocks
     * blocks each, b_row bytes apart; goes on from what c is if add. bias [n_cols] is nullable.
     */
    void (*multiply)(qkvi_block_kind kind, int64_t n_blocks, int64_t n_rows, const void *a,
                     int64_t a_row, int64_t n_cols, const uint8_t *b, int64_t b_row, float *c,
                     int64_t c_row, int add, const float *bias);
} qkvi_block_kernels;

extern const qkvi_block_kernels qkvi_blocks_scalar, qkvi_blocks_avx2, qkvi_blocks_avxvnni,
    qkvi_blocks_avx512vnni, qkvi_blocks_dotprod;

/*
 * Those of a table. VNNI and SDOT are no tables of their own: most processors have them whose table
 * is avx2, avx512 or neon, so the processor is asked, too, but only for what the table would use.
 * Without SDOT those of neon are the scalar ones, of which a compiler makes NEON.
 */
const qkvi_block_kernels *qkvi_block_kernels_of(const struct qkvi_kernels *kernels);

/* Those that this processor runs, the scalar ones first; NULL behind the last. */
const qkvi_block_kernels *qkvi_block_kernels_at(int index);

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

typedef struct qkvi_blocks_job {
    const struct qkvi_kernels *kernels;
    const qkvi_block_format *format;
    int64_t m, n, k; /* k is a multiple of format->n_elems */
    const float *a;  /* [m][k] */
    const uint8_t *b;
    float *c; /* [m][n] */
    const float *bias;
    qkvi_gemm_map *map; /* nullable: gemm.h */
    float *mapped;      /* [m][n] */
    void *rows;         /* A rounded: qkvi_blocks_room(format, m, k) bytes; NULL: no memory */
} qkvi_blocks_job;

/* Bytes of A rounded; SIZE_MAX if they do not fit. */
size_t qkvi_blocks_room(const qkvi_block_format *format, int64_t m, int64_t k);

/* Without memory for A the bits are the same, and computed slowly. */
void qkvi_blocks_gemm(qkvi_pool *pool, const qkvi_blocks_job *job);

#pragma GCC visibility pop

/* W[j][...]: k floats, exact. */
static inline void qkvi_blocks_row(const qkvi_block_format *format, const uint8_t *b, int64_t k,
                                   int64_t j, float *row) {
    const int64_t n_blocks = k / format->n_elems;
    for (int64_t i = 0; i < n_blocks; i++)
        format->to_f32(b + (j * n_blocks + i) * format->n_bytes, row + i * format->n_elems);
}

/* W[j][c] */
static inline float qkvi_blocks_at(const qkvi_block_format *format, const uint8_t *b, int64_t k,
                                   int64_t j, int64_t c) {
    float values[256];
    const int64_t n_blocks = k / format->n_elems, i = c / format->n_elems;
    format->to_f32(b + (j * n_blocks + i) * format->n_bytes, values);
    return values[c % format->n_elems];
}

#endif
