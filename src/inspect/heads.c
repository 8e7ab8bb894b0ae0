/**
 * From a run that captured to the signature of every head: a forward call with statistics for each
 * layer, a pass over its columns, and means. Memory O(n).
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/fpstate.h"
#include "core/status.h"
#include "inspect/head_stats.h"
#include "inspect/matches.h"

/* Of one input: its tokens, and the rows and columns of a layer at a time. */
struct work {
    uint8_t *kinds, *matches;
    double *shares;
    qkvi_head_rows rows;
};

/* capture: of the first layer; what queries may see is the same in all. */
static qkv_status check(const qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                        const qkv_encoding *input, const void *out, qkv_capture *capture,
                        qkv_error *error) {
    if (!ctx || !model || !run || !input || !out)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !ctx     ? "ctx"
                              : !model ? "model"
                              : !run   ? "run"
                              : !input ? "input"
                                       : "the result");
    QKV_TRY(qkv_run_capture(run, b, 0, capture, error));
    if (capture->n == input->n) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_SHAPE, "input has %lld tokens, the run has %lld",
                          (long long)input->n, (long long)capture->n);
}

static qkv_status begin(const qkv_model *model, const qkv_encoding *input,
                        const qkv_capture *capture, struct work *work, qkv_error *error) {
    const qkv_tokenizer *const tokenizer = qkv_model_tokenizer(model);
    work->kinds = qkvi_malloc_array((size_t)input->n, 1);
    work->matches = qkvi_calloc_array((size_t)input->n, 1);
    work->shares = qkvi_malloc_array((size_t)input->n, sizeof *work->shares);
    if (!work->kinds || !work->matches || !work->shares)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld tokens",
                              (long long)input->n);
    for (int64_t i = 0; i < input->n; i++)
        work->kinds[i] = (uint8_t)qkvi_token_kind_of(tokenizer, input->ids[i]);
    QKV_TRY(qkvi_matches_find(capture, input->ids, work->matches, error));
    return qkvi_head_rows_make(capture->n_heads, input->n, &work->rows, error);
}

static void end(struct work *work) {
    free(work->kinds);
    free(work->matches);
    free(work->shares);
    qkvi_head_rows_free(&work->rows);
}

static qkv_status one_layer(qkv_ctx *ctx, const qkv_run *run, int64_t b, int64_t layer,
                            const int32_t *ids, struct work *work, qkv_head_stats *stats,
                            qkv_error *error) {
    qkv_capture capture;
    QKV_TRY(qkv_run_capture(run, b, layer, &capture, error));
    QKV_TRY(qkvi_head_rows_compute(ctx, &capture, ids, work->kinds, &work->rows, error));
    const qkvi_head_input input = { capture.n, work->kinds, work->matches };
    for (int64_t head = 0; head < capture.n_heads; head++, stats++) {
        *stats = (qkv_head_stats){ .layer = layer, .head = head };
        qkvi_head_means(&input, &work->rows, head, stats);
        qkvi_head_received(&work->rows, head, work->shares, stats);
        snprintf(stats->label, sizeof stats->label, "%s", qkv_inspect_label(stats, NULL));
    }
    return QKV_OK;
}

qkv_status qkv_inspect_heads(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                             const qkv_encoding *input, qkv_head_stats *stats, qkv_error *error) {
    struct work work = { 0 };
    qkv_capture capture;
    QKV_TRY(check(ctx, model, run, b, input, stats, &capture, error));
    const qkv_model_info *const info = qkv_model_get_info(model);
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkv_status status = begin(model, input, &capture, &work, error);
    for (int64_t layer = 0; layer < info->n_layers && status == QKV_OK; layer++)
        status =
            one_layer(ctx, run, b, layer, input->ids, &work, stats + layer * info->n_heads, error);
    end(&work);
    qkvi_fpstate_leave(saved);
    return status;
}
