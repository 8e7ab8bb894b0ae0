/**
 * qkv: statistics of attention weights, at any length, from the forward pass or decode itself.
 *
 *     qkv_attention_stats stats;
 *     qkv_attention_stats_contiguous(&stats, &desc);
 *     stats.entropy = entropy;                     // [n_batch][n_heads][len_q]
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
 * Statistics of its rows that qkv_attention_forward or qkv_attention_decode writes. A NULL array is
 * not written. With s and lse as in qkv_attention_forward, over the keys j that query i sees with a
 * score above -infinity:
 *     p[j] = exp(s[j] - lse)      the weight, before dropout
 *     w[j] = p[j] / sum_j p[j]    the same without a sink
 *     d[j] = |i + q_offset - j|
 *
 *     largest               max_j p[j] (Voita et al. 2019)
 *     entropy               H = -sum_j w[j] log w[j], in nats, 0 to log n_seen
 *     effective_keys        1 / sum_j w[j]^2, 1 to n_seen (Renyi order 2)
 *     mean_distance         sum_j w[j] d[j], in keys
 *     mean_square_distance  sum_j w[j] d[j]^2
 *     logit_mean            mean of s[j]
 *     logit_variance        mean square deviation of s[j]
 *     logit_largest         max |s[j]|
 *     n_seen                the number of these keys
 *     top_keys, top_weights the top_k keys with the greatest scores, in falling order, and their
 *                           p[j]. Of equal scores the smaller j comes first. Missing ones are -1
 *                           and 0
 *     top_scores            the order of that list: s[j], or, where scores are <q[i], k[j]> times
 *                           the scale, this product with the sign of the scale. Missing ones:
 *                           -infinity
 *     class_mass            sum of p[j] over keys with classes[b][j] == c, for c < n_classes
 *     offset_mass           sum of p[j] over keys with
 *                           offsets[n] <= j - (i + q_offset) < offsets[n + 1].
 *                           { -1, 0, 1, 2 }: the previous key, the own one, the next
 *     weighted_mass         sum_j p[j] key_weights[j]; key_weights may be norms |v[j] W_O|
 *                           (Kobayashi et al. 2020)
 *     same_token            sum of p[j] over keys with tokens_k[j] == tokens_q[i],
 *                           j != i + q_offset
 *     duplicate             the same over j < i + q_offset
 *     induction             sum of p[j] over keys with tokens_k[j - 1] == tokens_q[i],
 *                           1 <= j <= i + q_offset (Olsson et al. 2022)
 *
 * Shapes: those of lse, [n_batch][n_heads][len_q], with the strides of batch, head and row in
 *     `stride`. Lists and masses have top_k, n_classes or n_offsets numbers, dense, for each row;
 *     `stride` counts rows. n_empty_rows and n_nan_rows are [n_batch][n_heads], dense. classes,
 *     tokens and key_weights count from the beginning of a sequence, as seg_q and seg_k do. A class
 *     of n_classes or more is none. Rows from q_len on are neither written nor counted. key_weights
 *     must be finite. In decode, keys are numbered by their place in the sequence, in pages and
 *     rings, too.
 * Special values: a row without a key is all 0, its list -1, and is counted in n_empty_rows: leave
 *     it out of means. So is a row whose keys are all at -infinity beside a sink. A row whose lse
 *     is NaN is all NaN, its list -1, n_seen -1, and is counted in n_nan_rows.
 * Accuracy, against exact sums over the same scores: entropy 2e-5 at 8,192 keys, also where scores
 *     share an offset of 100. Effective_keys, masses and distances: 1e-6 relative, plus 2^-24 times
 *     the scores in log2 units. Lists are exact. logit_variance: 1e-6 times the mean square of
 *     s - s0. There s0 is the greatest s of the first 256 keys; in decode, of the first 512 of a
 *     split of 1,024.
 * Determinism: as o. o and lse have the bits of a call without statistics.
 * Memory: qkv_attention_workspace grows by a constant for each thread. In decode each row of a
 *     split needs as much as is requested of a row (docs/numerics.md).
 * Errors: QKV_ERR_ARGUMENT and QKV_ERR_STRIDE as for other arrays. backward returns
 *     QKV_ERR_UNSUPPORTED. merge ignores statistics.
 * Source: docs/statistics.md.
 */
