/*
 * What stands on the encoder: the masked-word head and the next-sentence head, forward for a run,
 * and forward and backward with the losses for training; and for a run ELECTRA's discriminator, and
 * classifiers of texts, of tokens and of answers.
 *
 *     MLM    logits = norm(act(x Wtᵀ + bt)) Eᵀ + b    E: the word embeddings, where they are tied
 *     NSP    logits = tanh(x0 Wpᵀ + bp) Wnᵀ + bn          x0: hidden states of first tokens
 *     discriminator  logit  = act(x Wdᵀ + bd) wᵀ + b
 *     classifier     logits = tanh(x Wpᵀ + bp) Wcᵀ + bc                   BERT, of a text
 *                             act(x Wdᵀ + bd) Wcᵀ + bc         RoBERTa, DistilBERT, ELECTRA
 *                             norm(act(x Wtᵀ)) Wcᵀ + bc        ModernBERT, of a text or tokens
 *                             x Wcᵀ + bc                       others, of tokens
 *
 * Heads see selected rows only: the masked positions, the first tokens.
 */
#include "core/fpstate.h"
#include "layer/act.h"
#include "layer/loss.h"
#include "model/arch/net_pass.h"

/* ---- Forward --------------------------------------------------------------------------------- */

static void mlm_forward(qkv_ctx *ctx, const qkvi_net *p, int64_t n, qkvi_mlm_acts *a) {
    qkvi_linear_forward(ctx, &p->transform, n, a->x, a->u);
    qkvi_act_forward(ctx, p->head_act, n, p->stacks[0].embedding_size, a->u, a->g);
    qkvi_layernorm_forward(ctx, &p->transform_norm, p->stacks[0].eps, n, NULL, a->g, a->y,
                           a->stats);
    qkvi_linear_forward(ctx, &p->decoder, n, a->y, a->logits);
}

static void nsp_forward(qkv_ctx *ctx, const qkvi_net *p, int64_t n, qkvi_nsp_acts *a) {
    qkvi_linear_forward(ctx, &p->pooler, n, a->x, a->pooled);
    qkvi_tanh_forward(ctx, n, p->stacks[0].hidden, a->pooled, a->pooled);
    qkvi_linear_forward(ctx, &p->nsp, n, a->pooled, a->logits);
}

qkv_status qkvi_net_mlm(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows, const float *hidden,
                        float *logits, qkv_error *error) {
    if (!net->has_mlm) return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no MLM head");
    const size_t elems = (size_t)(n_rows * net->stacks[0].embedding_size);
    float *work = qkvi_aligned_array(2 * elems + 2 * (size_t)n_rows, sizeof(float));
    if (!work) return qkvi_no_memory(error, "the MLM head");
    qkvi_mlm_acts a = { .x = (float *)hidden, .logits = logits };
    a.u = a.g = work; /* a run keeps nothing */
    a.y = work + elems;
    a.stats = work + 2 * elems;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    mlm_forward(ctx, net, n_rows, &a);
    qkvi_fpstate_leave(saved);
    qkvi_aligned_free(work);
    return QKV_OK;
}

qkv_status qkvi_net_nsp(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows, const float *hidden,
                        float *logits, qkv_error *error) {
    if (!net->has_nsp) return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no NSP head");
    float *work = qkvi_aligned_array((size_t)(n_rows * net->stacks[0].hidden), sizeof(float));
    if (!work) return qkvi_no_memory(error, "the NSP head");
    qkvi_nsp_acts a = { .x = (float *)hidden, .pooled = work, .logits = logits };
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    nsp_forward(ctx, net, n_rows, &a);
    qkvi_fpstate_leave(saved);
    qkvi_aligned_free(work);
    return QKV_OK;
}

qkv_status qkvi_net_discriminate(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows,
                                 const float *hidden, float *logits, qkv_error *error) {
    if (!net->has_discriminator)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no head that tells replaced tokens");
    float *work = qkvi_aligned_array((size_t)(n_rows * net->stacks[0].hidden), sizeof(float));
    if (!work) return qkvi_no_memory(error, "the judging head");
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkvi_linear_forward(ctx, &net->discriminator, n_rows, hidden, work);
    qkvi_act_forward(ctx, net->stacks[0].blocks[0].act, n_rows, net->stacks[0].hidden, work, work);
    qkvi_linear_forward(ctx, &net->discriminator_out, n_rows, work, logits);
    qkvi_fpstate_leave(saved);
    qkvi_aligned_free(work);
    return QKV_OK;
}

