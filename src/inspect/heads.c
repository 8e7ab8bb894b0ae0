/**
 * From a run that captured to the statistics of every head.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/status.h"
#include "inspect/head_stats.h"
#include "inspect/tokens.h"
#include "qkv/inspect.h"

/* The weights of one head and the kinds of the tokens, for an input that fits the run. */
struct work {
    float *weights; /* [n][n] */
    uint8_t *kinds;
};

static qkv_status check(const qkv_model *model, const qkv_run *run, int64_t b,
                        const qkv_encoding *input, const void *out, qkv_error *error) {
    qkv_capture capture;
    if (!model || !run || !input || !out)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !model   ? "model"
                              : !run   ? "run"
                              : !input ? "input"
                                       : "the result");
    QKV_TRY(qkv_run_capture(run, b, 0, &capture, error));
    if (capture.n == input->n) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_SHAPE, "input has %lld tokens, the run has %lld",
                          (long long)input->n, (long long)capture.n);
}

static qkv_status begin(const qkv_encoding *input, struct work *work, qkv_error *error) {
    int64_t n_weights;
    *work = (struct work){ 0 };
    if (qkvi_mul_i64(input->n, input->n, &n_weights))
        work->weights = qkvi_malloc_array((size_t)n_weights, sizeof *work->weights);
    work->kinds = qkvi_malloc_array((size_t)input->n, 1);
    if (work->weights && work->kinds) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld x %lld weights",
                          (long long)input->n, (long long)input->n);
}

static void end(struct work *work) {
    free(work->weights);
    free(work->kinds);
}

static qkv_status all_heads(const qkv_model *model, const qkv_run *run, int64_t b,
                            const qkv_encoding *input, struct work *work, qkv_head_stats *stats,
                            qkv_error *error) {
    const qkv_model_info *info = qkv_model_get_info(model);
    const qkv_tokenizer *tokenizer = qkv_model_tokenizer(model);
    for (int64_t i = 0; i < input->n; i++)
        work->kinds[i] = (uint8_t)qkvi_token_kind_of(tokenizer, input->ids[i]);
    for (int64_t layer = 0; layer < info->n_layers; layer++) {
        for (int64_t head = 0; head < info->n_heads; head++, stats++) {
            QKV_TRY(qkv_run_weights(run, b, layer, head, work->weights, error));
            *stats = (qkv_head_stats){ .layer = layer, .head = head };
            qkvi_head_stats(work->weights, input->n, input->ids, work->kinds, stats);
        }
    }
    return QKV_OK;
}

qkv_status qkv_inspect_heads(const qkv_model *model, const qkv_run *run, int64_t b,
                             const qkv_encoding *input, qkv_head_stats *stats, qkv_error *error) {
    struct work work;
    QKV_TRY(check(model, run, b, input, stats, error));
    qkv_status status = begin(input, &work, error);
    if (status == QKV_OK) status = all_heads(model, run, b, input, &work, stats, error);
    end(&work);
    return status;
}
