/**
 * Attention rollout (Abnar and Zuidema 2020) of chosen output tokens. A row vector x goes down
 * through the layers: x <- x (A + I) / 2, where A is the mean of the heads, or x <- x D (F + I),
 * where F is the largest or smallest weight of any head and D makes rows sum to 1. The product of
 * the matrices is never formed. Means take one pass over columns, weighted by x; F is made some
 * rows at a time. The row of a query that sees no key is that of I.
 */
#include <math.h>

#include "attn/ctx.h"
#include "core/fpstate.h"
#include "core/ints.h"
#include "files/base.h"
#include "inspect/rollout.h"
#include "inspect/rows.h"
#include "qkv/inspect.h"

/* ---- One layer ------------------------------------------------------------------------------- */

typedef struct layer {
    const qkv_attention_desc *d;
    const float *lse;
    int64_t n_rows;  /* of all batches */
    float *received; /* [n_batch][n_heads][len], of packed sequences [n_heads][n_rows] */
} layer;

static bool is_packed(const qkv_attention_desc *d) { return d->flags & QKV_SET_CU_SEQLENS; }

/* Queries of batch b, and the first among those of all. */
static int64_t len_of(const qkv_attention_desc *d, int64_t b) {
    return is_packed(d) ? d->cu_seqlens_q[b + 1] - d->cu_seqlens_q[b] : d->len_q;
}
static int64_t first_of(const qkv_attention_desc *d, int64_t b) {
    return is_packed(d) ? d->cu_seqlens_q[b] : b * d->len_q;
}

qkv_status qkvi_rollout_check_heads(qkv_rollout_heads heads, qkv_error *error) {
    if ((int)heads >= QKV_ROLLOUT_MEAN && heads <= QKV_ROLLOUT_MIN) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                          "heads = %d is none of QKV_ROLLOUT_MEAN, _MAX, _MIN", (int)heads);
}

/* Every query is a key, at the same place. Reads the descriptor, whatever it holds. */
static qkv_status check_square(const qkv_attention_desc *d, int64_t *n_rows, qkv_error *error) {
    *n_rows = 0;
    for (int64_t b = 0; b < d->n_batch; b++) {
        qkvi_batch batch;
        QKV_TRY(qkvi_batch_read(d, b, &batch, error));
        if (len_of(d, b) != batch.n_keys || batch.offset != 0)
            return qkvi_error_set(
                error, QKV_ERR_SHAPE,
                "batch %lld has %lld queries from position %lld on and %lld keys; "
                "rollout needs a key at the place of each query",
                (long long)b, (long long)len_of(d, b), (long long)batch.offset,
                (long long)batch.n_keys);
        *n_rows += batch.n_keys;
    }
    return QKV_OK;
}

/* What each key receives in each head. */
static qkv_status receive(qkv_ctx *ctx, const layer *w, const void *q, const void *k,
                          const float *x, qkv_error *error) {
    qkv_attention_columns columns;
    qkv_attention_columns_contiguous(&columns, w->d);
    columns.received = w->received;
    columns.row_weights = x;
    columns.row_weights_stride[1] = 0;
    columns.row_weights_stride[0] = is_packed(w->d) ? 0 : w->d->len_q;
    return qkvi_ctx_told(ctx, qkv_attention_columns_pass(ctx, w->d, q, k, w->lse, &columns, NULL),
                         error);
}

/* lse of query i, or 0 for a row that does not count. */
static float lse_of(const layer *w, int64_t b, int64_t h, int64_t i) {
    const qkv_attention_desc *d = w->d;
    const int64_t row = is_packed(d) ? first_of(d, b) + i : i;
    if (d->flags & QKV_SET_Q_LEN && i >= d->q_len[b]) return -INFINITY;
    return w->lse[(is_packed(d) ? 0 : b * d->lse_stride[0]) + h * d->lse_stride[1] +
                  row * d->lse_stride[2]];
}

