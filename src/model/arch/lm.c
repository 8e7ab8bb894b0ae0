/*
 * The head of a language model, on the last stack: logits of the next token, forward for a run, and
 * forward and backward with the loss for training.
 *
 *     logits = x Eᵀ + b       E: the stack's words, where they are tied; b: mostly none
 */

#include "core/fpstate.h"
#include "layer/loss.h"
#include "model/arch/net_pass.h"

qkv_status qkvi_net_lm(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows, const float *hidden,
                       float *logits, qkv_error *error) {
    if (!net->has_lm) return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no LM head");
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkvi_linear_forward(ctx, &net->lm, n_rows, hidden, logits);
    qkvi_fpstate_leave(saved);
    return QKV_OK;
}

/* Losses; logits become their gradients. */
void qkvi_lm_forward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net_batch *batch,
                     qkvi_net_pass *pass, qkvi_net_losses *losses) {
    const qkvi_stack_pass *const last = &pass->stacks[pass->n_stacks - 1];
    const int64_t n = batch->n_targets, hidden = net->lm.n_in;
    qkvi_cross_entropy found = { 0 };
    for (int64_t i = 0; i < n; i++) {
        const int32_t row = last->rows.row_of_token[batch->target_tokens[i]];
        pass->lm.rows[i] = row;
        memcpy(pass->lm.x + i * hidden, last->y + row * hidden, (size_t)hidden * sizeof(float));
    }
    qkvi_linear_forward(ctx, &net->lm, n, pass->lm.x, pass->lm.logits);
    qkvi_cross_entropy_rows(ctx, n, net->lm.n_out, batch->target_ids, batch->label_smoothing,
                            pass->lm.logits, pass->row_loss, &found);
    losses->lm = found.mean;
    losses->n_lm = found.n;
    losses->n_lm_right = found.n_right;
}

/* Gradients of the head, and of the last hidden states: zeros but in the rows of targets. */
void qkvi_lm_backward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net *grads,
                      qkvi_net_pass *pass) {
    qkvi_stack_pass *const last = &pass->stacks[pass->n_stacks - 1];
    const int64_t n = pass->n_targets, hidden = net->lm.n_in;
    qkvi_words_zero(grads, &grads->lm);
    qkvi_pack_rows(ctx, &net->lm, n, pass->lm.x, pass->lm.packed);
    qkvi_linear_backward_params(ctx, &net->lm, &grads->lm, n, pass->lm.logits, pass->lm.packed,
                                pass->lm.sums);
    qkvi_linear_backward_input(ctx, &net->lm, n, pass->lm.logits, pass->lm.x);
    memset(last->d, 0, (size_t)(last->rows.n_rows * hidden) * sizeof(float));
    for (int64_t i = 0; i < n; i++)
        memcpy(last->d + pass->lm.rows[i] * hidden, pass->lm.x + i * hidden,
               (size_t)hidden * sizeof(float));
}
