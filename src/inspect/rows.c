/* See rows.h. */
#include "inspect/rows.h"

#include "core/cancel.h"
#include "core/ints.h"
#include "core/options.h"
#include "files/base.h"

enum { LEAST_ROWS = 16, MOST_ROWS = 512, BLOCK_WEIGHTS = 1 << 20 };

static qkv_status read_view(const char *name, const qkv_head_view *given, qkv_head_view *head,
                            qkv_error *error) {
    if (!given) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", name);
    *head = qkv_head_view_init();
    QKV_TRY(qkvi_options_read(head, sizeof *head, given, name, error));
    if (!head->desc) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s.desc is NULL", name);
    return QKV_OK;
}

/* More rows at once save packing the keys as often; two million keys leave room for few. */
static int64_t rows_at_once(int64_t n_queries, int64_t n_keys) {
    const int64_t keys = qkvi_max_i64(n_keys, 1);
    int64_t n = qkvi_min_i64(qkvi_max_i64(BLOCK_WEIGHTS / keys, LEAST_ROWS), MOST_ROWS);
    n = qkvi_min_i64(n, qkvi_max_i64(QKV_WEIGHTS_MAX_CELLS / keys, 1));
    return qkvi_max_i64(qkvi_min_i64(n, n_queries), 1);
}

qkv_status qkvi_rows_begin(const char *name, const qkv_head_view *head, qkvi_weight_rows *rows,
                           qkv_error *error) {
    int64_t n_weights;
    rows->p = NULL;
    QKV_TRY(read_view(name, head, &rows->head, error));
    QKV_TRY(qkvi_batch_read(rows->head.desc, rows->head.b, &rows->batch, error));
    rows->at_once = rows_at_once(rows->batch.n_queries, rows->batch.n_keys);
    if (qkvi_mul_i64(rows->at_once, rows->batch.n_keys, &n_weights))
        rows->p = qkvi_malloc_array((size_t)qkvi_max_i64(n_weights, 1), sizeof *rows->p);
    if (rows->p) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld rows of %lld weights",
                          (long long)rows->at_once, (long long)rows->batch.n_keys);
}

void qkvi_rows_end(qkvi_weight_rows *rows) { free(rows->p); }

qkv_status qkvi_rows_get(qkv_ctx *ctx, const qkvi_weight_rows *rows, int64_t i0, int64_t i1,
                         qkv_error *error) {
    const qkv_head_view *x = &rows->head;
    return qkvi_ctx_told(ctx,
                         qkv_attention_weights(ctx, x->desc, x->q, x->k, x->lse, x->b, x->h, i0, i1,
                                               0, rows->batch.n_keys, rows->p,
                                               qkvi_max_i64(rows->batch.n_keys, 1), NULL),
                         error);
}

double qkvi_row_sum(const float *p, int64_t n) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum += (double)p[j];
    return sum;
}

qkv_status qkvi_rows_call(const qkv_call_options *given, qkv_call_options *call, qkv_error *error) {
    *call = qkv_call_options_init();
    return given ? qkvi_options_read(call, sizeof *call, given, "call", error) : QKV_OK;
}

qkv_status qkvi_rows_watch(const qkv_call_options *call, int64_t done, int64_t total,
                           qkv_error *error) {
    if (call->progress) call->progress(call->progress_user, done, total);
    if (!qkvi_is_raised(call->cancel)) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_CANCELLED, "cancelled by the caller's flag");
}

qkv_status qkvi_ctx_told(const qkv_ctx *ctx, qkv_status status, qkv_error *error) {
    if (status == QKV_OK) return QKV_OK;
    const char *const text = qkv_ctx_message(ctx);
    return qkvi_error_set(error, status, "%s", text[0] ? text : qkv_status_name(status));
}
