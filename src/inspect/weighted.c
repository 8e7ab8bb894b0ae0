/**
 * The keys of each query with the largest p[j] g[j], in one pass over its weights: a sorted list,
 * into which a key is inserted after all that are not smaller.
 */
#include <math.h>

#include "attn/ctx.h"
#include "core/fpstate.h"
#include "core/ints.h"
#include "files/base.h"
#include "inspect/rows.h"
#include "qkv/patterns.h"

/* A block of rows, and where the lists of its first one go. */
typedef struct block {
    const qkvi_weight_rows *rows;
    const float *key_weights;
    int64_t n, n_top;
    int n_tasks;
    int64_t *keys; /* [n][n_top] */
    float *values;
} block;

static void put(const block *w, int64_t key, double value, double *values, int64_t *keys,
                int64_t *n) {
    int64_t at = *n;
    while (at > 0 && values[at - 1] < value) at--;
    if (at == w->n_top) return;
    if (*n < w->n_top) ++*n;
    for (int64_t e = *n - 1; e > at; e--) {
        values[e] = values[e - 1];
        keys[e] = keys[e - 1];
    }
    values[at] = value;
    keys[at] = key;
}

static void list_row(const block *w, int64_t i) {
    const int64_t n_keys = w->rows->batch.n_keys;
    const float *p = w->rows->p + i * n_keys;
    int64_t *keys = w->keys + i * w->n_top, n = 0;
    double values[QKV_WEIGHTED_MAX_TOP];
    bool nan = false;
    for (int64_t j = 0; j < n_keys; j++) {
        const double value = (double)p[j] * (double)w->key_weights[j];
        nan |= isnan(value);
        if (value > 0) put(w, j, value, values, keys, &n);
    }
    if (nan) n = 0;
    for (int64_t e = 0; e < w->n_top; e++) {
        if (e >= n) keys[e] = -1;
        w->values[i * w->n_top + e] = nan ? NAN : e < n ? (float)values[e] : 0;
    }
}

static void run_rows(void *argument, int index) {
    const block *w = argument;
    for (int64_t i = index; i < w->n; i += w->n_tasks) list_row(w, i);
}

static qkv_status list_blocks(qkv_ctx *ctx, const qkvi_weight_rows *rows, block *w,
                              const qkv_call_options *call, qkv_error *error) {
    const int64_t n_queries = rows->batch.n_queries;
    for (int64_t i0 = 0; i0 < n_queries; i0 += w->n) {
        w->n = qkvi_min_i64(rows->at_once, n_queries - i0);
        QKV_TRY(qkvi_rows_get(ctx, rows, i0, i0 + w->n, error));
        qkvi_pool_run(ctx->pool, w->n_tasks, run_rows, w);
        w->keys += w->n * w->n_top;
        w->values += w->n * w->n_top;
        QKV_TRY(qkvi_rows_watch(call, i0 + w->n, n_queries, error));
    }
    return QKV_OK;
}

static qkv_status check(const qkv_ctx *ctx, const float *key_weights, int64_t n_top,
                        const int64_t *keys, const float *values, qkv_error *error) {
    QKV_TRY(qkvi_need(ctx, "ctx", error));
    QKV_TRY(qkvi_need(key_weights, "key_weights", error));
    QKV_TRY(qkvi_need(keys, "keys", error));
    QKV_TRY(qkvi_need(values, "values", error));
    if (n_top >= 1 && n_top <= QKV_WEIGHTED_MAX_TOP) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "n_top = %lld is not between 1 and %d",
                          (long long)n_top, QKV_WEIGHTED_MAX_TOP);
}

static qkv_status check_weights(int64_t n_keys, const float *key_weights, qkv_error *error) {
    for (int64_t j = 0; j < n_keys; j++)
        if (!(key_weights[j] >= 0) || isinf(key_weights[j]))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "key_weights[%lld] = %g is not finite and at least 0",
                                  (long long)j, (double)key_weights[j]);
    return QKV_OK;
}

qkv_status qkv_inspect_weighted_top(qkv_ctx *ctx, const qkv_head_view *head,
                                    const float *key_weights, int64_t n_top, int64_t *keys,
                                    float *values, const qkv_call_options *given,
                                    qkv_error *error) {
    qkvi_weight_rows rows = { .p = NULL };
    qkv_call_options call;
    QKV_TRY(check(ctx, key_weights, n_top, keys, values, error));
    QKV_TRY(qkvi_rows_call(given, &call, error));
    qkv_status status = qkvi_rows_begin("head", head, &rows, error);
    if (status == QKV_OK) status = check_weights(rows.batch.n_keys, key_weights, error);
    block w = { .rows = &rows,
                .key_weights = key_weights,
                .n_top = n_top,
                .n_tasks = qkvi_pool_threads(ctx->pool),
                .keys = keys,
                .values = values };
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    if (status == QKV_OK) status = list_blocks(ctx, &rows, &w, &call, error);
    qkvi_fpstate_leave(saved);
    qkvi_rows_end(&rows);
    return status;
}

/* ---- Votes of keys --------------------------------------------------------------------------- */

/* Votes of keys, pooled over neighbours (SnapKV: Li et al. 2024). */

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