struct qkv_attention_stats {
    size_t struct_size;
    int64_t stride[3];
    float *largest, *entropy, *effective_keys;
    float *mean_distance, *mean_square_distance;
    float *logit_mean, *logit_variance, *logit_largest;
    int64_t *n_seen;
    /* 0 to QKV_STATS_MAX_TOP */
    int64_t top_k;
    int64_t *top_keys;
    float *top_weights, *top_scores;
    /* 0 to QKV_STATS_MAX_CLASSES */
    int64_t n_classes;
    /* [n_batch][len_k] */
    const uint8_t *classes;
    /* Stride of the batch; 0 repeats. That of keys is 1. */
    int64_t classes_stride;
    float *class_mass;
    /* 0 to QKV_STATS_MAX_OFFSETS */
    int64_t n_offsets;
    /* [n_offsets + 1], never falling */
    const int64_t *offsets;
    float *offset_mass;
    /* [n_batch][n_heads][len_k] */
    const float *key_weights;
    /* Strides of batch and head; 0 repeats. That of keys is 1. */
    int64_t key_weights_stride[2];
    float *weighted_mass;
    /* [n_batch][len_q] and [n_batch][len_k] */
    const int32_t *tokens_q, *tokens_k;
    /* Strides of the batch; 0 repeats. */
    int64_t tokens_q_stride, tokens_k_stride;
    float *same_token, *duplicate, *induction;
    int64_t *n_empty_rows, *n_nan_rows;
};

/** What qkv_attention_stats_contiguous calls: it fills the struct_size bytes that stats has. */
QKV_API void qkv_attention_stats_fill(qkv_attention_stats *stats, const qkv_attention_desc *desc);

/**
 * Requests no statistic: every pointer is NULL and every number 0. Strides are those of rows as
 * dense as the lse of qkv_attention_desc_contiguous. Nothing is checked here.
 */
static inline void qkv_attention_stats_contiguous(qkv_attention_stats *stats,
                                                  const qkv_attention_desc *desc) {
    if (!stats || !desc) return;
    stats->struct_size = sizeof *stats;
    qkv_attention_stats_fill(stats, desc);
}

/**
 * Merges statistics of the same rows over disjoint sets of keys into those over their union. The
 * sets may be shards of the keys, or parts of a long cache. With lse = log sum_n exp(lse[n]), as
 * qkv_attention_merge computes it, and the share a[n] = exp(lse[n] - lse) of part n:
 *
 *     masses, weighted_mass, same_token, distances    sum_n a[n] x[n]
 *     largest                                         max_n a[n] x[n]
 *     entropy                                         sum_n a[n] (H[n] - log a[n])
 *     effective_keys                                  1 / sum_n (a[n]^2 / N[n])
 *     logit_mean, logit_variance, logit_largest, n_seen    over the keys of all parts
 *     top_keys, top_weights, top_scores               the greatest of all lists; weights times a[n]
 *     n_empty_rows, n_nan_rows                        rows that are so in the union
 *
 * The pointers of `stats` say what is written. Each part must have the same pointers. It also needs
 * n_seen for moments of scores, logit_mean for logit_variance, top_keys and top_scores for lists.
 * top_k, n_classes and n_offsets are the same in all. Strides are each struct's own; lse_parts have
 * those of desc, whose other fields say which rows there are.
 *
 * Distances and offsets are those that a part computed. For a shard that begins at key `first`, a
 * q_offset less by `first` makes them those of the whole. induction lacks the first key of a shard.
 *
 * Special values: a part with lse = -infinity adds nothing. A NaN among lse makes the row NaN.
 * Accuracy: 1e-6 relative, plus 2^-24 |lse|. Lists are exact if the scores of parts are those of
 *     the whole.
 * Overlap: the result must not overlap any array.
 * Determinism: parts are added in the order given, in double, with our own exp and log: the same
 *     bits for any threads and processor.
 * Memory: none. Threads: those of the context.
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
