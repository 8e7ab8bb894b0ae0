/*
 * The logit lens: a hidden state of any layer, read as the last one would be.
 *
 *     logits = head(norm(h[layer]))     norm: the final norm of the stack, if it has one
 *
 * The last hidden states of a run are normed already.
 */
#include <math.h>

#include "core/fpstate.h"
#include "core/options.h"
#include "inspect/word_states.h"
#include "model/model_impl.h"
#include "model/run_impl.h"
#include "qkv/effects.h"

/* The state, of the stack that the head reads. */
static qkv_status find_state(const qkv_model *model, const qkv_run *run, qkv_word_head head,
                             int64_t b, int64_t position, int64_t layer, const float **state,
                             qkv_error *error) {
    qkv_attention_kind which;
    int64_t n;
    QKV_TRY(qkvi_word_states(model, run, head, b, &which, &n, error));
    QKV_TRY(qkvi_check_index("position", position, n, error));
    QKV_TRY(qkvi_check_index("layer", layer, qkvi_net_last(model->net)->n_layers + 1, error));
    *state = qkv_run_hidden(run, which, b, layer);
    if (!*state)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the run was made without QKV_RUN_HIDDEN");
    *state += position * run->hidden;
    return QKV_OK;
}

/* state [hidden] and logits [n_words]; work [hidden]. */
static qkv_status logits_of(qkv_ctx *ctx, const qkvi_net *net, bool masked, int64_t layer,
                            const float *state, float *work, float *logits, qkv_error *error) {
    const qkvi_stack *const stack = qkvi_net_last(net);
    if (layer < stack->n_layers && stack->last_norm.gamma) {
        float stats[2];
        const qkvi_fpstate saved = qkvi_fpstate_enter();
        qkvi_stack_norm(ctx, stack, 1, state, work, stats);
        qkvi_fpstate_leave(saved);
        state = work;
    }
    return masked ? qkvi_net_mlm(ctx, net, 1, state, logits, error)
                  : qkvi_net_lm(ctx, net, 1, state, logits, error);
}

static void read_logits(const float *logits, int64_t n, int32_t word, qkv_lens *lens) {
    const double largest = (double)qkvi_largest_logit(logits, n);
    double sum = 0, weighted = 0;
    for (int64_t v = 0; v < n; v++) {
        const double z = (double)logits[v] - largest, e = exp(z);
        sum += e;
        if (e > 0) weighted += e * z;
        if (z > (double)logits[lens->best] - largest) lens->best = (int32_t)v;
    }
    const double log_sum = log(sum);
    lens->entropy = log_sum - weighted / sum;
    lens->best_log_p = (double)logits[lens->best] - largest - log_sum;
    lens->log_p = word < 0 ? NAN : (double)logits[word] - largest - log_sum;
    lens->rank = word < 0 ? -1 : 0;
    for (int64_t v = 0; word >= 0 && v < n; v++) lens->rank += logits[v] > logits[word];
}

qkv_status qkv_inspect_lens(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run,
                            qkv_word_head head, int64_t b, int64_t position, int64_t layer,
                            int32_t word, qkv_lens *lens, qkv_error *error) {
    qkv_lens made = qkv_lens_init();
    const float *state = NULL;
    const bool masked = head == QKV_HEAD_MASKED;
    QKV_TRY(qkvi_need(ctx, "ctx", error));
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(run, "run", error));
    QKV_TRY(qkvi_need(lens, "lens", error));
    QKV_TRY(qkvi_options_read(&made, sizeof made, lens, "qkv_lens", error));
    made = qkv_lens_init();
    if (!masked && head != QKV_HEAD_NEXT)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "head = %d is none that tells words",
                              (int)head);
    QKV_TRY(find_state(model, run, head, b, position, layer, &state, error));
    const int64_t n = masked ? model->info.vocab_size : model->net->lm.n_out;
    if (word >= 0) QKV_TRY(qkvi_check_index("word", word, n, error));
    float *const work = qkvi_aligned_array((size_t)(run->hidden + n), sizeof *work);
    if (!work) return qkvi_no_memory(error, "logits");
    float *const logits = work + run->hidden;
    const qkv_status status = logits_of(ctx, model->net, masked, layer, state, work, logits, error);
    if (status == QKV_OK) {
        const qkvi_fpstate saved = qkvi_fpstate_enter();
        read_logits(logits, n, word, &made);
        qkvi_fpstate_leave(saved);
        qkvi_options_write(lens, &made, sizeof made);
    }
    qkvi_aligned_free(work);
    return status;
}
