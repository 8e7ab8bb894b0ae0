/**
 * Numbers at each position of heads that are means over inputs, from their stored weights. Sums are
 * in double, in ascending order.
 */
#include <math.h>

#include "inspect/heads_impl.h"

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

/* Over the pairs that may be seen. */
static void mean_of_diagonals(const qkv_heads *heads, int64_t index, const float *weights,
                              double *by_offset) {
    const int64_t n_queries = heads->info.n_queries, n_keys = heads->info.n_keys;
    for (int64_t d = -(n_queries - 1); d < n_keys; d++) {
        const int64_t first = d < 0 ? -d : 0, end = n_keys - d < n_queries ? n_keys - d : n_queries;
        double sum = 0;
        int64_t n = 0;
        for (int64_t i = first; i < end; i++) {
            if (!qkv_head_sees(heads, index, i, i + d)) continue;
            sum += (double)weights[i * n_keys + i + d];
            n++;
        }
        by_offset[d + n_queries - 1] = n ? sum / (double)n : 0;
    }
}

void qkvi_profile(const qkv_heads *heads, int64_t index, const float *weights,
                  const qkv_heads_profile *profile) {
    const int64_t n_queries = heads->info.n_queries, n_keys = heads->info.n_keys;
    for (int64_t i = 0; i < n_queries && (profile->entropy || profile->largest); i++)
        measure_row(weights + i * n_keys, n_keys, profile->entropy ? profile->entropy + i : NULL,
                    profile->largest ? profile->largest + i : NULL);
    if (profile->received) sum_columns(weights, n_queries, n_keys, profile->received);
    if (profile->by_offset) mean_of_diagonals(heads, index, weights, profile->by_offset);
}
