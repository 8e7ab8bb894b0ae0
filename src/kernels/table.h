/*
 * The contract of the kernels: one table for each instruction set, constant and complete. What an
 * entry may assume is said here and only here; below the table nothing is checked. All tables
 * of the f32 class give the same bits.
 *
 * A packed panel holds 32 columns of B, row after row, zeros beyond the last column:
 *
 *     B[k][n], n = 70:    panel 0             panel 1             panel 2
 *                         [k][columns 0…31]   [k][columns 32…63]  [k][columns 64…69, zeros]
 *
 * Panels follow each other, are aligned to 64 bytes, and are the same for every instruction set.
 */
#ifndef QKVI_KERNELS_TABLE_H
#define QKVI_KERNELS_TABLE_H

#include <stdint.h>

#include "core/half.h"
#include "kernels/attend.h"
#include "kernels/attend_bwd.h"
#include "kernels/columns.h"
#include "kernels/decode.h"
#include "kernels/int8.h"
#include "kernels/layer.h"
#include "kernels/tsne.h"

/* Products of matrices. */
typedef struct qkvi_gemm_kernels {
    /*
     * C[n_rows][n_cols] = A B, or C += A B if add; then C += bias[n_cols], if there is one. 1 <=
     * n_rows <= mr, 1 <= n_cols <= 32, k >= 0; b: one packed panel. A[i][c] lies at a[i * a_row + c
     * * a_col]. Each product is one fmaf chain from 0 in the order of k. ahead_rows <= k rows of
     * panels from `ahead` on, which will be read soon, are announced meanwhile (ahead.h); 0: none.
     */
    void (*tile)(int n_rows, int n_cols, int64_t k, const float *a, int64_t a_row, int64_t a_col,
                 const float *b, float *c, int64_t c_row, int add, const float *bias,
                 const float *ahead, int64_t ahead_rows);

    /*
     * By classes of bf16: C[n_rows][n_cols] continues its chains by A B, n elements deep, a step of
     * the class at a time (tmpl/dp.h, tmpl/amx.h). Row i of A is bf16 from a + i a_row on; b: one
     * panel of pairs, [ceil(n / 2)][32 columns], the last one's upper halves 0 where n is odd; in
     * class amx n is a multiple of 32.
     */
    void (*half_tile[QKVI_N_CLASSES])(int n_rows, int n_cols, int64_t n, const uint16_t *a,
                                      int64_t a_row, const uint32_t *b, float *c, int64_t c_row);

    /*
     * By 8-bit integers (int8.h). round: n_rows of n floats as groups, rows of them y_row apart.
     * tile: C[n_rows][n_cols] of products over n_groups, added to what C had if add; then C +=
     * bias[n_cols], if there is one. 1 <= n_rows <= mr, 1 <= n_cols <= 32; rows of a are a_row
     * groups apart; b: one packed panel. ahead_groups <= n_groups groups from `ahead` on are
     * announced as in tile.
     */
    void (*int8_round)(int64_t n_rows, int64_t n, const float *x, int64_t x_row, qkvi_int8_group *y,
                       int64_t y_row);
    void (*int8_tile)(int n_rows, int n_cols, int64_t n_groups, const qkvi_int8_group *a,
                      int64_t a_row, const qkvi_int8_panel *b, float *c, int64_t c_row, int add,
                      const float *bias, const qkvi_int8_panel *ahead, int64_t ahead_groups);
} qkvi_gemm_kernels;

/* Attention, forward. */
typedef struct qkvi_attend_kernels {
    /* The forward pass of a block of queries: attend.h. */
    void (*block)(const qkvi_attend *a);

    /*
     * The same for a sentence, unpacked. false: some row is not ordinary (sees no key, overflows,
     * NaN), and all of o and lse must be computed by block.
     */
    bool (*small)(const qkvi_attend_small *a);

    /*
     * Which of n_keys <= 32 keys the mask lets a row see that may see them: rows i < n_rows may see
     * the keys [begin + i, end + i). Reads no more of it than it takes to know.
     */
    uint32_t (*mask_any)(const qkvi_mask *mask, int64_t n_rows, int n_keys, int64_t begin,
                         int64_t end);

    /*
     * For the parts columns and decode, instead of copies of the same code: sums of 16 rows (tmpl/
     * attend_stats.h), and [QKVI_N_CLASSES] of tmpl/attend_class.h.
     */
    void (*stats_rows)(const qkvi_attend *a, int from, int end, float factor);
    const struct qkvi_attend_class *classes;
} qkvi_attend_kernels;

/* What each key receives. */
typedef struct qkvi_columns_kernels {
    /*
     * The pass over columns: columns.h. block adds what a block of queries has to the sums of own;
     * own->sees begins as zeros, and so do the last 16 floats of the rows of scores. end: entropy
     * of the keys.
     */
    void (*block)(const qkvi_columns *c);
    void (*end)(qkvi_columns_scratch *own);

    /*
     * The block's scores become e = exp(s - most) in scratch->s, all 256 keys of every row;
     * most[i * step] is the greatest s of row i in the block, -inf if there is none, sum[i * step]
     * that of its e.
     */
    void (*weights)(const qkvi_columns *c, double *most, double *sum, int64_t step);
} qkvi_columns_kernels;

