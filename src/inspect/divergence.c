/**
 * Jensen-Shannon divergence of the rows of two heads: with m = (p + g) / 2,
 *     JS = 1/2 sum (p ln p + g ln g) - sum m ln m
 * over smoothed weights. A key that neither head sees has the same smoothed weight in both, and
 * adds nothing.
 */
#include <math.h>

#include "attn/ctx.h"
#include "attn/problem.h"
#include "core/fpstate.h"
#include "core/ints.h"
#include "core/options.h"
#include "inspect/rows.h"
#include "qkv/heads.h"

/* A block of rows of both heads. */
typedef struct block {
    const qkvi_weight_rows *x, *y;
    double smoothing;
    int64_t n; /* rows */
    int n_tasks;
    double *js; /* [n]; NaN: left out */
} block;

static double x_log_x(double x) { return x > 0 ? x * log(x) : 0; }

static double divergence_of(const float *x, const float *y, int64_t n, double smoothing) {
    const double of_x = qkvi_row_sum(x, n), of_y = qkvi_row_sum(y, n);
    if (!(of_x > 0) || !(of_y > 0)) return NAN;
    const double keep_x = (1 - smoothing) / of_x, keep_y = (1 - smoothing) / of_y;
    const double add = smoothing / (double)n;
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        const double p = fma(keep_x, (double)x[j], add), g = fma(keep_y, (double)y[j], add);
        if (p != g) sum += (x_log_x(p) + x_log_x(g)) / 2 - x_log_x((p + g) / 2);
    }
    return sum > 0 ? sum : 0;
}

/* Rows are independent: any division gives the same bits. */
static void run_rows(void *argument, int index) {
    const block *w = argument;
    const int64_t n = w->x->batch.n_keys;
    for (int64_t i = index; i < w->n; i += w->n_tasks)
        w->js[i] = divergence_of(w->x->p + i * n, w->y->p + i * n, n, w->smoothing);
}

static qkv_status add_blocks(qkv_ctx *ctx, const qkvi_weight_rows *x, const qkvi_weight_rows *y,
                             double smoothing, double *rows, qkv_divergence *out,
                             const qkv_call_options *call, qkv_error *error) {
    enum { MOST = 512 };
    double js[MOST];
    const int64_t n_queries = x->batch.n_queries, step = qkvi_min_i64(x->at_once, MOST);
    for (int64_t i0 = 0; i0 < n_queries; i0 += step) {
        const int64_t i1 = qkvi_min_i64(i0 + step, n_queries);
        block w = { x, y, smoothing, i1 - i0, qkvi_pool_threads(ctx->pool), js };
        QKV_TRY(qkvi_rows_get(ctx, x, i0, i1, error));
        QKV_TRY(qkvi_rows_get(ctx, y, i0, i1, error));
        qkvi_pool_run(ctx->pool, w.n_tasks, run_rows, &w);
        for (int64_t i = 0; i < w.n; i++) {
            if (rows) rows[i0 + i] = js[i];
            out->n_left_out += isnan(js[i]) != 0;
            if (!isnan(js[i])) out->sum += js[i], out->n_rows++;
        }
        QKV_TRY(qkvi_rows_watch(call, i1, n_queries, error));
    }
    out->mean = out->n_rows ? out->sum / (double)out->n_rows : 0;
    return QKV_OK;
}

static qkv_status check_shapes(const qkvi_batch *x, const qkvi_batch *y, qkv_error *error) {
    if (x->n_queries == y->n_queries && x->n_keys == y->n_keys) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_SHAPE,
                          "x has %lld queries and %lld keys, y has %lld and %lld",
                          (long long)x->n_queries, (long long)x->n_keys, (long long)y->n_queries,
                          (long long)y->n_keys);
}

qkv_status qkv_inspect_divergence(qkv_ctx *ctx, const qkv_head_view *of_x,
                                  const qkv_head_view *of_y, double smoothing, double *rows,
                                  qkv_divergence *divergence, const qkv_call_options *given,
                                  qkv_error *error) {
    qkvi_weight_rows x = { .p = NULL }, y = x;
    qkv_divergence sums = qkv_divergence_init();
    qkv_call_options call;
    if (!ctx || !divergence)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", ctx ? "divergence" : "ctx");
    if (!(smoothing >= 0 && smoothing <= 1))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "smoothing = %g is not in [0, 1]",
                              smoothing);
    QKV_TRY(qkvi_options_read(&sums, sizeof sums, divergence, "qkv_divergence", error));
    QKV_TRY(qkvi_rows_call(given, &call, error));
    sums = qkv_divergence_init();
    qkv_status status = qkvi_rows_begin("x", of_x, &x, error);
    if (status == QKV_OK) status = qkvi_rows_begin("y", of_y, &y, error);
    if (status == QKV_OK) status = check_shapes(&x.batch, &y.batch, error);
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    if (status == QKV_OK) status = add_blocks(ctx, &x, &y, smoothing, rows, &sums, &call, error);
    qkvi_fpstate_leave(saved);
    if (status == QKV_OK) qkvi_options_write(divergence, &sums, sizeof sums);
    qkvi_rows_end(&x);
    qkvi_rows_end(&y);
    return status;
}

/* ---- Heads unlike each other ----------------------------------------------------------------- */

/*
 * d(a, b) = sqrt(mean over numbers of ((a - b) / sd)^2), sd the standard deviation of the number
 * over all heads; numbers without a spread, or that a head lacks, are left out.
 */

/* The standard deviation of a number over all heads; 0 if one of them has no such number. */
static double deviation(int64_t n, const double *numbers, int c) {
    const int width = qkv_head_number_count();
    double mean = 0, sum = 0;
    for (int64_t h = 0; h < n; h++) mean += numbers[h * width + c];
    mean /= (double)n;
    for (int64_t h = 0; h < n; h++) {
        const double off = numbers[h * width + c] - mean;
        sum += off * off;
    }
    return isnan(sum) ? 0 : sqrt(sum / (double)n);
}

void qkv_heads_unlike(int64_t n, const double *numbers, int64_t to, double *distances) {
    const int width = qkv_head_number_count();
    int n_used = 0;
    if (!numbers || !distances || to < 0 || to >= n) return;
    for (int64_t h = 0; h < n; h++) distances[h] = 0;
    for (int c = 0; c < width; c++) {
        const double scale = qkv_head_number_at(c)->alike ? deviation(n, numbers, c) : 0;
        if (!(scale > 0)) continue;
        n_used++;
        for (int64_t h = 0; h < n; h++) {
            const double z = (numbers[h * width + c] - numbers[to * width + c]) / scale;
            distances[h] += z * z;
        }
    }
    for (int64_t h = 0; h < n; h++) distances[h] = n_used ? sqrt(distances[h] / n_used) : 0;
}
