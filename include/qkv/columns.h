/**
 * qkv: attention seen from the keys, and as a map, at any length. Statistics of columns, diagonals and
 * tiles of the matrix of weights, which is never stored, and any rectangle of it.
 *
 *     qkv_attention_columns columns;
 *     qkv_attention_forward(ctx, &desc, q, k, v, o, lse, NULL);
 *     qkv_attention_columns_contiguous(&columns, &desc);
 *     columns.received = received;                  [n_batch][n_heads][len_k]
 *     if (qkv_attention_columns_pass(ctx, &desc, q, k, lse, &columns, NULL) != QKV_OK)
 *         fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
 */
#ifndef QKV_COLUMNS_H
#define QKV_COLUMNS_H

#include "qkv/qkv.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    QKV_COLUMNS_MAX_TILES = 1024,   /* of a map, in either direction */
    QKV_WEIGHTS_MAX_CELLS = 1 << 26 /* of a rectangle: 256 MiB of floats */
};

/**
 * What a pass over the columns writes: those whose array is not NULL. p[i][j] = exp(s[i][j] - lse[i])
 * is the weight of key j for query i, as it enters o but for dropout, which comes after it. A row takes
 * part if it sees a key and is not NaN; it sees the keys that the rules let it see with a score above
 * -infinity. Sums and means are over rows that take part.
 *
 *   of a key
 *     received       sum_i x[i] p[i][j]; x = row_weights, or 1 without: attention received (H2O); with x
 *                    = 1 on the last rows and 0 elsewhere the vote of SnapKV; xA, the step of rollout
 *     n_queries      how many rows see it. received / n_queries is its fair share under a causal mask
 *     largest, largest_query     max_i p[i][j] and the smallest i that has it; 0 and -1 if no weight is
 *                    above 0
 *     entropy        H = -sum_i w[i] log w[i] of w[i] = p[i][j] / sum_i p[i][j], in nats; 0 without weight
 *   of a head
 *     diagonal       entry n: mean of p[i][j] over the rows that see the key j = i + q_offset - delta,
 *                    delta = first_diagonal + n; 0 where none does. delta = 1 is the previous key;
 *                    diagonal_rows: how many rows these are
 *     tile_mass      [n_tiles_q][n_tiles_k], (1 / tile_rows[a]) sum over rows i of tile a and keys j of
 *                    tile b of p[i][j]: rows of the map sum to 1 (less a sink's weight). Tile a of R
 *                    of n rows is floor(a n / R) ... floor((a + 1) n / R) - 1, n the batch's own
 *                    number of queries (q_len) or keys (kv_len); tile_rows: those that take part
 *     tile_peak      the greatest p[i][j] of a tile
 *     n_cells, n_tiny    pairs of a row and a key that it sees; those with p < tiny
 *     n_empty_rows, n_nan_rows   rows that do not take part, since they see no key; since lse is NaN or
 *                    +infinity
 *
 * Shapes: of keys [n_batch][n_heads][len_k], with the strides of batch, head and key in `stride`;
 *     row_weights as lse, with row_weights_stride, 0 broadcasts. Packed sequences: stride[0] = 0, as k.
 *     Others are dense: diagonals [n_batch][n_heads][n_diagonals], tiles [n_batch][n_heads][n_tiles_q]
 *     [n_tiles_k] ([n_tiles_q] for tile_rows), counts [n_batch][n_heads]. Keys that nobody sees get 0.
 * Types: arithmetic, and so the scores, are those of forward with the same descriptor, bit by bit.
 * Accuracy: a weight has a relative error of 2^-24 (|lse| + 8), which is what a float lse leaves of it,
 *     beside that of forward's scores; it is at most 1. Sums lose less than 1e-6 of themselves more,
 *     entropy less than 2e-5.
 * Determinism: same bits for any threads and instruction set, whatever else is asked for.
 */
typedef struct qkv_attention_columns {
    size_t struct_size; /* set by qkv_attention_columns_contiguous */
    int64_t stride[3];
    const float *row_weights; /* NULL: 1. Finite */
    int64_t row_weights_stride[3];
    float *received;
    int64_t *n_queries;
    float *largest;
    int64_t *largest_query;
    float *entropy;
    int64_t first_diagonal, n_diagonals;
    float *diagonal;
    int64_t *diagonal_rows;
    int64_t n_tiles_q, n_tiles_k; /* 0 ... QKV_COLUMNS_MAX_TILES */
    float *tile_mass, *tile_peak;
    int64_t *tile_rows;
    float tiny; /* not negative */
    int64_t *n_cells, *n_tiny;
    int64_t *n_empty_rows, *n_nan_rows;
} qkv_attention_columns;