/* Rows of arrays: packed, converted, merged. */
typedef struct qkvi_rows_kernels {
    /*
     * Packing of n rows of x, dense along channels, by their type. see: a bit for each row, 32 to a
     * word, NULL for all; rows without a bit are not read and are zeros. So is everything beyond
     * the last row or channel, up to the end of the panel. pack_channels: [ceil(dim / 32)][rows][32
     * channels], the first n of `rows` filled; returns whether what was read is finite. pack_keys:
     * [ceil(n / 32)][dim][32 rows].
     */
    bool (*pack_channels[QKVI_N_DTYPES])(const void *x, int64_t x_stride, int64_t n, int64_t dim,
                                         int64_t rows, const uint32_t *see, float *panels);
    void (*pack_keys[QKVI_N_DTYPES])(const void *x, int64_t x_stride, int64_t n, int64_t dim,
                                     const uint32_t *see, float *panels);

    /*
     * The same of bf16 as pairs (kernels/class.h): pack_channel_pairs [ceil(dim / 32)][rows /
     * 2][32 channels], rows even, ceil(n / 2) of them filled; pack_key_pairs [ceil(n /
     * 32)][depth][32 rows], depth at least ceil(dim / 2), zeros beyond that.
     */
    bool (*pack_channel_pairs)(const uint16_t *x, int64_t x_stride, int64_t n, int64_t dim,
                               int64_t rows, const uint32_t *see, uint32_t *panels);
    void (*pack_key_pairs)(const uint16_t *x, int64_t x_stride, int64_t n, int64_t dim,
                           int64_t depth, const uint32_t *see, uint32_t *panels);

    /*
     * n rows of dim elements of a type to floats, and floats, times factor, to them: rounded once.
     */
    void (*load[QKVI_N_DTYPES])(const void *x, int64_t x_stride, int64_t n, int64_t dim, float *y,
                                int64_t y_stride);
    void (*store[QKVI_N_DTYPES])(const float *x, int64_t x_stride, int64_t n, int64_t dim,
                                 float factor, void *y, int64_t y_stride);

    /*
     * One row of qkv_attention_merge: dim channels at element o_at of every o_parts, its lse at
     * lse_at of every lse_parts. n_parts >= 1, dim >= 0; o and lse (nullable) may be those of a
     * part. By the type of o.
     */
    void (*merge[QKVI_N_DTYPES])(int n_parts, const void *const *o_parts,
                                 const float *const *lse_parts, int64_t o_at, int64_t lse_at,
                                 int64_t dim, void *o, float *lse);
} qkvi_rows_kernels;

typedef struct qkvi_decode_kernels {
    /*
     * Decode: decode.h. split fills a->part with the keys [first_key, end_key); join adds `next`,
     * of later keys, to it; finish writes o and lse of all rows from it. The last two use neither
     * keys nor scratch. Statistics (decode_stats.h) go through the three in the same way.
     */
    void (*split)(const qkvi_decode *a);
    void (*join)(const qkvi_decode *a, const qkvi_decode_part *next);
    void (*finish)(const qkvi_decode *a);
} qkvi_decode_kernels;

/*
 * Each part is an object of its own (cmake/isas.cmake), so that no file takes long to compile. An
 * instruction set may have parts of another one.
 */
typedef struct qkvi_kernels {
    const char *name; /* "avx2": what QKV_ISA and `qkv info` print */
    uint32_t need;    /* QKVI_CPU_… bits */
    int mr;           /* rows of the register tile */
    uint32_t fast_dp; /* QKVI_CPU_… bits with which class dp outruns class f32; 0: never */

    const qkvi_gemm_kernels *gemm;
    const qkvi_attend_kernels *attend;
    const qkvi_columns_kernels *columns;
    const qkvi_rows_kernels *rows;
    const qkvi_bwd_kernels *bwd;
    const qkvi_decode_kernels *decode;
    const qkvi_layer_kernels *layer;
    const qkvi_tsne_kernels *tsne;
} qkvi_kernels;

extern const qkvi_kernels qkvi_scalar_kernels, qkvi_avx2_kernels, qkvi_avx512_kernels,
    qkvi_avx512bf16_kernels, qkvi_neon_kernels, qkvi_wasm_kernels;

/* The tables that this processor can run, best last; NULL past the end. */
const qkvi_kernels *qkvi_kernels_at(int index);
/* The best of them; the one with a name, or NULL. */
__attribute__((visibility("default"))) /* for the other libraries: QKV_PRIVATE in src/qkv.map */
const qkvi_kernels *
qkvi_kernels_best(void);
const qkvi_kernels *qkvi_kernels_named(const char *name);

#endif