/* What the classifier reads of rows x: y, by way of work, each [n_rows][hidden]. */
static void classifier_reads(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows, const float *x,
                             float *work, float *stats, float *y) {
    const int64_t h = net->stacks[0].hidden;
    switch (net->class_below) {
    case QKVI_BELOW_POOLER:
        qkvi_linear_forward(ctx, &net->pooler, n_rows, x, y);
        qkvi_tanh_forward(ctx, n_rows, h, y, y);
        return;
    case QKVI_BELOW_DENSE:
        qkvi_linear_forward(ctx, &net->class_dense, n_rows, x, y);
        qkvi_act_forward(ctx, net->class_act, n_rows, h, y, y);
        return;
    case QKVI_BELOW_TRANSFORM:
        qkvi_linear_forward(ctx, &net->transform, n_rows, x, work);
        qkvi_act_forward(ctx, net->head_act, n_rows, h, work, work);
        qkvi_layernorm_forward(ctx, &net->transform_norm, net->stacks[0].eps, n_rows, NULL, work, y,
                               stats);
        return;
    case QKVI_BELOW_NOTHING: memcpy(y, x, (size_t)(n_rows * h) * sizeof *y);
    }
}

qkv_status qkvi_net_classify(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows, const float *x,
                             float *logits, qkv_error *error) {
    const size_t elems = (size_t)(n_rows * net->stacks[0].hidden);
    if (net->n_labels == 0) return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no classifier");
    float *work = qkvi_aligned_array(2 * elems + 2 * (size_t)n_rows, sizeof(float));
    if (!work) return qkvi_no_memory(error, "the classifier");
    float *const y = work + elems, *const stats = work + 2 * elems;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    classifier_reads(ctx, net, n_rows, x, work, stats, y);
    qkvi_linear_forward(ctx, &net->classifier, n_rows, y, logits);
    qkvi_fpstate_leave(saved);
    qkvi_aligned_free(work);
    return QKV_OK;
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* a->d_x, from a->logits that hold the gradient of the logits. */
static void mlm_backward(qkv_ctx *ctx, const qkvi_net *p, const qkvi_net *grads, int64_t n,
                         const qkvi_mlm_acts *a) {
    /* logits = y Eᵀ + b */
    qkvi_pack_rows(ctx, &p->decoder, n, a->y, a->packed);
    qkvi_linear_backward_params(ctx, &p->decoder, &grads->decoder, n, a->logits, a->packed,
                                a->sums);
    qkvi_linear_backward_input(ctx, &p->decoder, n, a->logits, a->d);
    /* y = norm(g), g = act(u) */
    qkvi_layernorm_backward(ctx, &p->transform_norm, &grads->transform_norm, n, a->g, a->stats,
                            a->d, a->d, a->sums);
    qkvi_act_backward(ctx, p->head_act, n, p->stacks[0].embedding_size, a->u, a->d, a->d);
    /* u = x Wtᵀ + bt */
    qkvi_pack_rows(ctx, &p->transform, n, a->x, a->packed);
    qkvi_linear_backward_params(ctx, &p->transform, &grads->transform, n, a->d, a->packed, a->sums);
    qkvi_linear_backward_input(ctx, &p->transform, n, a->d, a->d_x);
}

static void nsp_backward(qkv_ctx *ctx, const qkvi_net *p, const qkvi_net *grads, int64_t n,
                         const qkvi_nsp_acts *a, const qkvi_mha_scratch *scratch) {
    float *packed = scratch->packed, *sums = scratch->sums;
    /* logits = pooled Wnᵀ + bn */
    qkvi_pack_rows(ctx, &p->nsp, n, a->pooled, packed);
    qkvi_linear_backward_params(ctx, &p->nsp, &grads->nsp, n, a->logits, packed, sums);
    qkvi_linear_backward_input(ctx, &p->nsp, n, a->logits, a->d);
    /* pooled = tanh(x Wpᵀ + bp) */
    qkvi_tanh_backward(ctx, n, p->stacks[0].hidden, a->pooled, a->d, a->d);
    qkvi_pack_rows(ctx, &p->pooler, n, a->x, packed);
    qkvi_linear_backward_params(ctx, &p->pooler, &grads->pooler, n, a->d, packed, sums);
    qkvi_linear_backward_input(ctx, &p->pooler, n, a->d, a->d_x);
}

/* ---- Losses ---------------------------------------------------------------------------------- */

/*
 * Zeros the gradients of tables of words, which are added to, but for one that the head stores
 * into.
 */
static void words_zero(const qkvi_net *grads, const qkvi_linear *head) {
    for (int s = 0; s < grads->n_stacks; s++) {
        const qkvi_embed *const embed = &grads->stacks[s].embed;
        if (embed->word == head->weight) continue;
        memset(embed->word, 0, (size_t)(embed->n_words * embed->hidden) * sizeof(float));
    }
}

/* Losses; logits become their gradients. A head without rows is a head of zero rows. */
void qkvi_heads_forward(qkv_ctx *ctx, const qkvi_net *p, const qkvi_net_batch *batch,
                        qkvi_net_pass *pass, qkvi_net_losses *losses) {
    qkvi_cross_entropy mlm = { 0 }, nsp = { 0 };
    if (p->has_mlm) {
        mlm_forward(ctx, p, batch->n_targets, &pass->mlm);
        qkvi_cross_entropy_rows(ctx, batch->n_targets, p->stacks[0].vocab_size, batch->target_ids,
                                batch->whole_targets, 0, pass->mlm.logits, pass->row_loss, &mlm);
    }
    if (p->has_nsp) {
        nsp_forward(ctx, p, pass->n_labels, &pass->nsp);
        qkvi_cross_entropy_rows(ctx, pass->n_labels, 2, batch->labels, batch->whole_labels, 0,
                                pass->nsp.logits, pass->row_loss, &nsp);
    }
    *losses = (qkvi_net_losses){ .mlm = mlm.mean,
                                 .nsp = nsp.mean,
                                 .n_mlm = mlm.n,
                                 .n_mlm_right = mlm.n_right,
                                 .n_nsp = nsp.n,
                                 .n_nsp_right = nsp.n_right };
}

/* Gradients of the heads, and stacks[0].pick.d: that of the rows they read. */
void qkvi_heads_backward(qkv_ctx *ctx, const qkvi_net *p, const qkvi_net *grads,
                         const qkvi_net_pass *pass) {
    const qkvi_linear none = { 0 };
    words_zero(grads, p->has_mlm ? &grads->decoder : &none);
    if (p->has_mlm) mlm_backward(ctx, p, grads, pass->n_targets, &pass->mlm);
    if (p->has_nsp)
        nsp_backward(ctx, p, grads, pass->n_labels, &pass->nsp, &pass->stacks[0].scratch.mha);
    else if (p->has_pooler)
        qkvi_linear_zero(&grads->pooler);
    if (p->class_dense.n_out > 0) qkvi_linear_zero(&grads->class_dense);
    if (p->n_labels > 0) qkvi_linear_zero(&grads->classifier);
    if (!p->has_discriminator) return;
    qkvi_linear_zero(&grads->discriminator);
    qkvi_linear_zero(&grads->discriminator_out);
}

/*
 * The head of a language model, on the last stack: logits of the next token, forward for a run, and
 * forward and backward with the loss for training.
 *
 *     logits = x Eᵀ + b       E: the stack's words, where they are tied; b: mostly none
 *     logits = (x Pᵀ) Eᵀ      where words are narrower than blocks (OPT)
 *     logits = logits / √hidden                       where a model scales them (T5)
 *     logits = c tanh(logits / c)                     where a model caps them (Gemma 2)
 */

/* logits *= scale, or their gradients, which are alike. */
static void scale_logits(const qkvi_net *net, int64_t n_rows, float *logits) {
    const float scale = net->logit_scale;
    for (int64_t i = 0; scale != 0 && i < n_rows * net->lm.n_out; i++) logits[i] *= scale;
}

void qkvi_lm_logits(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows, const float *x,
                    float *narrow, float *logits) {
    if (net->project_out.n_out > 0) qkvi_linear_forward(ctx, &net->project_out, n_rows, x, narrow);
    qkvi_linear_forward(ctx, &net->lm, n_rows, net->project_out.n_out > 0 ? narrow : x, logits);
    scale_logits(net, n_rows, logits);
    if (net->logit_cap > 0)
        qkvi_soft_cap_forward(ctx, net->logit_cap, n_rows, net->lm.n_out, logits);
}

qkv_status qkvi_net_lm(qkv_ctx *ctx, const qkvi_net *net, int64_t n_rows, const float *hidden,
                       float *logits, qkv_error *error) {
    if (!net->has_lm) return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no LM head");
    const size_t elems = (size_t)(n_rows * net->project_out.n_out);
    float *const narrow = elems > 0 ? qkvi_aligned_array(elems, sizeof *narrow) : NULL;
    if (elems > 0 && !narrow) return qkvi_no_memory(error, "the LM head");
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkvi_lm_logits(ctx, net, n_rows, hidden, narrow, logits);
    qkvi_fpstate_leave(saved);
    qkvi_aligned_free(narrow);
    return QKV_OK;
}

/* Losses; logits become their gradients. */
void qkvi_lm_forward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net_batch *batch,
                     qkvi_net_pass *pass, qkvi_net_losses *losses) {
    const qkvi_stack_pass *const last = &pass->stacks[pass->n_stacks - 1];
    const int64_t n = batch->n_targets, hidden = last->stack->hidden;
    qkvi_cross_entropy found = { 0 };
    for (int64_t i = 0; i < n; i++) {
        const int32_t row = last->rows.row_of_token[batch->target_tokens[i]];
        pass->lm.rows[i] = row;
        memcpy(pass->lm.x + i * hidden, last->y + row * hidden, (size_t)hidden * sizeof(float));
    }
    qkvi_lm_logits(ctx, net, n, pass->lm.x, pass->lm.narrow, pass->lm.logits);
    if (net->logit_cap > 0)
        memcpy(pass->lm.capped, pass->lm.logits, (size_t)(n * net->lm.n_out) * sizeof(float));
    qkvi_cross_entropy_rows(ctx, n, net->lm.n_out, batch->target_ids, batch->whole_targets,
                            batch->label_smoothing, pass->lm.logits, pass->row_loss, &found);
    losses->lm = found.mean;
    losses->n_lm = found.n;
    losses->n_lm_right = found.n_right;
}

