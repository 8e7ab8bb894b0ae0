/**
 * Trustworthiness (Venna and Kaski 2001), preserved neighbours, and how well the map orders the keys
 * of a query.
 *
 *     T(k) = 1 - 2 / (n k (2n - 3k - 1)) sum_i sum_j max(0, r_ij - k)
 *
 * over the k points j nearest to i on the map, r_ij the rank of j by the distance D to i, from 1.
 * Equal distances are ranked by index. k is 5, or less where n is less than 11: T needs k < n / 2.
 * Counts are whole numbers, so the order of sums is free.
 *
 * Of many points some are measured, evenly spread, so that the pairs stay those of 4096 points: of s
 * among n those at [i n / s], i = 0 ... s - 1.
 */
#include "inspect/map.h"

#include <math.h>
#include <stdatomic.h>

#include "core/ints.h"

/* ---- Ranks ----------------------------------------------------------------------------------- */

/*
 * Spearman's correlation by two radix sorts: the bits of a double, those of negative ones turned over,
 * are in the order of the numbers. Sums go over pairs in their own order.
 */

enum { DIGIT_BITS = 10, DIGITS = 7, VALUES = 1 << DIGIT_BITS };

struct item {
    uint64_t key;
    int64_t at;
};

static uint64_t key_of(double x) {
    const double positive_zero = x + 0.0;
    uint64_t bits;
    memcpy(&bits, &positive_zero, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* By digits from the lowest; each pass keeps the order of equal ones. Returns where the result is. */
static struct item *sort(struct item *items, struct item *spare, int64_t n) {
    for (int shift = 0; shift < DIGITS * DIGIT_BITS; shift += DIGIT_BITS) {
        int32_t starts[VALUES + 1] = { 0 };
        for (int64_t i = 0; i < n; i++) starts[(items[i].key >> shift & (VALUES - 1)) + 1]++;
        if (starts[(items[0].key >> shift & (VALUES - 1)) + 1] == n) continue; /* all alike */
        for (int v = 0; v < VALUES; v++) starts[v + 1] += starts[v];
        for (int64_t i = 0; i < n; i++)
            spare[starts[items[i].key >> shift & (VALUES - 1)]++] = items[i];
        struct item *const sorted = spare;
        spare = items;
        items = sorted;
    }
    return items;
}

/* Less the mean of all ranks. */
static void rank(const double *a, int64_t n, struct item *items, struct item *spare,
                 double *ranks) {
    for (int64_t i = 0; i < n; i++) items[i] = (struct item){ key_of(a[i]), i };
    const struct item *const sorted = sort(items, spare, n);
    for (int64_t first = 0; first < n;) {
        int64_t end = first + 1;
        while (end < n && sorted[end].key == sorted[first].key) end++;
        const double middle = ((double)(first + end - 1) - (double)(n - 1)) / 2;
        while (first < end) ranks[sorted[first++].at] = middle;
    }
}

static double correlate(const double *a, const double *b, int64_t n) {
    double both = 0, a2 = 0, b2 = 0;
    for (int64_t i = 0; i < n; i++) {
        both += a[i] * b[i];
        a2 += a[i] * a[i];
        b2 += b[i] * b[i];
    }
    return a2 > 0 && b2 > 0 ? both / sqrt(a2 * b2) : NAN;
}

/*
 * Spearman's correlation of a and b, [n] finite each: Pearson's of their ranks, of equal numbers the
 * middle one. NaN if one of them does not vary. n < 2^31. Time is linear in n; memory: 48 n bytes (MEMORY).
 */
static qkv_status correlation_by_rank(const double *a, const double *b, int64_t n,
                                      double *correlation, qkv_error *error) {
    struct item *const items = qkvi_malloc_array((size_t)n, 2 * sizeof *items);
    double *const ranks = qkvi_malloc_array((size_t)n, 2 * sizeof *ranks);
    const int made = items && ranks;
    *correlation = NAN;
    if (made && n > 0) {
        rank(a, n, items, items + n, ranks);
        rank(b, n, items, items + n, ranks + n);
        *correlation = correlate(ranks, ranks + n, n);
    }
    free(items);
    free(ranks);
    if (made) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the ranks of %lld pairs",
                          (long long)n);
}

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
    free(job.scratch);
    const double pairs = (double)n_sample * (double)k;
    report->n_measured = n_sample;
    report->trust = 1 - 2 / (pairs * (double)(2 * n - 3 * k - 1)) * (double)job.excess;
    report->preserved = (double)job.kept / pairs;
    return QKV_OK;
}

/* ---- Queries and keys ------------------------------------------------------------------------ */

static double score_of(int64_t head_dim, const float *q, const float *k) {
    double sum = 0;
    for (int64_t c = 0; c < head_dim; c++) sum += (double)q[c] * (double)k[c];
    return sum;
}

static qkv_status measure_pairs(const qkvi_points *points, const double *xy, int64_t head_dim,
                                const float *q, const float *k, qkv_map_report *report,
                                qkv_error *error) {
    const int64_t n_queries = points->n_queries, n_keys = points->n - n_queries;
    report->recall = report->rank_correlation = NAN;
    report->n_measured_queries = 0;
    if (n_queries == 0 || n_keys == 0) return QKV_OK;
    const int64_t n_sample = n_of_sample(n_queries, n_keys, MOST_SCORES);
    const int64_t n_pairs = n_sample * n_keys;
    double *const scores = qkvi_malloc_array((size_t)n_pairs, 2 * sizeof *scores);
    if (!scores)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld pairs of query and key",
                              (long long)n_pairs);
    double *const distances = scores + n_pairs;
    int64_t n_recalled = 0;
    for (int64_t s = 0; s < n_sample; s++) {
        const int64_t i = s * n_queries / n_sample;
        double *const row = scores + s * n_keys;
        int64_t best = 0;
        for (int64_t j = 0; j < n_keys; j++) {
            row[j] = score_of(head_dim, q + i * head_dim, k + j * head_dim);
            distances[s * n_keys + j] = map_distance(xy, xy + 1, 2, i, n_queries + j);
            if (row[j] > row[best]) best = j;
        }
        n_recalled += qkvi_map_nearest_key(xy, xy + 1, 2, n_queries, points->n, i) == best;
    }
    report->n_measured_queries = n_sample;
    report->recall = (double)n_recalled / (double)n_sample;
    const qkv_status status =
        correlation_by_rank(scores, distances, n_pairs, &report->rank_correlation, error);
    free(scores);
    return status;
}

qkv_status qkvi_map_quality(const qkvi_points *points, qkvi_pool *pool, const double *xy,
                            int64_t head_dim, const float *q, const float *k,
                            qkv_map_report *report, qkv_error *error) {
    QKV_TRY(measure_neighbours(points, pool, xy, report, error));
    return measure_pairs(points, xy, head_dim, q, k, report, error);
}
