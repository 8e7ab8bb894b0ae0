/*
 * The pass over columns (include/qkv/columns.h): what its kernel works on. At most 96 queries of
 * one head, from a multiple of 96 on, against one block of 256 keys, K packed by the caller as for
 * forward (kernels/attend.h). docs/numerics.md, Columns, states the order of every sum.
 *
 *     scores of 32 keys (attend_scores.h)  x = s c - lse log2 e  p = 2^min(x, 0)  sums over queries
 *
 * Keys are in lanes, so that sums over queries need no shuffles: a chain over the rows in floats,
 * and these into doubles. What needs p in another direction (diagonals, tiles) finds the block in
 * scratch->s. Weights that are shown have sums of their own (tmpl/columns_weights.h).
 */
#ifndef QKVI_KERNELS_COLUMNS_H
#define QKVI_KERNELS_COLUMNS_H

#include "kernels/attend.h"

enum {
    QKVI_COLUMN_LANES = 8
}; /* sums of a diagonal: block of keys mod 8; part of the written order */

/* What a block of 256 keys has come to, of all queries so far. */
typedef struct qkvi_columns_sum {
    _Alignas(64) double received[QKVI_KEY_BLOCK], sum[QKVI_KEY_BLOCK];
    double p_log_p[QKVI_KEY_BLOCK]; /* logarithm to base 2 */
    float largest[QKVI_KEY_BLOCK];
    int64_t largest_query[QKVI_KEY_BLOCK], n_queries[QKVI_KEY_BLOCK], n_tiny[QKVI_KEY_BLOCK];
} qkvi_columns_sum;

/*
 * Of one thread: what is of a block of queries, then what is of all of them. Vectors are aligned to
 * 64.
 */
typedef struct qkvi_columns_scratch {
    _Alignas(64) float shift[QKVI_QUERY_BLOCK]; /* lse in the units of the exponent */
    float rest[QKVI_QUERY_BLOCK];               /* what rounding took from it */
    float weight[QKVI_QUERY_BLOCK];             /* x of the row */
    float received_now[QKVI_KEY_BLOCK], sum_now[QKVI_KEY_BLOCK], p_log_p_now[QKVI_KEY_BLOCK];
    float seen_now[QKVI_KEY_BLOCK], tiny_now[QKVI_KEY_BLOCK];
    float at_now[QKVI_KEY_BLOCK]; /* row of the greatest weight; -1: none above what there was */
    float tile_sum[QKVI_KEY_BLOCK], tile_max[QKVI_KEY_BLOCK];     /* of some rows */
    float lanes[2][16 * 16];                                      /* of 16 tiles */
    float diagonal[QKVI_QUERY_BLOCK + QKVI_KEY_BLOCK];            /* key - query + 96 */
    float diagonal_rows[QKVI_QUERY_BLOCK + QKVI_KEY_BLOCK];       /* likewise */
    uint16_t sees[QKVI_QUERY_BLOCK][1 + QKVI_KEY_BLOCK / 16 + 2]; /* bits, from key -16 on */

    qkvi_columns_sum keys;
    float entropy[QKVI_KEY_BLOCK];
    uint32_t left_out[QKVI_QUERY_BLOCK / 32]; /* rows that take no part, a bit each */
    uint32_t saw[QKVI_QUERY_BLOCK / 32];      /* rows with a score above -inf */
} qkvi_columns_scratch;

/* Tiles that the block meets: of queries i <= n, ending before row_end[i]; of keys likewise. */
typedef struct qkvi_columns_tiles {
    int n_rows, n_cols;
    int row_end[QKVI_QUERY_BLOCK], col_end[QKVI_KEY_BLOCK];
    int64_t row[QKVI_QUERY_BLOCK], col[QKVI_KEY_BLOCK]; /* where its sum is: mass[row + col] */
    double *mass;
    float *peak;
} qkvi_columns_tiles;

typedef struct qkvi_columns {
    const qkvi_attend *a; /* q, k, mask, scale, softcap, scratch with begin, end and panels */
    qkvi_columns_scratch *own;
    int64_t i0, key0;
    int64_t from, to; /* keys of the block that some query may see; from is a multiple of 32 */
    const float *lse, *weights; /* weights NULL: 1 */
    int64_t lse_row, weights_row;
    bool all; /* more than received; p stay in scratch->s */
    float tiny;

    const qkvi_columns_tiles *tiles; /* NULL: none */
    double *diagonal;                /* [n_diagonals], added to; NULL: none */
    int64_t *diagonal_rows;
    int64_t n_diagonals, first; /* query 0 and key 0 of the block are on this diagonal */
} qkvi_columns;

#endif
