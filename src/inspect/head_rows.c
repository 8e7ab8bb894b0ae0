/*
 * Statistics of the rows of a layer in one forward call (qkv/stats.h), and of its columns in a pass
 * over them (qkv/columns.h): O(n) memory at any length, shared out over the context's threads, the
 * same bits for any number of them.
 *
 * Values have no channel: head_dim_v is 0, so that nothing is summed but statistics.
 */
#include "inspect/head_rows.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/status.h"
#include "qkv/columns.h"
#include "qkv/inspect.h"
#include "qkv/stats.h"

/* Bounds of key - query for QKVI_OFFSET_…. */
static const int64_t bounds[QKVI_N_OFFSETS + 1] = { -QKV_HEAD_WINDOW,   -1, 0, 1, 2,
                                                    QKV_HEAD_WINDOW + 1 };

enum { FLOATS_A_ROW = 7 + QKVI_N_TOKEN_KINDS + QKVI_N_OFFSETS };

/* Cuts the next part of an allocation. */
static float *cut(float **from, int64_t n) {
    float *const part = *from;
    *from += n;
    return part;
}

qkv_status qkvi_head_rows_make(const qkv_capture *capture, qkvi_head_rows *rows, qkv_error *error) {
    const int64_t n_heads = capture->n_heads, n = capture->n, n_keys = capture->n_keys;
    int64_t n_rows, n_of_keys, n_floats;
    float *all = NULL;
    *rows = (qkvi_head_rows){ .n_heads = n_heads, .n = n, .n_keys = n_keys };
    if (qkvi_mul_i64(n_heads, n, &n_rows) && qkvi_mul_i64(n_heads, n_keys, &n_of_keys) &&
        qkvi_mul_i64(n_rows, FLOATS_A_ROW, &n_floats) &&
        qkvi_add_i64(n_floats, n_of_keys, &n_floats)) {
        all = qkvi_malloc_array((size_t)n_floats, sizeof *all);
        rows->n_queries = qkvi_malloc_array((size_t)n_of_keys, sizeof *rows->n_queries);
    }
    rows->entropy = all;
    if (!all || !rows->n_queries)
        return qkvi_error_set(error, QKV_ERR_MEMORY,
                              "no memory for statistics of %lld heads of %lld tokens",
                              (long long)n_heads, (long long)n);
    rows->entropy = cut(&all, n_rows);
    rows->largest = cut(&all, n_rows);
    rows->effective_keys = cut(&all, n_rows);
    rows->mean_distance = cut(&all, n_rows);
    rows->same_token = cut(&all, n_rows);
    rows->duplicate = cut(&all, n_rows);
    rows->induction = cut(&all, n_rows);
    rows->received = cut(&all, n_of_keys);
    rows->kinds = cut(&all, QKVI_N_TOKEN_KINDS * n_rows);
    rows->offsets = all;
    return QKV_OK;
}

void qkvi_head_rows_free(qkvi_head_rows *rows) {
    free(rows->entropy);
    free(rows->n_queries);
    *rows = (qkvi_head_rows){ 0 };
}

void qkvi_capture_describe(const qkv_capture *capture, qkv_attention_desc *desc) {
    qkv_attention_desc_contiguous(desc, 1, capture->n_heads, capture->n_heads, capture->n,
                                  capture->n_keys, capture->head_dim, 0);
    desc->scale = capture->scale;
    desc->flags |= QKV_SET_SCALE;
    if (capture->causal) desc->flags |= QKV_SET_CAUSAL;
    if (!capture->seen) return;
    desc->flags |= QKV_SET_MASK; /* the same keys for every query */
    desc->mask = capture->seen;
    desc->mask_type = QKV_MASK_BOOL;
    desc->mask_stride[3] = 1;
}

/* What compares a query with a key of the same text. */
static void ask_about_places(const int32_t *ids, const qkvi_head_rows *rows,
                             qkv_attention_stats *stats) {
    stats->mean_distance = rows->mean_distance;
    stats->tokens_q = stats->tokens_k = ids;
    stats->same_token = rows->same_token;
    stats->duplicate = rows->duplicate;
    stats->induction = rows->induction;
    stats->n_offsets = QKVI_N_OFFSETS;
    stats->offsets = bounds;
    stats->offset_mass = rows->offsets;
}

static qkv_status compute_rows(qkv_ctx *ctx, const qkv_attention_desc *given,
                               const qkv_capture *capture, const int32_t *ids, const uint8_t *kinds,
                               const qkvi_head_rows *rows) {
    qkv_attention_desc desc = *given;
    qkv_attention_stats stats;
    float nothing[1];
    qkv_attention_stats_contiguous(&stats, &desc);
    stats.entropy = rows->entropy;
    stats.largest = rows->largest;
    stats.effective_keys = rows->effective_keys;
    stats.n_classes = QKVI_N_TOKEN_KINDS;
    stats.classes = kinds;
    stats.class_mass = rows->kinds;
    if (ids) ask_about_places(ids, rows, &stats);
    desc.stats = &stats;
    desc.flags |= QKV_SET_STATS;
    return qkv_attention_forward(ctx, &desc, capture->q, capture->k, capture->k, nothing, NULL,
                                 NULL);
}

static qkv_status compute_columns(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                  const qkv_capture *capture, const qkvi_head_rows *rows) {
    qkv_attention_columns columns;
    qkv_attention_columns_contiguous(&columns, desc);
    columns.received = rows->received;
    columns.n_queries = rows->n_queries;
    return qkv_attention_columns_pass(ctx, desc, capture->q, capture->k, capture->lse, &columns,
                                      NULL);
}

qkv_status qkvi_head_rows_compute(qkv_ctx *ctx, const qkv_capture *capture, const int32_t *ids,
                                  const uint8_t *kinds, qkvi_head_rows *rows, qkv_error *error) {
    qkv_attention_desc desc;
    qkvi_capture_describe(capture, &desc);
    qkv_status status = compute_rows(ctx, &desc, capture, ids, kinds, rows);
    if (status == QKV_OK) status = compute_columns(ctx, &desc, capture, rows);
    if (status == QKV_OK) return QKV_OK;
    return qkvi_error_set(error, status, "statistics of heads: %s", qkv_ctx_message(ctx));
}
