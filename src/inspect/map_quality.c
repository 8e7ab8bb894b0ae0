/**
 * Trustworthiness (Venna and Kaski 2001), preserved neighbours, and how well the map orders the
 * keys of a query.
 *
 *     T(k) = 1 - 2 / (n k (2n - 3k - 1)) sum_i sum_j max(0, r_ij - k)
 *
 * over the k points j nearest to i on the map, r_ij the rank of j by the distance D to i, from 1.
 * Equal distances are ranked by index. k is 5, or less where n is less than 11: T needs k < n / 2.
 * Counts are whole numbers, so threads may add them in any order.
 *
 * Of many points only s are measured, at the indices floor(i n / s), i = 0 … s - 1, with s so small
 * that there are no more pairs s n than 4096 points have.
 */
#include "inspect/map.h"

#include <math.h>
#include <stdatomic.h>

#include "core/ints.h"

enum {
    NEIGHBOURS = 5,
    MOST_PAIRS = QKV_MAP_MAX_EXACT_POINTS * QKV_MAP_MAX_EXACT_POINTS, /* of points */
    MOST_SCORES = MOST_PAIRS / 4                                      /* of query and key */
};

/* How many of n are measured, if each has n_others. */
static int64_t n_of_sample(int64_t n, int64_t n_others, int64_t most_pairs) {
    return qkvi_min_i64(n, qkvi_max_i64(1, most_pairs / n_others));
}

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

/* Tasks draw points; each has two rows of scratch. */
struct job {
    const qkvi_points *points;
    const double *xy;
    int64_t k, n_sample;
    double *scratch;                 /* [tasks][2][room] */
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
    double *const d = job->scratch + 2 * index * points->room;
    double *const on_map = d + points->room;
    for (int64_t s; (s = atomic_fetch_add(&job->next, 1)) < job->n_sample;) {
        const int64_t i = s * points->n / job->n_sample;
        int64_t found[NEIGHBOURS];
        qkvi_points_distances(points, i, d);
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
    report->n_measured = 0;
    report->trust = report->preserved = NAN;
    if (k < 1) return QKV_OK;
    const int64_t n_sample = n_of_sample(n, n, MOST_PAIRS);
    const int n_tasks = (int)qkvi_min_i64(qkvi_pool_threads(pool), n_sample);
    struct job job = { .points = points, .xy = xy, .k = k, .n_sample = n_sample };
    job.scratch = qkvi_aligned_array((size_t)(2 * n_tasks * points->room), sizeof(double));
    if (!job.scratch)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the distances of %lld points",
                              (long long)n);
    qkvi_pool_run(pool, n_tasks, count_neighbours, &job);
    qkvi_aligned_free(job.scratch);
    const double pairs = (double)n_sample * (double)k;
    report->n_measured = n_sample;
    report->trust = 1 - 2 / (pairs * (double)(2 * n - 3 * k - 1)) * (double)job.excess;
    report->preserved = (double)job.kept / pairs;
    return QKV_OK;
}

/* ---- Queries and keys ------------------------------------------------------------------------ */

enum { KEYS_AT_ONCE = 64 };

/* Tasks draw keys, some at a time, and then queries. */
struct pairs {
    const qkvi_kernels *kernels;
    const double *xy;
    const float *q, *k;
    int64_t n_queries, n_keys, n_sample, head_dim;
    double *scores, *distances; /* [n_sample][n_keys] */
    double *scratch;            /* [tasks][scratch_elems] */
    atomic_llong next, n_recalled;
};

/* A query, keys in columns, and their scores. */
static int64_t scratch_elems(int64_t head_dim) {
    return (KEYS_AT_ONCE + 1) * head_dim + KEYS_AT_ONCE;
}

/* Sums of products, which are exact in double, in the order of channels. */
static void score_some(struct pairs *pairs, int64_t first, int64_t n, double *scratch) {
    const int64_t d = pairs->head_dim, room = qkvi_round_up(n, QKVI_TSNE_LANES);
    double *const query = scratch, *const columns = query + d, *const out = columns + room * d;
    for (int64_t c = 0; c < d; c++)
        for (int64_t j = 0; j < room; j++)
            columns[c * room + j] = j < n ? (double)pairs->k[(first + j) * d + c] : 0;
    for (int64_t s = 0; s < pairs->n_sample; s++) {
        const float *const q = pairs->q + s * pairs->n_queries / pairs->n_sample * d;
        for (int64_t c = 0; c < d; c++) query[c] = (double)q[c];
        pairs->kernels->tsne->dots(room, d, query, columns, out);
        memcpy(pairs->scores + s * pairs->n_keys + first, out, (size_t)n * sizeof *out);
    }
}

