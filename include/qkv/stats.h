/**
 * qkv: statistics of attention weights, at any length, from the forward pass or decode itself.
 *
 *     qkv_attention_stats stats;
 *     qkv_attention_stats_contiguous(&stats, &desc);
 *     stats.entropy = entropy;                     [n_batch][n_heads][len_q]
 *     desc.stats = &stats;
 *     desc.flags |= QKV_SET_STATS;
 *     if (qkv_attention_forward(ctx, &desc, q, k, v, o, NULL, NULL) != QKV_OK)
 *         fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
 */
#ifndef QKV_STATS_H
#define QKV_STATS_H

#include "qkv/qkv.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most keys of a list, classes of keys, and bins of offsets. */
enum { QKV_STATS_MAX_TOP = 64, QKV_STATS_MAX_CLASSES = 64, QKV_STATS_MAX_OFFSETS = 64 };

/**
 * Which statistics of its rows a call of qkv_attention_forward or qkv_attention_decode writes: those
 * whose array is not NULL. With s and lse as in qkv_attention_forward, over the keys j that query i sees
 * with a score above -infinity,
 *     p[j] = exp(s[j] - lse)      the weight; dropout comes after it
 *     w[j] = p[j] / sum_j p[j]    the same without a sink
 *     d[j] = |i + q_offset - j|
 *
 *     largest               max_j p[j]                                   what Voita et al. (2019) average
 *     entropy               H = -sum_j w[j] log w[j], in nats            0 ... log n_seen
 *     effective_keys        1 / sum_j w[j]^2                             1 ... n_seen (Renyi order 2)
 *     mean_distance         sum_j w[j] d[j], in keys
 *     mean_square_distance  sum_j w[j] d[j]^2
 *     logit_mean, logit_variance, logit_largest    of s[j]: mean, mean square deviation, max |s[j]|
 *     n_seen                how many keys these are
 *     top_keys, top_weights the top_k keys with the greatest scores, the greatest first, of equal ones
 *                           the smaller j; their p[j]. Where there are fewer: -1 and 0
 *     top_scores            what orders the list: <q[i], k[j]> with the sign of the scale where scores are
 *                           that times the scale, otherwise s[j]; -infinity where there are fewer
 *     class_mass            sum of p[j] over the keys with classes[b][j] == c, for c < n_classes
 *     offset_mass           sum of p[j] over the keys with offsets[n] <= j - (i + q_offset) <
 *                           offsets[n + 1]: { -1, 0, 1, 2 } are the previous key, its own, the next
 *     weighted_mass         sum_j p[j] key_weights[j], as with the norms |v[j] W_O| of Kobayashi et al. (2020)
 *     same_token            sum of p[j] over the keys with tokens_k[j] == tokens_q[i], j != i + q_offset
 *     duplicate             the same over j < i + q_offset
 *     induction             sum of p[j] over the keys with tokens_k[j - 1] == tokens_q[i],
 *                           1 <= j <= i + q_offset: what followed the token before (Olsson et al. 2022)
 *
 * Shapes: as lse, [n_batch][n_heads][len_q], with the strides of batch, head and row in `stride`; lists,
 *     masses of classes and of offsets have top_k, n_classes, n_offsets numbers, dense, in the place of
 *     one, and `stride` counts such places. Packed sequences: as lse. n_empty_rows and n_nan_rows are
 *     [n_batch][n_heads], dense. classes, tokens and key_weights count keys and queries as seg_k and
 *     seg_q do, from the beginning of a sequence; a class of n_classes or more is none. Rows from q_len
 *     on are not written, nor counted. key_weights must be finite. Keys of decode have the numbers that
 *     they have in their sequence, in pages and rings, too: what is listed by key has len_k entries.
 * Special values: a row without a key (or only keys at -infinity, beside a sink) is all 0, its list -1,
 *     and counted in n_empty_rows: leave it out of means. A row that is NaN in lse is all NaN, its list
 *     -1, n_seen -1, and counted in n_nan_rows.
 * Accuracy: against exact sums over the same scores. entropy 2e-5 at 8,192 keys, also where scores
 *     share an offset of 100, since it is centred; relative error of effective_keys, masses, distances
 *     1e-6 and 2^-24 times the scores in log2 units; list keys exactly. logit_variance: 1e-6 times the
 *     mean square of s - (greatest s of the first 256 keys; in decode, of the first 512 of any split of
 *     1,024 keys).
 * Determinism: as o. o and lse have the bits of a call without statistics.
 * Memory: qkv_attention_workspace grows by a constant for each thread, and
 *     qkv_attention_decode_workspace also by what is asked for of a row, for each row of a split
 *     (docs/numerics.md).
 * Errors: QKV_ERR_ARGUMENT and QKV_ERR_STRIDE for these arrays as for others; QKV_ERR_UNSUPPORTED by
 *     backward, which has none. merge does not look at them.
 * Source: docs/statistics.md.
 */
