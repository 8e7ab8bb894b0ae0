/**
 * From a run that captured to the signature of every head: a forward call with statistics for each
 * layer, a pass over its columns, and means. Memory O(n).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/fpstate.h"
#include "core/status.h"
#include "inspect/head_stats.h"
#include "inspect/matches.h"

/* Of one input: its tokens, and the rows and columns of a layer at a time. */
struct work {
    qkv_attention_of which;
    const qkv_token_list *queries, *keys;
    int64_t n_layers, n_heads;
    uint8_t *query_kinds, *key_kinds, *matches;
    double *log_keys, *shares;
    qkvi_head_rows rows;
};

/* Are places and tokens of queries and keys those of one text? */
static int is_one_text(const struct work *work) { return work->which != QKV_CROSS; }

static qkv_status check_length(const char *name, int64_t n, int64_t wanted, qkv_error *error) {
    if (n == wanted) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_SHAPE, "%s has %lld tokens, the run has %lld", name,
                          (long long)n, (long long)wanted);
}

/* capture: of the first layer; what queries may see is the same in all. */
static qkv_status check(const struct work *work, const qkv_run *run, int64_t b,
                        qkv_capture *capture, qkv_error *error) {
    QKV_TRY(qkv_run_capture_of(run, work->which, b, 0, capture, error));
    const char *const name = is_one_text(work) ? "input" : "queries";
    QKV_TRY(check_length(name, work->queries->tokens->n, capture->n, error));
    return check_length("keys", work->keys->tokens->n, capture->n_keys, error);
}

static void find_kinds(const qkv_token_list *list, uint8_t *kinds) {
    for (int64_t i = 0; i < list->tokens->n; i++)
        kinds[i] = (uint8_t)qkvi_token_kind_of(list->tokenizer, list->tokens->ids[i]);
}

static void count_keys(const qkv_capture *capture, double *log_keys) {
    int64_t n_seen = 0, j = 0;
    for (int64_t i = 0; i < capture->n; i++) {
        const int64_t end = capture->causal ? i + 1 : capture->n_keys;
        for (; j < end; j++) n_seen += !capture->seen || capture->seen[j];
        log_keys[i] = n_seen > 0 ? log((double)n_seen) : 0;
    }
}

static qkv_status begin(const qkv_capture *capture, struct work *work, qkv_error *error) {
    const size_t n = (size_t)capture->n, n_keys = (size_t)capture->n_keys;
    work->query_kinds = qkvi_malloc_array(n, 1);
    work->key_kinds = qkvi_malloc_array(n_keys, 1);
    work->log_keys = qkvi_malloc_array(n, sizeof *work->log_keys);
    work->shares = qkvi_malloc_array(n_keys, sizeof *work->shares);
    if (is_one_text(work)) work->matches = qkvi_calloc_array(n, 1);
    if (!work->query_kinds || !work->key_kinds || !work->log_keys || !work->shares ||
        (is_one_text(work) && !work->matches))
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld tokens", (long long)n);
    find_kinds(work->queries, work->query_kinds);
    find_kinds(work->keys, work->key_kinds);
    count_keys(capture, work->log_keys);
    if (is_one_text(work))
        QKV_TRY(qkvi_matches_find(capture, work->queries->tokens->ids, work->matches, error));
    return qkvi_head_rows_make(capture, &work->rows, error);
}

static void end(struct work *work) {
    free(work->query_kinds);
    free(work->key_kinds);
    free(work->matches);
    free(work->log_keys);
    free(work->shares);
    qkvi_head_rows_free(&work->rows);
}

static qkv_status one_layer(qkv_ctx *ctx, const qkv_run *run, int64_t b, int64_t layer,
                            struct work *work, qkv_head_stats *stats, qkv_error *error) {
    qkv_capture capture;
    QKV_TRY(qkv_run_capture_of(run, work->which, b, layer, &capture, error));
    QKV_TRY(qkvi_head_rows_compute(ctx, &capture,
                                   is_one_text(work) ? work->queries->tokens->ids : NULL,
                                   work->key_kinds, &work->rows, error));
    const qkvi_head_input input = { capture.n, work->query_kinds, work->matches, work->log_keys };
    for (int64_t head = 0; head < capture.n_heads; head++, stats++) {
        *stats = (qkv_head_stats){ .layer = layer, .head = head };
        qkvi_head_means(&input, &work->rows, head, stats);
        qkvi_head_received(&work->rows, head, work->shares, stats);
        snprintf(stats->label, sizeof stats->label, "%s", qkv_inspect_label(stats, NULL));
    }
    return QKV_OK;
}

static qkv_status run_layers(qkv_ctx *ctx, const qkv_run *run, int64_t b, struct work *work,
                             qkv_head_stats *stats, qkv_error *error) {
    qkv_capture capture;
    QKV_TRY(check(work, run, b, &capture, error));
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkv_status status = begin(&capture, work, error);
    for (int64_t layer = 0; layer < work->n_layers && status == QKV_OK; layer++)
        status = one_layer(ctx, run, b, layer, work, stats + layer * work->n_heads, error);
    end(work);
    qkvi_fpstate_leave(saved);
    return status;
}

static qkv_status is_null(const char *name, qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", name);
}

qkv_status qkv_inspect_heads(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                             const qkv_encoding *input, qkv_head_stats *stats, qkv_error *error) {
    if (!ctx || !model || !run || !input || !stats)
        return is_null(!ctx     ? "ctx"
                       : !model ? "model"
                       : !run   ? "run"
                       : !input ? "input"
                                : "the result",
                       error);
    const qkv_model_info *const info = qkv_model_get_info(model);
    const qkv_token_list list = { qkv_model_tokenizer(model), input };
    struct work work = { .which = QKV_SELF,
                         .queries = &list,
                         .keys = &list,
                         .n_layers = info->n_layers,
                         .n_heads = info->n_heads };
    return run_layers(ctx, run, b, &work, stats, error);
}

qkv_status qkv_inspect_heads_of(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run,
                                qkv_attention_of which, int64_t b, const qkv_token_list *queries,
                                const qkv_token_list *keys, qkv_head_stats *stats,
                                qkv_error *error) {
    if (!ctx || !model || !run || !stats)
        return is_null(!ctx ? "ctx" : !model ? "model" : !run ? "run" : "the result", error);
    if (!queries || !queries->tokenizer || !queries->tokens) return is_null("queries", error);
    if (which != QKV_CROSS) keys = queries;
    if (!keys || !keys->tokenizer || !keys->tokens) return is_null("keys", error);
    const qkv_model_info *const info = qkv_model_get_info(model);
    struct work work = { .which = which,
                         .queries = queries,
                         .keys = keys,
                         .n_layers = which == QKV_SELF ? info->n_layers : info->n_decoder_layers,
                         .n_heads = which == QKV_SELF ? info->n_heads : info->n_decoder_heads };
    return run_layers(ctx, run, b, &work, stats, error);
}
