/**
 * Attention rollout (Abnar and Zuidema 2020) of all output tokens of a run. R begins as I and goes
 * up through the layers:
 *     R <- (A + I) / 2 R                 A: the mean of the heads
 *     R <- D (F + I) R                   F: the largest or smallest weight of any head, D: rows of
 *                                        D (F + I) sum to 1
 * Row i of R is what qkv_inspect_rollout computes of token i alone, by as many walks as there are
 * tokens. A weight of 0 adds nothing, whatever it multiplies, so that rows that are NaN stay with
 * the tokens that see them.
 */
#include <math.h>

#include "attn/ctx.h"
#include "core/fpstate.h"
#include "core/ints.h"
#include "inspect/rollout.h"
#include "inspect/rows.h"
#include "model/run_impl.h"

enum { MOST_CELLS = 1 << 28 };

/* One layer; rows [i0, i1) of its weights are in f. */
typedef struct layer {
    const qkv_capture *c;
    qkv_rollout_heads heads;
    qkvi_weight_rows rows; /* of one head */
    int64_t n, i0, i1;
    int n_tasks;
    float *f;          /* [at_once][n] */
    double *sums;      /* [n_tasks][n] */
    const float *from; /* R of the layers below, [n][n] */
    float *to;
} layer;

static bool is_lost(const layer *w, int64_t i) {
    for (int64_t h = 0; h < w->c->n_heads; h++) {
        const float lse = w->c->lse[h * w->n + i];
        if (isnan(lse) || lse == INFINITY) return true;
    }
    return false;
}

static void add_row(double share, int64_t n, const float *row, double *sum) {
    for (int64_t j = 0; j < n; j++) sum[j] += share * (double)row[j];
}

/* Row i of the product, by way of sum [n]. */
static void multiply_row(const layer *w, int64_t i, double *sum) {
    const int64_t n = w->n;
    const float *const f = w->f + (i - w->i0) * n;
    const bool mean = w->heads == QKV_ROLLOUT_MEAN, lost = is_lost(w, i);
    const double each = mean ? 0.5 / (double)w->c->n_heads : 1 / (qkvi_row_sum(f, n) + 1);
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t k = 0; !lost && k < n; k++)
        if (f[k] != 0) add_row(each * (double)f[k], n, w->from + k * n, sum);
    add_row(mean ? 0.5 : each, n, w->from + i * n, sum);
    for (int64_t j = 0; j < n; j++) w->to[i * n + j] = lost ? NAN : (float)sum[j];
}

/* Rows are independent: any division gives the same bits. */
static void multiply_rows(void *argument, int index) {
    const layer *const w = argument;
    const int64_t n_rows = w->i1 - w->i0, first = n_rows * index / w->n_tasks,
                  end = n_rows * (index + 1) / w->n_tasks;
    for (int64_t i = w->i0 + first; i < w->i0 + end; i++)
        multiply_row(w, i, w->sums + index * w->n);
}

static qkv_status pass(qkv_ctx *ctx, layer *w, qkv_error *error) {
    for (w->i0 = 0; w->i0 < w->n; w->i0 = w->i1) {
        w->i1 = qkvi_min_i64(w->i0 + w->rows.at_once, w->n);
        for (int64_t h = 0; h < w->c->n_heads; h++) {
            w->rows.head.h = h;
            QKV_TRY(qkvi_rows_get(ctx, &w->rows, w->i0, w->i1, error));
            for (int64_t i = w->i0; i < w->i1; i++)
                qkvi_rollout_fuse(w->heads, h, i, w->n, w->c->lse[h * w->n + i],
                                  w->rows.p + (i - w->i0) * w->n, w->f + (i - w->i0) * w->n);
        }
        qkvi_pool_run(ctx->pool, w->n_tasks, multiply_rows, w);
    }
    return QKV_OK;
}

static qkv_status step(qkv_ctx *ctx, const qkv_capture *c, qkv_rollout_heads heads,
                       const float *from, float *to, qkv_error *error) {
    qkv_attention_desc desc;
    qkv_head_view view = qkv_head_view_init();
    layer w = { .c = c, .heads = heads, .n = c->n, .from = from, .to = to };
    qkvi_rollout_describe(c, &desc);
    view.desc = &desc, view.q = c->q, view.k = c->k, view.lse = c->lse;
    QKV_TRY(qkvi_rows_begin("run", &view, &w.rows, error));
    w.n_tasks = qkvi_pool_threads(ctx->pool);
    w.f = qkvi_malloc_array((size_t)(w.rows.at_once * w.n), sizeof *w.f);
    w.sums = qkvi_malloc_array((size_t)w.n_tasks, (size_t)w.n * sizeof *w.sums);
    qkv_status status = w.f && w.sums ? QKV_OK : qkvi_no_memory(error, "rows of weights");
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    if (status == QKV_OK) status = pass(ctx, &w, error);
    qkvi_fpstate_leave(saved);
    free(w.f);
    free(w.sums);
    qkvi_rows_end(&w.rows);
    return status;
}

/* All layers: the last one writes to map. */
static qkv_status walk(qkv_ctx *ctx, const qkv_run *run, qkv_attention_kind which, int64_t b,
                       qkv_rollout_heads heads, int64_t n, float *map, float *other,
                       qkv_error *error) {
    const int64_t n_layers = run->parts[which].n_layers;
    float *const both[2] = { map, other };
    float *const start = both[n_layers % 2];
    memset(start, 0, (size_t)(n * n) * sizeof *start);
    for (int64_t i = 0; i < n; i++) start[i * n + i] = 1;
    for (int64_t l = 0; l < n_layers; l++) {
        qkv_capture c = qkv_capture_init();
        QKV_TRY(qkv_run_capture(run, which, b, l, &c, error));
        QKV_TRY(
            step(ctx, &c, heads, both[(n_layers - l) % 2], both[(n_layers - l + 1) % 2], error));
    }
    return QKV_OK;
}

qkv_status qkv_inspect_rollout_map(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run,
                                   qkv_attention_kind which, int64_t b, qkv_rollout_heads heads,
                                   float *map, qkv_error *error) {
    qkv_capture c = qkv_capture_init();
    QKV_TRY(qkvi_rollout_check_heads(heads, error));
    QKV_TRY(qkvi_run_check(ctx, model, run, b, map, "map", error));
    if (which == QKV_CROSS)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "rollout of cross-attention: queries and keys are of two texts, and "
                              "a layer does not read what the layer before it wrote");
    QKV_TRY(qkv_run_capture(run, which, b, 0, &c, error));
    const int64_t n = c.n;
    if (n * n > MOST_CELLS)
        return qkvi_error_set(error, QKV_ERR_LIMIT,
                              "rollout of all %lld tokens has more than %d cells", (long long)n,
                              MOST_CELLS);
    float *const other = qkvi_malloc_array((size_t)(n * n), sizeof *other);
    if (!other) return qkvi_no_memory(error, "a rollout");
    const qkv_status status = walk(ctx, run, which, b, heads, n, map, other, error);
    free(other);
    return status;
}
