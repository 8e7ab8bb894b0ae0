/**
 * qkv: attention seen from the keys, and as a map, at any length. It gives statistics of columns,
 * diagonals and tiles of the weight matrix, and any rectangle of it. The matrix is never stored.
 *
 *     qkv_attention_columns columns;
 *     qkv_attention_columns_contiguous(&columns, &desc);
 *     columns.received = received;                  // [n_batch][n_heads][len_k]
 *     if (qkv_attention_forward(ctx, &desc, q, k, v, o, lse, NULL) != QKV_OK ||
 *         qkv_attention_columns_pass(ctx, &desc, q, k, lse, &columns, NULL) != QKV_OK)
 *         fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
 */
#ifndef QKV_COLUMNS_H
#define QKV_COLUMNS_H

#include "qkv/qkv.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /* Tiles of a map, in either direction. */
    QKV_COLUMNS_MAX_TILES = 1024,
    /* Weights of a rectangle: 256 MiB of floats. */
    QKV_WEIGHTS_MAX_CELLS = 1 << 26
};

/**
 * The outputs of a pass over the columns. A NULL array is not written.
 *
 * p[i][j] = exp(s[i][j] - lse[i]) is the weight of key j for query i, before dropout. A query sees
 * the keys that the rules allow and whose score is above -infinity. A row takes part if it sees a
 * key and is not NaN. Sums and means are over rows that take part.
 *
 *   of a key
 *     received       sum_i x[i] p[i][j], with x = row_weights, or 1 (H2O: Zhang et al. 2023). x = 1
 *                    on the last rows and 0 elsewhere is the vote of SnapKV; xA is a step of
 *                    rollout
 *     n_queries      rows that see the key. Under a causal mask compare received / n_queries
 *     largest        max_i p[i][j], 0 if no weight is above 0
 *     largest_query  the smallest i that has it, or -1
 *     entropy        -sum_i w[i] log w[i] with w[i] = p[i][j] / sum_i p[i][j], in nats; 0 without
 *                    weight
 *   of a head
 *     diagonal       entry n: mean of p[i][i + q_offset - delta] with delta = first_diagonal + n,
 *                    over the rows that see this key; 0 without such a row. delta = 1 is the
 *                    previous key
 *     diagonal_rows  the number of these rows
 *     tile_mass      [n_tiles_q][n_tiles_k]: (1 / tile_rows[a]) times the sum of p[i][j] over rows
 *                    i of tile a and keys j of tile b. Rows of the map sum to 1, less the weight of
 *                    a sink
 *     tile_rows      rows of a tile that take part. Tile a of R has rows floor(a n / R) to
 *                    floor((a + 1) n / R) - 1 of the batch's own n queries (q_len) or keys (kv_len)
 *     tile_peak      the greatest p[i][j] of a tile
 *     n_cells        pairs of a row and a key that it sees
 *     n_tiny         those with p < tiny
 *     n_empty_rows   rows that see no key
 *     n_nan_rows     rows whose lse is NaN or +infinity
 *
 * Shapes: keys [n_batch][n_heads][len_k], with the strides of batch, head and key in `stride`.
 *     row_weights has the shape of lse, with row_weights_stride, where 0 repeats. Packed sequences:
 *     stride[0] = 0. All others are dense: diagonals [n_batch][n_heads][n_diagonals], tiles
 *     [n_batch][n_heads][n_tiles_q][n_tiles_k], tile_rows [n_batch][n_heads][n_tiles_q], counts
 *     [n_batch][n_heads]. Keys that no query sees get 0.
 * Types: the arithmetic, and so the scores, have the bits of forward with the same descriptor.
 * Accuracy: a weight has a relative error of 2^-24 (|lse| + 8), beside that of forward's scores. It
 *     is at most 1. Sums lose at most 1e-6 of themselves more, entropy 2e-5.
 * Determinism: as forward, class included, whatever else is requested.
 */
typedef struct qkv_attention_columns {
    size_t struct_size;
    int64_t stride[3];
    /* NULL: 1. Otherwise finite. */
    const float *row_weights;
    int64_t row_weights_stride[3];
    float *received;
    int64_t *n_queries;
    float *largest;
    int64_t *largest_query;
    float *entropy;
    int64_t first_diagonal, n_diagonals;
    float *diagonal;
    int64_t *diagonal_rows;
    /* 0 to QKV_COLUMNS_MAX_TILES */
    int64_t n_tiles_q, n_tiles_k;
    float *tile_mass, *tile_peak;
    int64_t *tile_rows;
    /* Not negative. */
    float tiny;
    int64_t *n_cells, *n_tiny;
    int64_t *n_empty_rows, *n_nan_rows;
} qkv_attention_columns;

