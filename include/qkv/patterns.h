/**
 * qkv: what follows from single weights, at any length: the divergence of two heads, attention
 * rollout through several layers, and the norms of transformed values. Weights are those of
 * qkv/columns.h. They are computed a few rows at a time, or only their sums are, so no array of
 * len_q x len_k is stored. The one exception is qkv_inspect_rollout_map, whose result is one.
 *
 * Experimental: see docs/api.md, Stability.
 */
#ifndef QKV_PATTERNS_H
#define QKV_PATTERNS_H

#include "qkv/columns.h"
#include "qkv/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Head h of batch b of a call of attention, with the arguments of its forward pass. Made by
 * qkv_head_view_init().
 */
typedef struct qkv_head_view {
    size_t struct_size;
    const qkv_attention_desc *desc;
    const void *q, *k;
    const float *lse;
    int64_t b, h;
} qkv_head_view;

QKV_DEFINE_INIT(qkv_head_view)

/* ---- Two heads ------------------------------------------------------------------------------- */

/** Made by qkv_divergence_init(). */
typedef struct qkv_divergence {
    size_t struct_size;
    double sum, mean; /* of JS over the rows, in nats; that of a row is at most ln 2 */
    int64_t n_rows, n_left_out;
} qkv_divergence;

QKV_DEFINE_INIT(qkv_divergence)

/**
 * Computes the Jensen-Shannon divergence of the rows of two heads. It is the distance between heads
 * of Clark et al. (2019), section 6:
 *     JS[i] = 1/2 sum_j (p[j] ln(p[j] / m[j]) + g[j] ln(g[j] / m[j]))    with m = (p + g) / 2
 *
 * p and g are the weights of the keys. They are divided by their sum, which takes out the weight of
 * a sink, and then smoothed: over n keys p becomes (1 - s) p + s / n.
 *
 * The heads may be of different calls, layers or models. Their batches must agree in the number
 * of queries and of keys. A row is left out if in either head it sees no key, is NaN, or has all of
 * its weight on a sink.
 *
 * Accuracy: that of the weights. Sums are in double, in the order of keys, then of rows.
 * Memory: two buffers of 16 rows each, or of 2^20 weights if these are more.
 * Threads: those of ctx.
 *
 * @param smoothing  s, 0 to 1. Clark et al. take 0.001.
 * @param rows       NULL, or [queries of the batch]: receives JS of each row, NaN for those left
 *                   out.
 * @param call       NULL: the defaults. progress counts rows; workspace is ignored.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_SHAPE for different lengths; errors of
 *         qkv_attention_weights; QKV_ERR_MEMORY; QKV_ERR_CANCELLED.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_divergence(qkv_ctx *ctx, const qkv_head_view *x,
                                                        const qkv_head_view *y, double smoothing,
                                                        double *rows, qkv_divergence *divergence,
                                                        const qkv_call_options *call,
                                                        qkv_error *error);

/* ---- Several layers -------------------------------------------------------------------------- */

/** What stands for all heads of a layer in a rollout. */
typedef enum qkv_rollout_heads {
    QKV_ROLLOUT_MEAN = 0,
    /* The largest, or the smallest, weight of any head, cell by cell. */
    QKV_ROLLOUT_MAX = 1,
    QKV_ROLLOUT_MIN = 2
} qkv_rollout_heads;

