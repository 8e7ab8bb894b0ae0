/**
 * qkv: what a head does, cell by cell, at any length: how far two heads are apart, how well one
 * fits a pattern, and what flows through several layers. Weights are those of qkv/columns.h, a few rows
 * at a time or as sums; nothing of len_q x len_k is stored.
 */
#ifndef QKV_PATTERNS_H
#define QKV_PATTERNS_H

#include "qkv/columns.h"
#include "qkv/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One head of a call of attention, after its forward pass: arguments as those of that call. */
typedef struct qkv_head_view {
    const qkv_attention_desc *desc;
    const void *q, *k;
    const float *lse;
    int64_t b, h;
} qkv_head_view;

/* ---- Two heads ------------------------------------------------------------------------------- */

typedef struct qkv_divergence {
    double sum, mean; /* over the rows; nats, at most ln 2 each */
    int64_t n_rows, n_left_out;
} qkv_divergence;

/**
 * Jensen-Shannon divergence of the rows of two heads, the distance between heads of Clark et al. (2019),
 * section 6: with p and g the weights that keys have among themselves (a sink has none), smoothed to
 * (1 - s) p + s / n of n keys, m = (p + g) / 2,
 *     JS[i] = 1/2 sum_j (p[j] ln(p[j] / m[j]) + g[j] ln(g[j] / m[j]))
 *
 *   rows  [queries of the batch]: JS of each; NaN for those left out; nullable   written
 *
 * The heads may be of different calls, layers or models, with as many queries and keys in their batch.
 * Rows that see no key (or whose keys have no weight beside a sink), or are NaN, in either head are left
 * out.
 * Accuracy: that of the weights; sums are in double, in the order of keys, then of rows.
 * Memory: two buffers of 16 rows, or of 2^20 weights if these are more. Threads: those of ctx.
 *
 * @param smoothing  s, 0 ... 1; Clark et al. take 0.001.
 * @param call, error  nullable. progress counts rows; workspace is not used.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_SHAPE for different lengths; what qkv_attention_weights
 *         returns; QKV_ERR_MEMORY; QKV_ERR_CANCELLED.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_divergence(qkv_ctx *ctx, const qkv_head_view *x,
                                                        const qkv_head_view *y, double smoothing,
                                                        double *rows, qkv_divergence *divergence,
                                                        const qkv_call_options *call,
                                                        qkv_error *error);

/* ---- A head and a pattern -------------------------------------------------------------------- */

/** D[i][j] = 1 where, with i the position of the query among the keys (query + q_offset), */
typedef enum qkv_pattern_kind {
    QKV_PATTERN_PREVIOUS = 0,  /* j = i - 1 */
    QKV_PATTERN_DUPLICATE = 1, /* j < i and id[j] = id[i] */
    QKV_PATTERN_INDUCTION = 2, /* 1 <= j <= i and id[j - 1] = id[i] */
    QKV_PATTERN_SAME = 3       /* j != i and id[j] = id[i] */
} qkv_pattern_kind;

typedef struct qkv_pattern_match {
    double mul;       /* sum A D / sum A: the share of weight on the pattern */
    double abs;       /* 1 - (1 / n_rows) sum |A - D| */
    double on, total; /* sum A D, sum A */
    int64_t n_rows, n_left_out;
    int64_t n_cells; /* of the pattern, in rows that take part */
} qkv_pattern_match;

/**
 * How well a head fits a pattern: both scores of TransformerLens' head detector, for any mask, in O(len)
 * memory. Rows that
 * see no key, are NaN, or stand at no key are left out. 0 / 0 is 0.
 *
 *   ids  [keys of the batch]: tokens; not read for QKV_PATTERN_PREVIOUS
 *
 * Accuracy, memory, threads, errors: as qkv_inspect_divergence, one buffer.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_pattern(qkv_ctx *ctx, const qkv_head_view *head,
                                                     qkv_pattern_kind kind, const int32_t *ids,
                                                     qkv_pattern_match *match,
                                                     const qkv_call_options *call,
                                                     qkv_error *error);

/* ---- What is moved, not where a head looks ----------------------------------------------------- */

