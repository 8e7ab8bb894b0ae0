/* See distances.h. */
#include "model/layer/distances.h"

#include <math.h>

/*
 * As torch has it, in floats: the boundaries of buckets are where these round to. Only the
 * logarithm is that of a double, rounded.
 */
static int64_t bucket_of(int64_t n, int64_t n_buckets, int64_t most) {
    const int64_t exact = n_buckets / 2;
    if (n < exact) return n;
    const float ratio = (float)n / (float)exact, span = (float)log((double)most / (double)exact);
    const float at = (float)log((double)ratio) / span * (float)(n_buckets - exact);
    const int64_t bucket = exact + (int64_t)fminf(at, (float)n_buckets);
    return bucket < n_buckets ? bucket : n_buckets - 1;
}

int64_t qkvi_distance_bucket(const qkvi_distance_bias *d, int64_t distance) {
    if (d->causal) return bucket_of(distance < 0 ? -distance : 0, d->n_buckets, d->most);
    const int64_t half = d->n_buckets / 2;
    return (distance > 0 ? half : 0) +
           bucket_of(distance < 0 ? -distance : distance, half, d->most);
}

void qkvi_distance_bias_fill(const qkvi_distance_bias *d) {
    const int64_t n = qkvi_distance_bias_size(d);
    for (int64_t at = 0; at < n; at++) {
        const float *const row = d->table + qkvi_distance_bucket(d, at - d->most) * d->n_heads;
        for (int64_t h = 0; h < d->n_heads; h++) d->bias[h * n + at] = row[h];
    }
}

void qkvi_distance_bias_describe(const qkvi_distance_bias *d, qkv_attention_desc *desc) {
    desc->flags |= QKV_SET_DISTANCE_BIAS;
    desc->distance_bias = d->bias;
    desc->distance_bias_stride = qkvi_distance_bias_size(d);
    desc->distance_before = d->most;
    desc->distance_after = d->causal ? 0 : d->most;
}

void qkvi_distance_bias_backward(const qkvi_distance_bias *d, const float *d_bias, float *d_table) {
    const int64_t n = qkvi_distance_bias_size(d);
    for (int64_t at = 0; at < n; at++) {
        float *const row = d_table + qkvi_distance_bucket(d, at - d->most) * d->n_heads;
        for (int64_t h = 0; h < d->n_heads; h++) row[h] += d_bias[h * n + at];
    }
}
