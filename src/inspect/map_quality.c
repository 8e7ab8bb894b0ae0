/**
 * Trustworthiness (Venna and Kaski 2001), preserved neighbours, and how well the map orders the keys
 * of a query.
 *
 *     T(k) = 1 - 2 / (n k (2n - 3k - 1)) sum_i sum_j max(0, r_ij - k)
 *
 * over the k points j nearest to i on the map, r_ij the rank of j by the distance D to i, from 1.
 * Equal distances are ranked by index. k is 5, or less where n is less than 11: T needs k < n / 2.
 * Counts are whole numbers, so the order of sums is free.
 */
#include "inspect/map_quality.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/ints.h"
#include "core/status.h"

enum { NEIGHBOURS = 5 };

static double map_distance(const double *x, const double *y, int64_t stride, int64_t i, int64_t j) {
    const double dx = x[i * stride] - x[j * stride], dy = y[i * stride] - y[j * stride];
    return dx * dx + dy * dy;
}

int64_t qkvi_map_nearest_key(const double *x, const double *y, int64_t stride, int64_t n_queries,
                             int64_t n, int64_t query) {
    int64_t nearest = -1;
    double least = 0;
    for (int64_t j = n_queries; j < n; j++) {
        const double apart = map_distance(x, y, stride, query, j);
        if (nearest >= 0 && !(apart < least)) continue;
        nearest = j - n_queries;
        least = apart;
    }
    return nearest;
}

/* ---- Neighbours ------------------------------------------------------------------------------ */

/* Tasks draw points; each has three rows of scratch. */
struct job {
    const qkvi_points *points;
    const double *xy;
    int64_t k;
    double *scratch;                 /* [tasks][3][room] */
    atomic_llong next, excess, kept; /* sums of r - k, and of neighbours with r <= k */
};

/* The k least of d but i, by value and index, in ascending order. */
static void nearest(const double *d, int64_t n, int64_t i, int64_t k, int64_t *found) {
    int64_t n_found = 0;
    for (int64_t j = 0; j < n; j++) {
        if (j == i || (n_found == k && !(d[j] < d[found[k - 1]]))) continue;
        int64_t at = n_found < k ? n_found++ : k - 1;
        for (; at > 0 && d[j] < d[found[at - 1]]; at--) found[at] = found[at - 1];
        found[at] = j;
    }
}

static int64_t rank_of(const double *d, int64_t n, int64_t i, int64_t j) {
    int64_t rank = 1;
    for (int64_t l = 0; l < n; l++) rank += l != i && (d[l] < d[j] || (d[l] == d[j] && l < j));
    return rank;
}

static void count_neighbours(void *argument, int index) {
    struct job *const job = argument;
    const qkvi_points *const points = job->points;
    double *const d = job->scratch + 3 * index * points->room;
    double *const on_map = d + 2 * points->room;
    for (int64_t i; (i = atomic_fetch_add(&job->next, 1)) < points->n;) {
        int64_t found[NEIGHBOURS];
        qkvi_points_distances(points, i, d, d + points->room);
        for (int64_t j = 0; j < points->n; j++)
            on_map[j] = map_distance(job->xy, job->xy + 1, 2, i, j);
        nearest(on_map, points->n, i, job->k, found);
        for (int64_t l = 0; l < job->k; l++) {
            const int64_t rank = rank_of(d, points->n, i, found[l]);
            if (rank > job->k)
                atomic_fetch_add(&job->excess, rank - job->k);
            else
                atomic_fetch_add(&job->kept, 1);
        }
    }
}

static qkv_status measure_neighbours(const qkvi_points *points, qkvi_pool *pool, const double *xy,
                                     qkv_map_report *report, qkv_error *error) {
    const int64_t n = points->n, k = qkvi_min_i64(NEIGHBOURS, (n - 1) / 2);
    report->n_neighbours = k;
    report->trust = report->preserved = NAN;
    if (k < 1) return QKV_OK;
    const int n_tasks = (int)qkvi_min_i64(qkvi_pool_threads(pool), n);
    struct job job = { .points = points, .xy = xy, .k = k };
    job.scratch = qkvi_aligned_array((size_t)(3 * n_tasks * points->room), sizeof(double));
    if (!job.scratch)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the distances of %lld points",
                              (long long)n);
    qkvi_pool_run(pool, n_tasks, count_neighbours, &job);
    free(job.scratch);
    const double pairs = (double)n * (double)k;
    report->trust = 1 - 2 / (pairs * (double)(2 * n - 3 * k - 1)) * (double)job.excess;
    report->preserved = (double)job.kept / pairs;
    return QKV_OK;
}

