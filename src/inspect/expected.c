/**
 * Probabilities that a language model gave to the tokens of a text: logits z of some rows at a
 * time, then for token t of a row ln p = (z_t - m) - ln sum exp(z - m) with m = max z, in double.
 */
#include <math.h>

#include "core/fpstate.h"
#include "inspect/word_states.h"
#include "model/arch/net.h"
#include "model/model_impl.h"
#include "model/run_impl.h"
#include "qkv/inspect.h"

enum { ROWS = 64 };

static qkv_status check_next(const int32_t *next, int64_t n, int64_t n_words, qkv_error *error) {
    for (int64_t i = 0; i < n; i++)
        if (next[i] >= n_words)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "next[%lld] = %d: the model writes %lld tokens", (long long)i,
                                  next[i], (long long)n_words);
    return QKV_OK;
}

qkv_status qkv_inspect_expected(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                                const int32_t *next, double *log_p, qkv_error *error) {
    qkv_attention_kind which;
    int64_t n;
    QKV_TRY(qkvi_need(ctx, "ctx", error));
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(run, "run", error));
    QKV_TRY(qkvi_need(next, "next", error));
    QKV_TRY(qkvi_need(log_p, "log_p", error));
    QKV_TRY(qkvi_word_states(model, run, QKV_HEAD_NEXT, b, &which, &n, error));
    const float *const hidden = qkv_run_hidden(run, which, b, qkvi_net_last(model->net)->n_layers);
    const int64_t n_words = model->net->lm.n_out, width = qkvi_net_last(model->net)->hidden;
    QKV_TRY(check_next(next, n, n_words, error));
    float *const logits = qkvi_aligned_array((size_t)n_words, ROWS * sizeof *logits);
    if (!logits) return qkvi_no_memory(error, "logits");
    qkv_status status = QKV_OK;
    for (int64_t first = 0; first < n && status == QKV_OK; first += ROWS) {
        const int64_t rows = n - first < ROWS ? n - first : ROWS;
        status = qkvi_net_lm(ctx, model->net, rows, hidden + first * width, logits, error);
        const qkvi_fpstate saved = qkvi_fpstate_enter();
        for (int64_t i = first; i < first + rows && status == QKV_OK; i++)
            log_p[i] = next[i] < 0
                           ? NAN
                           : qkvi_log_probability(logits + (i - first) * n_words, n_words, next[i]);
        qkvi_fpstate_leave(saved);
    }
    qkvi_aligned_free(logits);
    return status;
}