/* Gradients of the head, and of the last hidden states: zeros but in the rows of targets. */
void qkvi_lm_backward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net *grads,
                      qkvi_net_pass *pass) {
    qkvi_stack_pass *const last = &pass->stacks[pass->n_stacks - 1];
    const int64_t n = pass->n_targets, hidden = last->stack->hidden;
    const bool projects = net->project_out.n_out > 0;
    float *const read = projects ? pass->lm.narrow : pass->lm.x;
    words_zero(grads, &grads->lm);
    if (net->logit_cap > 0)
        qkvi_soft_cap_backward(ctx, net->logit_cap, n, net->lm.n_out, pass->lm.capped,
                               pass->lm.logits);
    scale_logits(net, n, pass->lm.logits);
    qkvi_pack_rows(ctx, &net->lm, n, read, pass->lm.packed);
    qkvi_linear_backward_params(ctx, &net->lm, &grads->lm, n, pass->lm.logits, pass->lm.packed,
                                pass->lm.sums);
    qkvi_linear_backward_input(ctx, &net->lm, n, pass->lm.logits, read);
    if (projects) {
        qkvi_pack_rows(ctx, &net->project_out, n, pass->lm.x, pass->lm.packed);
        qkvi_linear_backward_params(ctx, &net->project_out, &grads->project_out, n, read,
                                    pass->lm.packed, pass->lm.sums);
        qkvi_linear_backward_input(ctx, &net->project_out, n, read, pass->lm.x);
    }
    memset(last->d, 0, (size_t)(last->rows.n_rows * hidden) * sizeof(float));
    for (int64_t i = 0; i < n; i++)
        memcpy(last->d + pass->lm.rows[i] * hidden, pass->lm.x + i * hidden,
               (size_t)hidden * sizeof(float));
}