/** What qkv_attention_columns_contiguous calls: it fills the struct_size bytes that columns has. */
QKV_API void qkv_attention_columns_fill(qkv_attention_columns *columns,
                                        const qkv_attention_desc *desc);

/**
 * Requests no sum: every pointer is NULL. Strides are dense in the shapes of desc; of packed
 * sequences, in the rows with which cu_seqlens ends, if it is set. Diagonals are all those of
 * q_offset: first_diagonal = q_offset - len_k + 1, n_diagonals = len_q + len_k - 1. With q_offsets,
 * choose them afterwards. Nothing is checked here.
 */
static inline void qkv_attention_columns_contiguous(qkv_attention_columns *columns,
                                                    const qkv_attention_desc *desc) {
    if (!columns || !desc) return;
    columns->struct_size = sizeof *columns;
    qkv_attention_columns_fill(columns, desc);
}

/**
 * Computes the scores once more and, with lse, each weight once. It takes any mask, type, offset,
 * head layout and packing that forward takes. v, o and dropout of the descriptor are not used.
 *
 * lse: that of qkv_attention_forward, or of a merge over all keys, with the same descriptor.
 * Overlap: outputs must not overlap any array.
 * Memory: qkv_attention_columns_workspace. It grows with threads. For each head under way it has
 *     128 n_diagonals bytes more, and n_tiles_q (8 + 12 (ceil(len_k / 256) + n_tiles_k)).
 *     docs/numerics.md has the formula.
 * Threads: those of the context share blocks of 256 keys. With diagonals eight of them share a
 *     head.
 * Source: docs/statistics.md.
 *
 * @param call  NULL: the defaults.
 * @return QKV_OK, or an error: nothing is written, except after QKV_ERR_CANCELLED, and
 *         qkv_ctx_message(ctx) names field, value and rule. QKV_ERR_UNSUPPORTED with QKV_SET_STATS.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_columns_pass(
    qkv_ctx *ctx, const qkv_attention_desc *desc, const void *q, const void *k, const float *lse,
    const qkv_attention_columns *columns, const qkv_call_options *call);

/** Returns in *bytes the workspace of the pass. Pointers of columns only say what is requested. */
QKV_API QKV_NODISCARD qkv_status
qkv_attention_columns_workspace(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                const qkv_attention_columns *columns, size_t *bytes);

/**
 * Returns weights of head h of batch b, queries i0 to i1 - 1, keys j0 to j1 - 1. A row is
 * normalised by its own sum over all keys that the query sees, and the sink:
 *     p[(i - i0) * p_row + (j - j0)] = exp(s[i][j]) / (sum_t exp(s[i][t]) + exp(sink));
 *     0 where i does not see j
 * A row whose lse is NaN or +infinity is all NaN. One whose lse is -infinity is 0, and so is a row
 * at or beyond q_len. lse is not used otherwise.
 *
 * Accuracy: relative to the softmax of forward's scores 2^-22, and 2^-149 beside that, for scores
 *     of any size. The pass over columns sums exp(s - lse) with lse as a float: less exact.
 *     A row of all n keys, without a sink, sums to 1 within 2^-24 sqrt(n).
 * Determinism: as forward. A weight has the same bits in any rectangle.
 * Time: all keys that the rows see are multiplied, however few are returned.
 * Memory: 16 bytes for each row and block of 256 keys, at most 4 MiB or 6 len_k bytes, beside what
 *     a thread has.
 *
 * @param p_row  elements from one row to the next, at least j1 - j0.
 * @param call   NULL: the defaults. A workspace must hold qkv_attention_columns_workspace for a
 *               struct that requests nothing.
 * @return QKV_OK; QKV_ERR_LIMIT for more than QKV_WEIGHTS_MAX_CELLS cells. The pass over columns
 *         and QKV_SET_STATS have no such limit.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_weights(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                                       const void *q, const void *k,
                                                       const float *lse, int64_t b, int64_t h,
                                                       int64_t i0, int64_t i1, int64_t j0,
                                                       int64_t j1, float *p, int64_t p_row,
                                                       const qkv_call_options *call);

#ifdef __cplusplus
}
#endif

#endif