static float step_of(const layer *w, int64_t b, int64_t j, float x) {
    const qkv_attention_desc *d = w->d;
    double sum = 0;
    for (int64_t h = 0; h < d->n_heads; h++) {
        const int64_t at =
            is_packed(d) ? h * w->n_rows + first_of(d, b) + j : (b * d->n_heads + h) * d->len_k + j;
        sum += (double)w->received[at];
        if (lse_of(w, b, h, j) == -INFINITY) sum += (double)x;
    }
    const double mean = d->n_heads ? sum / (double)d->n_heads : (double)x;
    return (float)((mean + (double)x) / 2);
}

/* Does a row that is NaN in some head have a part in x? */
static bool is_lost(const layer *w, int64_t b, const float *x) {
    for (int64_t h = 0; h < w->d->n_heads; h++)
        for (int64_t i = 0; i < len_of(w->d, b); i++) {
            const float lse = lse_of(w, b, h, i);
            if (x[i] != 0 && (isnan(lse) || lse == INFINITY)) return true;
        }
    return false;
}

static void finish(const layer *w, const float *x, float *y) {
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    for (int64_t b = 0; b < w->d->n_batch; b++) {
        const int64_t first = first_of(w->d, b);
        const bool lost = is_lost(w, b, x + first);
        for (int64_t j = 0; j < len_of(w->d, b); j++)
            y[first + j] = lost ? NAN : step_of(w, b, j, x[first + j]);
    }
    qkvi_fpstate_leave(saved);
}

static qkv_status mean_step(qkv_ctx *ctx, layer *w, const void *q, const void *k, const float *x,
                            float *y, qkv_error *error) {
    int64_t n_floats;
    if (qkvi_mul_i64(w->n_rows, w->d->n_heads, &n_floats))
        w->received = qkvi_malloc_array((size_t)qkvi_max_i64(n_floats, 1), sizeof *w->received);
    if (!w->received)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld heads of %lld weights",
                              (long long)w->d->n_heads, (long long)w->n_rows);
    const qkv_status status = receive(ctx, w, q, k, x, error);
    if (status == QKV_OK) finish(w, x, y);
    free(w->received);
    return status;
}

/* ---- One layer, by the largest or the smallest weight of any head ---------------------------- */

/* The rows [i0, i1) of one batch. */
typedef struct fused {
    const layer *w;
    const float *x;        /* [n] of the batch */
    qkvi_weight_rows rows; /* of one head */
    int64_t b, n, i0, i1;
    qkv_rollout_heads heads;
    int n_tasks;
    float *f;    /* [at_once][n]: of the heads so far */
    double *sum; /* [n]: what tokens receive */
} fused;

static bool any_counts(const fused *s) {
    for (int64_t i = s->i0; i < s->i1; i++)
        if (s->x[i] != 0) return true;
    return false;
}

void qkvi_rollout_fuse(qkv_rollout_heads heads, int64_t h, int64_t i, int64_t n, float lse,
                       float *p, float *f) {
    if (lse == -INFINITY) p[i] = 1;
    for (int64_t j = 0; j < n; j++) {
        if (h == 0)
            f[j] = p[j];
        else if (heads == QKV_ROLLOUT_MEAN)
            f[j] += p[j];
        else if (heads == QKV_ROLLOUT_MIN ? p[j] < f[j] : p[j] > f[j])
            f[j] = p[j];
    }
}

/* Adds a head, whose weights are rows.p. */
static void fuse(const fused *s, int64_t h) {
    for (int64_t i = s->i0; i < s->i1; i++)
        qkvi_rollout_fuse(s->heads, h, i, s->n, lse_of(s->w, s->b, h, i),
                          s->rows.p + (i - s->i0) * s->n, s->f + (i - s->i0) * s->n);
}

/* Columns are independent: any division gives the same bits. */
static void add_columns(void *argument, int index) {
    const fused *const s = argument;
    const int64_t first = s->n * index / s->n_tasks, end = s->n * (index + 1) / s->n_tasks;
    for (int64_t i = s->i0; i < s->i1; i++) {
        const float *const f = s->f + (i - s->i0) * s->n;
        if (s->x[i] == 0 || first == end) continue;
        const double share = (double)s->x[i] / (qkvi_row_sum(f, s->n) + 1);
        for (int64_t j = first; j < end; j++)
            s->sum[j] += share * ((double)f[j] + (j == i ? 1 : 0));
    }
}