/**
 * One layer of attention rollout (Abnar and Zuidema 2020), from its output to its input:
 *     MEAN        y[j] = 1/2 mean_h sum_i x[i] p[h][i][j] + 1/2 x[j]
 *     MAX, MIN    y[j] = sum_i x[i] (f[i][j] + (i = j)) / (1 + sum_j f[i][j]),
 *                 f[i][j] = max_h p[h][i][j] or min_h p[h][i][j]
 *
 * The paper has MEAN. MAX follows a key that any head looks at, MIN only what all heads look at.
 * Queries and keys must be the same tokens: len_q = len_k, no offset.
 *
 * Special values: a row that sees no key in a head (lse = -infinity, or at or beyond q_len) keeps
 *     what it would give in that head. With MEAN the weight of a sink is lost; with MAX and MIN the
 *     division shares it out among the keys and the token itself. A row that is NaN makes all y of
 *     its batch NaN, unless its x[i] is 0.
 * Accuracy: sums over heads, and over rows of MAX and MIN, are in double.
 * Memory: a float for each row of each head; of MAX and MIN two buffers of at most 512 rows or
 *     2^20 weights, and a double for each row of a batch.
 * Threads: those of ctx.
 *
 * @param heads  what stands for all heads.
 * @param x      [n_batch][len_q], dense; of packed sequences [rows].
 * @param y      the same shape; receives the result. It may be x.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_SHAPE; errors of qkv_attention_columns_pass, whose
 *         row_weights is x, or of qkv_attention_weights; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_rollout_step(
    qkv_ctx *ctx, const qkv_attention_desc *desc, const void *q, const void *k, const float *lse,
    qkv_rollout_heads heads, const float *x, float *y, qkv_error *error);

/**
 * Computes by rollout how much of each input token is in some output tokens, through all layers of
 * a run that captured: the mean over the tokens [first, end), in one walk. It begins with
 * x = 1 / (end - first) for each of them, and takes a step for each layer, from the last to the
 * first. The result sums to 1.
 *
 * @param b         the input.
 * @param first     the first output token.
 * @param end       the token after the last one; first + 1: one token alone.
 * @param heads     what stands for all heads of a layer.
 * @param received  [n] of input b; receives the result.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_rollout(qkv_ctx *ctx, const qkv_model *model,
                                                     const qkv_run *run, int64_t b, int64_t first,
                                                     int64_t end, qkv_rollout_heads heads,
                                                     float *received, qkv_error *error);

/**
 * Computes the rollout of all tokens of an input, through all layers of a run that captured. Row i
 * of the map is what qkv_inspect_rollout computes of token i; rows sum to 1. Of a decoder over an
 * encoder (QKV_DECODER) it is that of its self-attention: what its cross-attention adds is left
 * out.
 *
 * Special values: as qkv_inspect_rollout_step, but only the rows of tokens that see a row that is
 *     NaN are NaN.
 * Accuracy: sums over tokens are in double, rounded to float after each layer.
 * Determinism: the same bits for any threads and instruction set.
 * Memory: n^2 floats beside the map, and two blocks of at most 512 rows.
 * Time: n^3 multiplications for each layer, beside those of its weights.
 * Threads: those of ctx.
 *
 * @param which  QKV_SELF or QKV_DECODER.
 * @param b      the input.
 * @param heads  what stands for all heads of a layer.
 * @param map    [n][n]: a row for each token after all layers, a column for each of the input.
 * @return QKV_OK; QKV_ERR_ARGUMENT; QKV_ERR_UNSUPPORTED for QKV_CROSS, whose queries and keys are
 *         of two texts; QKV_ERR_LIMIT for more than 2^28 cells; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_rollout_map(qkv_ctx *ctx, const qkv_model *model,
                                                         const qkv_run *run,
                                                         qkv_attention_kind which, int64_t b,
                                                         qkv_rollout_heads heads, float *map,
                                                         qkv_error *error);

/* ---- What heads move ------------------------------------------------------------------------- */

/**
 * Computes the norms of the transformed vectors of a layer's keys, by which weights are multiplied
 * in the norm-based analysis of Kobayashi et al. (2020). Head h adds to the token of query i
 *     sum_j p[h][i][j] f_h(x_j),    f_h(x) = (x W_V + b_V) W_O         its channels of both
 *     norms[h][j] = |f_h(x_j)|      and |p f(x)| = p[h][i][j] norms[h][j]
 *
 * x is what the layer's attention reads; for QKV_CROSS that is the encoder's output. f has no bias
 * of the output projection. Where a model norms or scales what attention adds (Gemma 2, DINO), f is
 * taken before that. Query heads that share values differ in W_O, so each has norms of its own.
 *
 * Accuracy: values have the bits of the run, unless an encoder with weights in bf16 rounds its own
 *     to bf16. Norms are by |W v|^2 = v^T (W^T W) v in double: within 1e-7 |W| |v|.
 * Determinism: the same bits for any threads; within a class of arithmetic for any instruction set.
 * Memory: the output projection as floats, the values, and head_dim^2 doubles for each head.
 * Threads: those of ctx.
 * Source: Kobayashi, Kuribayashi, Yokoi and Inui (2020), "Attention is not only a weight: analyzing
 *     transformers with vector norms", section 2.
 *
 * @param run    was made with QKV_RUN_CAPTURE | QKV_RUN_HIDDEN.
 * @param b      the input.
 * @param norms  [n_heads][n_keys].
 * @return QKV_OK; QKV_ERR_ARGUMENT for NULL, an index out of range, or a run without what is
 *         needed; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_inspect_norms(qkv_ctx *ctx, const qkv_model *model,
                                                   const qkv_run *run, qkv_attention_kind which,
                                                   int64_t b, int64_t layer, float *norms,
                                                   qkv_error *error);

#ifdef __cplusplus
}
#endif

#endif