struct qkv_attention_stats {
    size_t struct_size; /* set by qkv_attention_stats_contiguous */
    int64_t stride[3];
    float *largest, *entropy, *effective_keys;
    float *mean_distance, *mean_square_distance;
    float *logit_mean, *logit_variance, *logit_largest;
    int64_t *n_seen;
    int64_t top_k; /* 0 ... QKV_STATS_MAX_TOP */
    int64_t *top_keys;
    float *top_weights, *top_scores;
    int64_t n_classes;      /* 0 ... QKV_STATS_MAX_CLASSES */
    const uint8_t *classes; /* [n_batch][len_k] */
    int64_t classes_stride; /* of the batch; keys are dense; 0 broadcasts */
    float *class_mass;
    int64_t n_offsets;      /* 0 ... QKV_STATS_MAX_OFFSETS */
    const int64_t *offsets; /* [n_offsets + 1], never falling */
    float *offset_mass;
    const float *key_weights;      /* [n_batch][n_heads][len_k] */
    int64_t key_weights_stride[2]; /* of batch and head; keys are dense; 0 broadcasts */
    float *weighted_mass;
    const int32_t *tokens_q, *tokens_k;       /* [n_batch][len_q], [n_batch][len_k] */
    int64_t tokens_q_stride, tokens_k_stride; /* of the batch; 0 broadcasts */
    float *same_token, *duplicate, *induction;
    int64_t *n_empty_rows, *n_nan_rows;
};

/**
 * Asks for nothing yet: every pointer NULL, every number 0, strides for rows as dense as lse of
 * qkv_attention_desc_contiguous. Neither pointer may be NULL; nothing is checked here.
 */
QKV_API void qkv_attention_stats_contiguous(qkv_attention_stats *stats,
                                            const qkv_attention_desc *desc);

/**
 * Joins statistics over disjoint sets of keys, of the same rows, into those over their union: of shards of
 * the keys, of runs of a long cache. With the share a[n] = exp(lse[n] - lse) of part n, lse = log sum_n
 * exp(lse[n]) as qkv_attention_merge joins it:
 *
 *     masses, weighted_mass, same_token, distances    sum_n a[n] x[n]
 *     largest                                         max_n a[n] x[n]
 *     entropy                                         sum_n a[n] (H[n] - log a[n])
 *     effective_keys                                  1 / sum_n (a[n]^2 / N[n])
 *     logit_mean, logit_variance, logit_largest, n_seen    over the keys of all parts
 *     top_keys, top_weights, top_scores               the greatest of all lists; weights times a[n]
 *     n_empty_rows, n_nan_rows                        of rows that are so in the union
 *
 * What is written is what `stats` has pointers for. Each part must have the same pointers, and: n_seen for
 * moments of scores, logit_mean for logit_variance, top_keys and top_scores for lists; the same top_k,
 * n_classes and n_offsets. Strides are each struct's own; lse_parts have the strides of desc, whose other
 * fields say which rows there are. Distances and offsets are those that a part was given: for a shard that
 * begins at key first, q_offset - first makes them those of the whole. induction lacks the first key of a
 * shard, whose token before it is in another.
 *
 * Special values: a part with lse = -infinity adds nothing; a NaN among lse makes the row NaN.
 * Accuracy: 1e-6, and 2^-24 |lse|, relative; lists exactly, if the scores of parts are those of the whole.
 * Overlap: the result must overlap nothing. Determinism: parts in the order given, in double, with
 *     exp and log of our own: same bits for any threads and processor. Memory: none. Threads: ctx's.
 *
 * @param first_keys  [n_parts], added to the keys of a part's lists; NULL: 0.
 * @return QKV_OK, or as forward; QKV_ERR_UNSUPPORTED with QKV_SET_SINKS.
 */
QKV_API QKV_NODISCARD qkv_status
qkv_attention_stats_merge(qkv_ctx *ctx, const qkv_attention_desc *desc, int n_parts,
                          const qkv_attention_stats *const *parts, const float *const *lse_parts,
                          const int64_t *first_keys, const qkv_attention_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