static qkv_status fuse_rows(qkv_ctx *ctx, fused *s, qkv_error *error) {
    for (s->i0 = 0; s->i0 < s->n; s->i0 = s->i1) {
        s->i1 = qkvi_min_i64(s->i0 + s->rows.at_once, s->n);
        if (!any_counts(s)) continue;
        for (int64_t h = 0; h < s->w->d->n_heads; h++) {
            s->rows.head.h = h;
            QKV_TRY(qkvi_rows_get(ctx, &s->rows, s->i0, s->i1, error));
            fuse(s, h);
        }
        qkvi_pool_run(ctx->pool, s->n_tasks, add_columns, s);
    }
    return QKV_OK;
}

static qkv_status fused_batch(qkv_ctx *ctx, const layer *w, const void *q, const void *k,
                              qkv_rollout_heads heads, int64_t b, const float *x, float *y,
                              qkv_error *error) {
    qkv_head_view view = qkv_head_view_init();
    fused s = { .w = w, .x = x + first_of(w->d, b), .b = b, .n = len_of(w->d, b), .heads = heads };
    view.desc = w->d, view.q = q, view.k = k, view.lse = w->lse, view.b = b;
    QKV_TRY(qkvi_rows_begin("desc", &view, &s.rows, error));
    s.n_tasks = qkvi_pool_threads(ctx->pool);
    s.f = qkvi_malloc_array((size_t)qkvi_max_i64(s.rows.at_once * s.n, 1), sizeof *s.f);
    s.sum = qkvi_calloc_array((size_t)s.n + 1, sizeof *s.sum);
    qkv_status status = s.f && s.sum ? QKV_OK : qkvi_no_memory(error, "rows of weights");
    if (status == QKV_OK) status = fuse_rows(ctx, &s, error);
    const bool lost = status == QKV_OK && is_lost(w, b, s.x);
    for (int64_t j = 0; status == QKV_OK && j < s.n; j++)
        y[first_of(w->d, b) + j] = lost ? NAN : (float)s.sum[j];
    free(s.f);
    free(s.sum);
    qkvi_rows_end(&s.rows);
    return status;
}

static qkv_status fused_step(qkv_ctx *ctx, const layer *w, const void *q, const void *k,
                             qkv_rollout_heads heads, const float *x, float *y, qkv_error *error) {
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkv_status status = QKV_OK;
    for (int64_t b = 0; status == QKV_OK && b < w->d->n_batch; b++)
        status = fused_batch(ctx, w, q, k, heads, b, x, y, error);
    qkvi_fpstate_leave(saved);
    return status;
}

qkv_status qkv_inspect_rollout_step(qkv_ctx *ctx, const qkv_attention_desc *desc, const void *q,
                                    const void *k, const float *lse, qkv_rollout_heads heads,
                                    const float *x, float *y, qkv_error *error) {
    layer w = { .d = desc, .lse = lse };
    QKV_TRY(qkvi_need(ctx, "ctx", error));
    QKV_TRY(qkvi_need(desc, "desc", error));
    QKV_TRY(qkvi_need(x, "x", error));
    QKV_TRY(qkvi_need(y, "y", error));
    QKV_TRY(qkvi_rollout_check_heads(heads, error));
    QKV_TRY(check_square(desc, &w.n_rows, error));
    if (heads == QKV_ROLLOUT_MEAN || desc->n_heads == 0)
        return mean_step(ctx, &w, q, k, x, y, error);
    return fused_step(ctx, &w, q, k, heads, x, y, error);
}

/* ---- All layers of a run --------------------------------------------------------------------- */