/* ---- Queries and keys ------------------------------------------------------------------------ */

struct pair {
    double score, distance;
};

static int by_score(const void *a, const void *b) {
    const double x = ((const struct pair *)a)->score, y = ((const struct pair *)b)->score;
    return (x > y) - (x < y);
}
static int by_distance(const void *a, const void *b) {
    const double x = ((const struct pair *)a)->distance, y = ((const struct pair *)b)->distance;
    return (x > y) - (x < y);
}

static double score_of(int64_t head_dim, const float *q, const float *k) {
    double sum = 0;
    for (int64_t c = 0; c < head_dim; c++) sum += (double)q[c] * (double)k[c];
    return sum;
}

/*
 * Values become ranks, the middle one where several are equal. pairs are sorted by them; `at` is
 * where in a pair the value lies.
 */
static void to_ranks(struct pair *pairs, int64_t n, double *at) {
    const int64_t stride = sizeof *pairs / sizeof *at;
    for (int64_t first = 0; first < n;) {
        int64_t end = first + 1;
        while (end < n && at[end * stride] == at[first * stride]) end++;
        const double middle = (double)(first + end - 1) / 2;
        while (first < end) at[first++ * stride] = middle;
    }
}

/* Pearson's correlation of the ranks; NaN if one of them does not vary. */
static double correlate_ranks(const struct pair *pairs, int64_t n) {
    const double mean = (double)(n - 1) / 2;
    double both = 0, scores = 0, distances = 0;
    for (int64_t i = 0; i < n; i++) {
        const double a = pairs[i].score - mean, b = pairs[i].distance - mean;
        both += a * b;
        scores += a * a;
        distances += b * b;
    }
    return scores > 0 && distances > 0 ? both / sqrt(scores * distances) : NAN;
}

static qkv_status measure_pairs(const qkvi_points *points, const double *xy, int64_t head_dim,
                                const float *q, const float *k, qkv_map_report *report,
                                qkv_error *error) {
    const int64_t n_queries = points->n_queries, n_keys = points->n - n_queries;
    const int64_t n_pairs = n_queries * n_keys;
    report->recall = report->rank_correlation = NAN;
    if (n_pairs == 0) return QKV_OK;
    struct pair *const pairs = qkvi_malloc_array((size_t)n_pairs, sizeof *pairs);
    if (!pairs)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld pairs of query and key",
                              (long long)n_pairs);
    int64_t n_recalled = 0;
    for (int64_t i = 0; i < n_queries; i++) {
        struct pair *const row = pairs + i * n_keys;
        int64_t best = 0;
        for (int64_t j = 0; j < n_keys; j++) {
            row[j].score = score_of(head_dim, q + i * head_dim, k + j * head_dim);
            row[j].distance = map_distance(xy, xy + 1, 2, i, n_queries + j);
            if (row[j].score > row[best].score) best = j;
        }
        n_recalled += qkvi_map_nearest_key(xy, xy + 1, 2, n_queries, points->n, i) == best;
    }
    report->recall = (double)n_recalled / (double)n_queries;
    qsort(pairs, (size_t)n_pairs, sizeof *pairs, by_score);
    to_ranks(pairs, n_pairs, &pairs->score);
    qsort(pairs, (size_t)n_pairs, sizeof *pairs, by_distance);
    to_ranks(pairs, n_pairs, &pairs->distance);
    report->rank_correlation = correlate_ranks(pairs, n_pairs);
    free(pairs);
    return QKV_OK;
}

qkv_status qkvi_map_quality(const qkvi_points *points, qkvi_pool *pool, const double *xy,
                            int64_t head_dim, const float *q, const float *k,
                            qkv_map_report *report, qkv_error *error) {
    QKV_TRY(measure_neighbours(points, pool, xy, report, error));
    return measure_pairs(points, xy, head_dim, q, k, report, error);
}
