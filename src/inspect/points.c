/**
 * From the queries and keys of a head to points and their distances.
 *
 * Products of floats are exact in double. The cosine distance of rows u, v of length 1 is computed
 * as 1 - cos = |u - v|^2 / 2, which has no cancellation for near rows, and is exactly 0 for equal
 * ones. With QKV_MAP_INNER the distance of a query and a key is (|q|^2 + M^2) - 2 q.k, so that the
 * keys of a query are in the order of their scores, rounding included.
 */
#include "inspect/points.h"

#include <math.h>

#include "core/ints.h"
#include "files/base.h"

static qkv_status check_finite(const char *name, int64_t n, int64_t dim, const float *x,
                               qkv_error *error) {
    for (int64_t i = 0; i < n * dim; i++) {
        if (isfinite(x[i])) continue;
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s[%lld][%lld] = %g is not finite", name,
                              (long long)(i / dim), (long long)(i % dim), (double)x[i]);
    }
    return QKV_OK;
}

static qkv_status allocate(qkvi_points *points, qkv_error *error) {
    const size_t n = (size_t)points->n, dim = (size_t)points->dim;
    points->rows = qkvi_calloc_array(n * dim, sizeof(double));
    points->columns = qkvi_calloc_array(dim * (size_t)points->room, sizeof(double));
    points->zero = qkvi_calloc_array(n, 1);
    points->squares = qkvi_calloc_array(n, sizeof(double));
    if (points->rows && points->columns && points->zero && points->squares) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld points of %lld coordinates",
                          (long long)points->n, (long long)points->dim);
}

/* k - mean(k) + mean(q). */
static void center_keys(qkvi_points *points, int64_t head_dim) {
    const int64_t n_queries = points->n_queries, n_keys = points->n - n_queries;
    if (n_queries == 0 || n_keys == 0) return;
    for (int64_t c = 0; c < head_dim; c++) {
        double q_sum = 0, k_sum = 0;
        double *const x = points->rows + c;
        for (int64_t i = 0; i < n_queries; i++) q_sum += x[i * points->dim];
        for (int64_t i = n_queries; i < points->n; i++) k_sum += x[i * points->dim];
        const double shift = q_sum / (double)n_queries - k_sum / (double)n_keys;
        for (int64_t i = n_queries; i < points->n; i++) x[i * points->dim] += shift;
    }
}

static double sum_squares(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t c = 0; c < n; c++) sum += x[c] * x[c];
    return sum;
}

/* The coordinate that makes all keys equally long. */
static void add_coordinate(qkvi_points *points) {
    double longest = 0;
    for (int64_t i = 0; i < points->n; i++) {
        points->squares[i] = sum_squares(points->rows + i * points->dim, points->dim - 1);
        if (i >= points->n_queries) longest = fmax(longest, points->squares[i]);
    }
    for (int64_t i = points->n_queries; i < points->n; i++) {
        points->rows[(i + 1) * points->dim - 1] = sqrt(longest - points->squares[i]);
        points->squares[i] = longest;
    }
}

qkv_status qkvi_points_make(const qkvi_kernels *kernels, const qkv_map_options *options,
                            int64_t n_queries, int64_t n_keys, int64_t head_dim, const float *q,
                            const float *k, qkvi_points *points, qkv_error *error) {
    const int64_t n = n_queries + n_keys;
    *points = (qkvi_points){ .kernels = kernels,
                             .metric = options->metric,
                             .n = n,
                             .n_queries = n_queries,
                             .dim = head_dim + (options->metric == QKV_MAP_INNER),
                             .room = qkvi_round_up(n, QKVI_TSNE_LANES) };
    QKV_TRY(check_finite("q", n_queries, head_dim, q, error));
    QKV_TRY(check_finite("k", n_keys, head_dim, k, error));
    QKV_TRY(allocate(points, error));
    const double balance = options->balance > 0 ? options->balance : 1;
    for (int64_t i = 0; i < n; i++) {
        const int is_key = i >= n_queries;
        const float *const from = is_key ? k + (i - n_queries) * head_dim : q + i * head_dim;
        double *const to = points->rows + i * points->dim;
        for (int64_t c = 0; c < head_dim; c++)
            to[c] = is_key ? from[c] / balance : from[c] * balance;
    }
    if (options->center_keys) center_keys(points, head_dim);
    if (options->metric == QKV_MAP_INNER) add_coordinate(points);
    return QKV_OK;
}

