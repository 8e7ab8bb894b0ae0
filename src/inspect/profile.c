/** What one head does at each position, from its weights; sums are chains in double, in order. */
#include <math.h>

#include "core/status.h"
#include "qkv/inspect.h"

/* Of a row; a NaN makes both NaN. */
static void measure_row(const float *p, int64_t n, double *entropy, double *largest) {
    double sum = 0, most = 0;
    for (int64_t j = 0; j < n; j++) {
        const double w = (double)p[j];
        if (w != 0) sum -= w * log(w);
        if (!(w <= most)) most = w;
        if (isnan(w)) break;
    }
    if (entropy) *entropy = isnan(most) ? NAN : sum > 0 ? sum : 0;
    if (largest) *largest = most;
}

static void sum_columns(const float *weights, int64_t n_queries, int64_t n_keys, double *received) {
    for (int64_t j = 0; j < n_keys; j++) received[j] = 0;
    for (int64_t i = 0; i < n_queries; i++)
        for (int64_t j = 0; j < n_keys; j++) received[j] += (double)weights[i * n_keys + j];
}

static void mean_of_diagonals(const float *weights, int64_t n_queries, int64_t n_keys,
                              double *by_offset) {
    for (int64_t d = -(n_queries - 1); d < n_keys; d++) {
        const int64_t first = d < 0 ? -d : 0, end = n_keys - d < n_queries ? n_keys - d : n_queries;
        double sum = 0;
        for (int64_t i = first; i < end; i++) sum += (double)weights[i * n_keys + i + d];
        by_offset[d + n_queries - 1] = sum / (double)(end - first);
    }
}

qkv_status qkv_inspect_profile(const float *weights, int64_t n_queries, int64_t n_keys,
                               double *entropy, double *largest, double *received,
                               double *by_offset, qkv_error *error) {
    enum { MOST = 1 << 20 };
    if (!weights) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "weights is NULL");
    if (n_queries < 1 || n_queries > MOST || n_keys < 1 || n_keys > MOST)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "n_queries = %lld and n_keys = %lld are not in 1 ... %d",
                              (long long)n_queries, (long long)n_keys, MOST);
    for (int64_t i = 0; i < n_queries && (entropy || largest); i++)
        measure_row(weights + i * n_keys, n_keys, entropy ? entropy + i : NULL,
                    largest ? largest + i : NULL);
    if (received) sum_columns(weights, n_queries, n_keys, received);
    if (by_offset) mean_of_diagonals(weights, n_queries, n_keys, by_offset);
    return QKV_OK;
}
