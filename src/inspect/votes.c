/** Votes of keys, pooled over neighbours (SnapKV: Li et al. 2024). */
#include <math.h>

#include "core/fpstate.h"
#include "core/ints.h"
#include "model/base.h"
#include "qkv/patterns.h"

static float pooled_at(int64_t n, const float *votes, int64_t j, int64_t reach, qkv_pool_kind kind,
                       int64_t width) {
    double sum = 0;
    float most = -INFINITY;
    for (int64_t e = qkvi_max_i64(j - reach, 0); e <= qkvi_min_i64(j + reach, n - 1); e++) {
        sum += (double)votes[e];
        if (votes[e] > most || isnan(votes[e])) most = votes[e];
        if (isnan(most)) return NAN;
    }
    return kind == QKV_POOL_MAX ? most : (float)(sum / (double)width);
}

qkv_status qkv_inspect_pool(int64_t n, const float *votes, int64_t width, qkv_pool_kind kind,
                            float *pooled, qkv_error *error) {
    if (n < 0) return qkvi_error_set(error, QKV_ERR_SHAPE, "n = %lld is negative", (long long)n);
    if (n > 0 && (!votes || !pooled))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", votes ? "pooled" : "votes");
    if (width < 1 || width % 2 == 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "width = %lld is not an odd number above 0",
                              (long long)width);
    if (kind != QKV_POOL_MEAN && kind != QKV_POOL_MAX)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "kind = %d is not a way of pooling",
                              (int)kind);
    const int64_t reach = qkvi_min_i64(width / 2, qkvi_max_i64(n, 1));
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    for (int64_t j = 0; j < n; j++) pooled[j] = pooled_at(n, votes, j, reach, kind, width);
    qkvi_fpstate_leave(saved);
    return QKV_OK;
}