static void score_keys(void *argument, int index) {
    struct pairs *const pairs = argument;
    const int64_t n_keys = pairs->n_keys;
    double *const scratch = pairs->scratch + index * scratch_elems(pairs->head_dim);
    for (int64_t j; (j = atomic_fetch_add(&pairs->next, KEYS_AT_ONCE)) < n_keys;)
        score_some(pairs, j, qkvi_min_i64(KEYS_AT_ONCE, n_keys - j), scratch);
}

static void compare_queries(void *argument, int index) {
    (void)index;
    struct pairs *const pairs = argument;
    const int64_t n_queries = pairs->n_queries, n_keys = pairs->n_keys;
    const double *const xy = pairs->xy;
    for (int64_t s; (s = atomic_fetch_add(&pairs->next, 1)) < pairs->n_sample;) {
        const int64_t i = s * n_queries / pairs->n_sample;
        const double *const row = pairs->scores + s * n_keys;
        int64_t best = 0;
        for (int64_t j = 0; j < n_keys; j++) {
            pairs->distances[s * n_keys + j] = map_distance(xy, xy + 1, 2, i, n_queries + j);
            if (row[j] > row[best]) best = j;
        }
        if (qkvi_map_nearest_key(xy, xy + 1, 2, n_queries, n_queries + n_keys, i) == best)
            atomic_fetch_add(&pairs->n_recalled, 1);
    }
}

static void run_pairs(struct pairs *pairs, qkvi_pool *pool, int n_tasks) {
    qkvi_pool_run(pool, n_tasks, score_keys, pairs);
    atomic_store(&pairs->next, 0);
    qkvi_pool_run(pool, n_tasks, compare_queries, pairs);
}

static qkv_status measure_pairs(const qkvi_points *points, qkvi_pool *pool, const double *xy,
                                int64_t head_dim, const float *q, const float *k,
                                qkv_map_report *report, qkv_error *error) {
    const int64_t n_queries = points->n_queries, n_keys = points->n - n_queries;
    report->recall = report->rank_correlation = NAN;
    report->n_measured_queries = 0;
    if (n_queries == 0 || n_keys == 0) return QKV_OK;
    const int64_t n_sample = n_of_sample(n_queries, n_keys, MOST_SCORES);
    const int64_t n_pairs = n_sample * n_keys;
    const int n_tasks =
        (int)qkvi_min_i64(qkvi_pool_threads(pool), qkvi_ceil_div(n_keys, KEYS_AT_ONCE));
    struct pairs pairs = { .kernels = points->kernels,
                           .xy = xy,
                           .q = q,
                           .k = k,
                           .n_queries = n_queries,
                           .n_keys = n_keys,
                           .n_sample = n_sample,
                           .head_dim = head_dim };
    pairs.scores = qkvi_malloc_array((size_t)n_pairs, 2 * sizeof *pairs.scores);
    pairs.scratch =
        qkvi_malloc_array((size_t)n_tasks, (size_t)scratch_elems(head_dim) * sizeof(double));
    qkv_status status = QKV_OK;
    if (pairs.scores && pairs.scratch) {
        pairs.distances = pairs.scores + n_pairs;
        run_pairs(&pairs, pool, n_tasks);
        report->n_measured_queries = n_sample;
        report->recall = (double)pairs.n_recalled / (double)n_sample;
        status = qkvi_rank_correlation(pairs.scores, pairs.distances, n_pairs,
                                       &report->rank_correlation, error);
    } else {
        status = qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld pairs of query and key",
                                (long long)n_pairs);
    }
    free(pairs.scores);
    free(pairs.scratch);
    return status;
}

qkv_status qkvi_map_quality(const qkvi_points *points, qkvi_pool *pool, const double *xy,
                            int64_t head_dim, const float *q, const float *k,
                            qkv_map_report *report, qkv_error *error) {
    QKV_TRY(measure_neighbours(points, pool, xy, report, error));
    return measure_pairs(points, pool, xy, head_dim, q, k, report, error);
}