void qkvi_rollout_describe(const qkv_capture *capture, qkv_attention_desc *desc) {
    qkv_attention_desc_contiguous(desc, 1, capture->n_heads, capture->n_kv_heads, capture->n,
                                  capture->n_keys, capture->head_dim, 0);
    desc->scale = capture->scale;
    desc->flags |= QKV_SET_SCALE;
    if (capture->causal) desc->flags |= QKV_SET_CAUSAL;
    if (capture->window_left >= 0 || capture->window_right >= 0) desc->flags |= QKV_SET_WINDOW;
    desc->window_left = capture->window_left;
    desc->window_right = capture->window_right;
    if (capture->softcap > 0) desc->flags |= QKV_SET_SOFTCAP;
    desc->softcap = capture->softcap;
    if (capture->alibi_slopes) desc->flags |= QKV_SET_ALIBI;
    desc->alibi_slopes = capture->alibi_slopes;
    if (capture->distance_bias) desc->flags |= QKV_SET_DISTANCE_BIAS;
    desc->distance_bias = capture->distance_bias;
    desc->distance_bias_stride = capture->distance_bias_stride;
    desc->distance_before = capture->distance_before;
    desc->distance_after = capture->distance_after;
    if (!capture->seen && !capture->uncut) return;
    desc->flags |= QKV_SET_MASK; /* the same keys for every query, unless edges are cut */
    desc->mask = capture->uncut ? capture->uncut : capture->seen;
    desc->mask_type = QKV_MASK_BOOL;
    desc->mask_stride[1] = capture->uncut ? capture->uncut_stride : 0;
    desc->mask_stride[2] = capture->uncut ? capture->n_keys : 0;
    desc->mask_stride[3] = 1;
}

static qkv_status step_of_run(qkv_ctx *ctx, const qkv_run *run, int64_t b, int64_t at,
                              qkv_rollout_heads heads, float *x, qkv_error *error) {
    qkv_capture c = qkv_capture_init();
    qkv_attention_desc d;
    QKV_TRY(qkv_run_capture(run, QKV_SELF, b, at, &c, error));
    qkvi_rollout_describe(&c, &d);
    return qkv_inspect_rollout_step(ctx, &d, c.q, c.k, c.lse, heads, x, x, error);
}

static qkv_status check_run(const qkv_ctx *ctx, const qkv_model *model, const qkv_run *run,
                            int64_t b, int64_t first, int64_t end, const float *received,
                            int64_t *n, qkv_error *error) {
    qkv_capture capture = qkv_capture_init();
    QKV_TRY(qkvi_need(ctx, "ctx", error));
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(run, "run", error));
    QKV_TRY(qkvi_need(received, "received", error));
    QKV_TRY(qkv_run_capture(run, QKV_SELF, b, 0, &capture, error));
    *n = capture.n;
    if (first >= 0 && first < end && end <= capture.n) return QKV_OK;
    return qkvi_error_set(
        error, QKV_ERR_ARGUMENT,
        "[first, end) = [%lld, %lld) has no token, or one that is not in [0, %lld)",
        (long long)first, (long long)end, (long long)capture.n);
}

qkv_status qkv_inspect_rollout(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                               int64_t first, int64_t end, qkv_rollout_heads heads, float *received,
                               qkv_error *error) {
    int64_t n = 0;
    QKV_TRY(qkvi_rollout_check_heads(heads, error));
    QKV_TRY(check_run(ctx, model, run, b, first, end, received, &n, error));
    float *const x = qkvi_calloc_array((size_t)n, sizeof *x);
    if (!x) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld tokens", (long long)n);
    qkv_status status = QKV_OK;
    for (int64_t i = first; i < end; i++) x[i] = 1 / (float)(end - first);
    for (int64_t at = qkv_model_get_info(model)->n_layers - 1;
         status == QKV_OK && at >= 0 && !isnan(x[0]); at--) /* NaN is everywhere, and stays */
        status = step_of_run(ctx, run, b, at, heads, x, error);
    if (status == QKV_OK) memcpy(received, x, (size_t)n * sizeof *x);
    free(x);
    return status;
}
