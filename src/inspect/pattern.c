/**
 * How well the weights A [n][n_keys] of a head fit a pattern D of zeros and ones, in one pass:
 *     mul = sum A D / sum A,   abs = 1 - (1 / n) sum |A - D|,   |A - D| = A + D (|A - 1| - A)
 */
#include <math.h>

#include "attn/ctx.h"
#include "core/fpstate.h"
#include "core/ints.h"
#include "core/options.h"
#include "inspect/rows.h"

/* Of one row, or of all. */
typedef struct sums {
    double on, total, apart;
    int64_t n_cells;
} sums;

/* A block of rows. */
typedef struct block {
    const qkvi_weight_rows *rows;
    qkv_pattern_kind kind;
    const int32_t *ids;
    int64_t i0, n;
    int n_tasks;
    sums *of; /* [n]; total NaN: left out */
} block;

static bool is_on(const block *w, int64_t at, int64_t j) {
    switch (w->kind) {
    case QKV_PATTERN_PREVIOUS: return j == at - 1;
    case QKV_PATTERN_DUPLICATE: return j < at && w->ids[j] == w->ids[at];
    case QKV_PATTERN_INDUCTION: return j >= 1 && j <= at && w->ids[j - 1] == w->ids[at];
    default: return j != at && w->ids[j] == w->ids[at];
    }
}

static sums sums_of(const block *w, int64_t i) {
    const int64_t n = w->rows->batch.n_keys, at = w->i0 + i + w->rows->batch.offset;
    const float *p = w->rows->p + i * n;
    sums x = { .total = qkvi_row_sum(p, n) };
    if (at < 0 || at >= n || !(x.total > 0)) return (sums){ .total = NAN };
    x.apart = x.total;
    for (int64_t j = 0; j < n; j++) {
        if (!is_on(w, at, j)) continue;
        const double weight = (double)p[j];
        x.on += weight;
        x.apart += fabs(weight - 1) - weight;
        x.n_cells++;
    }
    return x;
}

static void run_rows(void *argument, int index) {
    const block *w = argument;
    for (int64_t i = index; i < w->n; i += w->n_tasks) w->of[i] = sums_of(w, i);
}

/* Rows in order. */
static void add_rows(const block *w, sums *all, qkv_pattern_match *match) {
    for (int64_t i = 0; i < w->n; i++) {
        const sums *x = &w->of[i];
        match->n_left_out += isnan(x->total) != 0;
        if (isnan(x->total)) continue;
        all->on += x->on;
        all->total += x->total;
        all->apart += x->apart;
        all->n_cells += x->n_cells;
        match->n_rows++;
    }
}

static qkv_status add_blocks(qkv_ctx *ctx, const qkvi_weight_rows *rows, qkv_pattern_kind kind,
                             const int32_t *ids, qkv_pattern_match *match,
                             const qkv_call_options *call, qkv_error *error) {
    enum { MOST = 128 };
    sums of[MOST], all = { 0 };
    const int64_t n_queries = rows->batch.n_queries, step = qkvi_min_i64(rows->at_once, MOST);
    for (int64_t i0 = 0; i0 < n_queries; i0 += step) {
        const int64_t n = qkvi_min_i64(step, n_queries - i0);
        block w = { rows, kind, ids, i0, n, qkvi_pool_threads(ctx->pool), of };
        QKV_TRY(qkvi_rows_get(ctx, rows, i0, i0 + n, error));
        qkvi_pool_run(ctx->pool, w.n_tasks, run_rows, &w);
        add_rows(&w, &all, match);
        QKV_TRY(qkvi_rows_watch(call, i0 + n, n_queries, error));
    }
    match->on = all.on;
    match->total = all.total;
    match->n_cells = all.n_cells;
    match->mul = all.total > 0 ? all.on / all.total : 0;
    match->abs = match->n_rows ? 1 - all.apart / (double)match->n_rows : 0;
    return QKV_OK;
}

qkv_status qkv_inspect_pattern(qkv_ctx *ctx, const qkv_head_view *head, qkv_pattern_kind kind,
                               const int32_t *ids, qkv_pattern_match *match,
                               const qkv_call_options *given, qkv_error *error) {
    qkvi_weight_rows rows = { .p = NULL };
    qkv_pattern_match found = qkv_pattern_match_init();
    qkv_call_options call;
    if (!ctx || !match)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", ctx ? "match" : "ctx");
    if (kind < QKV_PATTERN_PREVIOUS || kind > QKV_PATTERN_SAME)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "kind = %d is not a pattern", (int)kind);
    if (!ids && kind != QKV_PATTERN_PREVIOUS)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "ids is NULL");
    QKV_TRY(qkvi_options_read(&found, sizeof found, match, "qkv_pattern_match", error));
    QKV_TRY(qkvi_rows_call(given, &call, error));
    found = qkv_pattern_match_init();
    qkv_status status = qkvi_rows_begin("head", head, &rows, error);
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    if (status == QKV_OK) status = add_blocks(ctx, &rows, kind, ids, &found, &call, error);
    qkvi_fpstate_leave(saved);
    if (status == QKV_OK) qkvi_options_write(match, &found, sizeof found);
    qkvi_rows_end(&rows);
    return status;
}
