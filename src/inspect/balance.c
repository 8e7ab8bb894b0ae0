/**
 * The scale between queries and keys that AttentionViz chooses (Yeh et al. 2023): scores do not
 * change if queries are multiplied by c and keys divided by it, distances do. Of seven c the one is
 * taken with which the correlation of q.k and distance is closest to -1, pairs weighted
 *
 *     w = max(0, t - d)^2,   t: the distance that 0.5 % of the pairs are below,
 *
 * so that what is near counts. Of few pairs, t is that of the 30th. Pairs are those of some queries,
 * evenly spread, with all keys: 2^18 at most, or those of one query.
 */
#include "inspect/balance.h"

#include <math.h>

#include "core/ints.h"
#include "inspect/points.h"
#include "model/base.h"

enum { MOST_PAIRS = 1 << 18, LEAST_NEAR = 30, N_SCALES = 7 };

/* Of equal ones the first is taken. */
static const double scales[N_SCALES] = { 1, 1.25, 0.8, 2.5, 0.4, 5, 0.2 };

struct pairs {
    int64_t n_queries, n_sample, n_keys;
    double *scores, *distances, *sorted; /* [n_sample][n_keys] */
};

static void find_scores(int64_t head_dim, const float *q, const float *k, struct pairs *pairs) {
    for (int64_t s = 0; s < pairs->n_sample; s++) {
        const float *const query = q + s * pairs->n_queries / pairs->n_sample * head_dim;
        for (int64_t j = 0; j < pairs->n_keys; j++) {
            double sum = 0;
            for (int64_t c = 0; c < head_dim; c++)
                sum += (double)query[c] * (double)k[j * head_dim + c];
            pairs->scores[s * pairs->n_keys + j] = sum;
        }
    }
}

static void find_distances(const qkvi_points *points, struct pairs *pairs) {
    for (int64_t s = 0; s < pairs->n_sample; s++) {
        const int64_t i = s * pairs->n_queries / pairs->n_sample;
        double *const row = pairs->distances + s * pairs->n_keys - points->n_queries;
        for (int64_t block = 0; block < points->n; block += QKVI_POINTS_BLOCK) {
            double d[QKVI_POINTS_BLOCK];
            const int64_t end = qkvi_min_i64(block + QKVI_POINTS_BLOCK, points->n);
            if (end <= points->n_queries) continue;
            qkvi_points_block_distances(points, i, block, d);
            for (int64_t j = qkvi_max_i64(block, points->n_queries); j < end; j++)
                row[j] = d[j - block];
        }
    }
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double threshold(struct pairs *pairs) {
    const int64_t n = pairs->n_sample * pairs->n_keys;
    for (int64_t i = 0; i < n; i++) pairs->sorted[i] = pairs->distances[i];
    qsort(pairs->sorted, (size_t)n, sizeof *pairs->sorted, ascending);
    return pairs->sorted[qkvi_min_i64(n, qkvi_max_i64(LEAST_NEAR, n / 200)) - 1];
}

/* Pearson's, weighted; 0 where one of the two does not vary. */
static double correlation(struct pairs *pairs) {
    const int64_t n = pairs->n_sample * pairs->n_keys;
    const double t = threshold(pairs);
    double all = 0, mean[2] = { 0 }, both = 0, squares[2] = { 0 };
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < n; i++) {
            const double nearer = fmax(0, t - pairs->distances[i]), w = nearer * nearer;
            const double a = pairs->scores[i] - mean[0], b = pairs->distances[i] - mean[1];
            if (pass == 0) {
                all += w;
                squares[0] += w * a;
                squares[1] += w * b;
            } else {
                both += w * a * b;
                squares[0] += w * a * a;
                squares[1] += w * b * b;
            }
        }
        if (!(all > 0)) return 0;
        if (pass == 1) break;
        for (int c = 0; c < 2; c++) {
            mean[c] = squares[c] / all;
            squares[c] = 0;
        }
    }
    return squares[0] > 0 && squares[1] > 0 ? both / sqrt(squares[0] * squares[1]) : 0;
}

static qkv_status choose(const qkvi_kernels *kernels, const qkv_map_options *options,
                         int64_t head_dim, const float *q, const float *k, struct pairs *pairs,
                         double *balance, qkv_error *error) {
    double best = 0;
    find_scores(head_dim, q, k, pairs);
    for (int c = 0; c < N_SCALES; c++) {
        qkv_map_options with = *options;
        qkvi_points points;
        with.balance = scales[c];
        with.center_keys = 1;
        const qkv_status status = qkvi_points_make(kernels, &with, pairs->n_queries, pairs->n_keys,
                                                   head_dim, q, k, &points, error);
        if (status == QKV_OK) {
            qkvi_points_finish(&points);
            find_distances(&points, pairs);
        }
        qkvi_points_free(&points);
        QKV_TRY(status);
        const double follows = correlation(pairs);
        if (c > 0 && !(follows < best)) continue;
        best = follows;
        *balance = scales[c];
    }
    return QKV_OK;
}

qkv_status qkvi_balance_choose(const qkvi_kernels *kernels, const qkv_map_options *options,
                               int64_t n_queries, int64_t n_keys, int64_t head_dim, const float *q,
                               const float *k, double *balance, qkv_error *error) {
    *balance = 1;
    if (n_queries == 0 || n_keys == 0) return QKV_OK;
    const int64_t n_sample = qkvi_min_i64(n_queries, qkvi_max_i64(1, MOST_PAIRS / n_keys));
    double *const block = qkvi_malloc_array((size_t)(n_sample * n_keys), 3 * sizeof *block);
    if (!block)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld pairs of query and key",
                              (long long)(n_sample * n_keys));
    struct pairs pairs = {
        n_queries, n_sample, n_keys, block, block + n_sample * n_keys, block + 2 * n_sample * n_keys
    };
    const qkv_status status = choose(kernels, options, head_dim, q, k, &pairs, balance, error);
    free(block);
    return status;
}