/* Of the block that begins at a point: how wide it is, and where its columns lie. */
static int64_t width_of(const qkvi_points *points, int64_t first) {
    return qkvi_min_i64(QKVI_POINTS_BLOCK, points->room - first);
}

static double *columns_of(const qkvi_points *points, int64_t first) {
    return points->columns + first * points->dim;
}

void qkvi_points_finish(qkvi_points *points) {
    const int64_t dim = points->dim;
    for (int64_t i = 0; i < points->n; i++) {
        double *const x = points->rows + i * dim;
        const double length = sqrt(sum_squares(x, dim));
        points->zero[i] = length == 0;
        points->n_zero += length == 0;
        const int64_t at = i % QKVI_POINTS_BLOCK, first = i - at, width = width_of(points, first);
        double *const columns = columns_of(points, first);
        for (int64_t c = 0; c < dim; c++) {
            if (length > 0 && points->metric <= QKV_MAP_COSINE_PLAIN) x[c] /= length;
            columns[c * width + at] = x[c];
        }
    }
}

void qkvi_points_free(qkvi_points *points) {
    free(points->rows);
    free(points->columns);
    free(points->zero);
    free(points->squares);
    *points = (qkvi_points){ 0 };
}

/* ---- Distances: of point i to those from `first` to `end`, d[0] to the first of them --------- */

static void to_cosine(const qkvi_points *points, int64_t i, int64_t first, int64_t end, double *d) {
    const int squared = points->metric == QKV_MAP_COSINE;
    for (int64_t j = first; j < end; j++) {
        const double apart = points->zero[i] || points->zero[j] ? 1 : d[j - first] / 2;
        d[j - first] = squared ? apart * apart : apart;
    }
}

/* A query and a key. */
static void to_inner(const qkvi_points *points, int64_t i, int64_t first, int64_t end, double *d) {
    const int is_key = i >= points->n_queries;
    const int64_t from = is_key ? first : qkvi_max_i64(first, points->n_queries);
    const int64_t to = is_key ? qkvi_min_i64(end, points->n_queries) : end;
    double dots[QKVI_POINTS_BLOCK];
    if (from >= to) return;
    points->kernels->tsne->dots(width_of(points, first), points->dim,
                                points->rows + i * points->dim, columns_of(points, first), dots);
    for (int64_t j = from; j < to; j++) {
        const double apart = points->squares[i] + points->squares[j] - 2 * dots[j - first];
        d[j - first] = apart > 0 ? apart : 0;
    }
}

void qkvi_points_block_distances(const qkvi_points *points, int64_t i, int64_t first, double *d) {
    const int64_t end = qkvi_min_i64(first + QKVI_POINTS_BLOCK, points->n);
    points->kernels->tsne->squares(width_of(points, first), points->dim,
                                   points->rows + i * points->dim, columns_of(points, first), d);
    if (points->metric <= QKV_MAP_COSINE_PLAIN) to_cosine(points, i, first, end, d);
    if (points->metric == QKV_MAP_INNER) to_inner(points, i, first, end, d);
    if (i >= first && i < end) d[i - first] = 0;
}

void qkvi_points_distances(const qkvi_points *points, int64_t i, double *d) {
    for (int64_t first = 0; first < points->n; first += QKVI_POINTS_BLOCK)
        qkvi_points_block_distances(points, i, first, d + first);
}