/**
 * Asks for nothing yet: every pointer NULL, strides dense in the logical shapes (of packed sequences: in
 * the rows that cu_seqlens, if it is set already, ends with), and all diagonals of q_offset (not of
 * q_offsets, which differ: choose then): first_diagonal = q_offset - len_k + 1, n_diagonals = len_q +
 * len_k - 1. Neither pointer may be NULL; nothing is checked here.
 */
QKV_API void qkv_attention_columns_contiguous(qkv_attention_columns *columns,
                                              const qkv_attention_desc *desc);

/**
 * Computes the scores once more and, from lse, each weight once. Any mask, type, offset, head layout and
 * packing that forward takes; v, o and dropout of the descriptor are not used.
 *
 * lse: that of qkv_attention_forward (or of a merge over all keys) with the same descriptor.
 * Overlap: outputs must overlap nothing.
 * Memory: qkv_attention_columns_workspace (docs/numerics.md): O(threads); with diagonals 128 bytes for
 *     each of n_diagonals, with tiles 12 n_tiles_q (len_k / 256 + n_tiles_k + 1), with sinks one for each
 *     query, of every query head under way: those of as many key/value heads as there are threads, or
 *     as have 4 MiB of it together.
 * Threads: the context's, who share out blocks of 256 keys; with diagonals eight of them share a head.
 * @param call  nullable.
 * @return QKV_OK, or an error: nothing is written then (QKV_ERR_CANCELLED excepted), and
 *         qkv_ctx_message(ctx) names field, value and rule. QKV_ERR_UNSUPPORTED with QKV_SET_STATS.
 * Source: docs/statistics.md.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_columns_pass(
    qkv_ctx *ctx, const qkv_attention_desc *desc, const void *q, const void *k, const float *lse,
    const qkv_attention_columns *columns, const qkv_call_options *call);

/** Bytes of workspace that the pass needs; pointers of columns only say what is asked for. */
QKV_API QKV_NODISCARD qkv_status
qkv_attention_columns_workspace(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                const qkv_attention_columns *columns, size_t *bytes);

/**
 * The weights of the queries i0 ... i1 - 1 and the keys j0 ... j1 - 1 of head h of batch b, the ones
 * that the pass sums, with their bits:
 *     p[(i - i0) * p_row + (j - j0)] = exp(s[i][j] - lse[i]); 0 where i may not see j
 * A row that is NaN in lse is all NaN, as far as it is asked for; a row at or beyond q_len is 0.
 *
 * @param p_row  elements from one row to the next, at least j1 - j0.
 * @param call   nullable; its workspace must hold qkv_attention_columns_workspace for a struct that
 *               asks for nothing.
 * @return QKV_ERR_LIMIT for more than QKV_WEIGHTS_MAX_CELLS cells: what qkv_attention_columns_pass sums
 *         (columns, diagonals, a map of tiles) and QKV_SET_STATS (rows) have no such limit.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_weights(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                                       const void *q, const void *k,
                                                       const float *lse, int64_t b, int64_t h,
                                                       int64_t i0, int64_t i1, int64_t j0,
                                                       int64_t j1, float *p, int64_t p_row,
                                                       const qkv_call_options *call);

/**
 * The next coarser level of a pyramid of maps, of one head: ceil(n_tiles_q / 2) by ceil(n_tiles_k / 2)
 * tiles, each of two by two (at an odd end of one row or column):
 *     mass   mean over the two rows, weighted by their numbers of rows, of the sum over the two columns
 *     peak   the greatest of the four
 *     rows   the sum of the two
 * Rows of mass sum to what they summed to. Dense; each pair of arrays nullable together, but mass needs
 * rows. An output may be its own input, and must overlap nothing else; nothing is checked. Sizes are
 * those of the finer level.
 */
QKV_API void qkv_attention_tiles_halve(int64_t n_tiles_q, int64_t n_tiles_k, const float *mass,
                                       const float *peak, const int64_t *rows, float *half_mass,
                                       float *half_peak, int64_t *half_rows);

#ifdef __cplusplus
}
#endif

#endif