/** Most keys of a list of qkv_inspect_weighted_top. */
enum { QKV_WEIGHTED_MAX_TOP = 64 };

/**
 * The keys of each query with the greatest p[i][j] g[j], as with g[j] = |v[j] W_O| of Kobayashi et al.
 * (2020), who measure what is moved: a key with much weight may have a value of next to no length.
 * weighted_mass of qkv/stats.h is the sum over all keys.
 *
 *   key_weights  [keys of the batch]: g, finite, at least 0                              read
 *   keys, values [queries of the batch][n_top]: the greatest first, of equal ones the smaller key; only
 *                products above 0, where there are fewer: -1 and 0. A row that is NaN: -1 and NaN   written
 *
 * Accuracy: that of the weights; a product is rounded once. Determinism: same bits for any threads.
 * Memory, threads, call: as qkv_inspect_divergence, one buffer.
 *
 * @param n_top  1 ... QKV_WEIGHTED_MAX_TOP.
 * @return QKV_OK; QKV_ERR_ARGUMENT, what qkv_attention_weights returns, QKV_ERR_MEMORY, QKV_ERR_CANCELLED:
 *         lists may then be partly written.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_weighted_top(qkv_ctx *ctx, const qkv_head_view *head,
                                                          const float *key_weights, int64_t n_top,
                                                          int64_t *keys, float *values,
                                                          const qkv_call_options *call,
                                                          qkv_error *error);

/* ---- Several layers -------------------------------------------------------------------------- */

/**
 * One layer of attention rollout (Abnar and Zuidema 2020), from its output to its input:
 *     y[j] = 1/2 mean_h sum_i x[i] p[h][i][j] + 1/2 x[j]
 * where queries and keys are the same tokens: len_q = len_k, no offset. A row that sees no key in a head
 * (lse = -infinity, or at or beyond q_len) gives all it has to itself there; what a sink takes is gone.
 *
 *   x, y  [n_batch][len_q], dense; packed sequences: [rows]. y may be x          read, written
 *
 * Accuracy: sums over heads are in double. Memory: a float for every row of every head. Threads: those of
 * ctx. A row that is NaN and has x[i] other than 0 makes all of its batch's y NaN.
 * @return QKV_OK; QKV_ERR_SHAPE; what qkv_attention_columns_pass returns (x is its row_weights);
 *         QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_rollout_step(qkv_ctx *ctx,
                                                          const qkv_attention_desc *desc,
                                                          const void *q, const void *k,
                                                          const float *lse, const float *x,
                                                          float *y, qkv_error *error);

/**
 * How much of each input token is in the output of one, by rollout through all layers of a run that
 * captured: x = 1 at `position`, then a step for each layer from the last to the first. The result sums
 * to 1.
 *
 *   received  [n] of input b                                                    written
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_rollout(qkv_ctx *ctx, const qkv_model *model,
                                                     const qkv_run *run, int64_t b,
                                                     int64_t position, float *received,
                                                     qkv_error *error);

/* ---- Votes ----------------------------------------------------------------------------------- */

typedef enum qkv_pool_kind { QKV_POOL_MEAN = 0, QKV_POOL_MAX = 1 } qkv_pool_kind;

/**
 * Votes of keys, pooled over their neighbours, as SnapKV does before it chooses keys: pooled[j] is the mean
 * (over `width`, zeros beyond the ends) or the greatest of votes[j - width / 2] ... votes[j + width / 2].
 * width is odd and at least 1. NaN stays where it reaches. pooled must not overlap votes.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_pool(int64_t n, const float *votes, int64_t width,
                                                  qkv_pool_kind kind, float *pooled,
                                                  qkv_error *error);

#ifdef __cplusplus
}
#endif

#endif
