/*
 * What stands on the encoder: the masked-word head and the next-sentence head, forward for a run,
 * and forward and backward with the losses for training; and ELECTRA's judge, for a run.
 *
 *     MLM    logits = norm(gelu(x Wtᵀ + bt)) Eᵀ + b       E: the word embeddings (tied)
 *     NSP    logits = tanh(x0 Wpᵀ + bp) Wnᵀ + bn          x0: hidden states of first tokens
 *     judge  logit  = gelu(x Wdᵀ + bd) wᵀ + b
 *
 * Heads see selected rows only: the masked positions, the first tokens.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fpstate.h"
#include "core/status.h"
#include "model/arch/bert_pass.h"
#include "model/layer/act.h"
#include "model/train/loss.h"

/* ---- Forward --------------------------------------------------------------------------------- */

static void mlm_forward(qkv_ctx *ctx, const qkvi_bert_params *p, int64_t n, qkvi_mlm_acts *a) {
    qkvi_linear_forward(ctx, &p->transform, n, a->x, a->u);
    qkvi_gelu_forward(ctx, n, p->embedding_size, a->u, a->g);
    qkvi_layernorm_forward(ctx, &p->transform_norm, p->eps, n, NULL, a->g, a->y, a->stats);
    qkvi_linear_forward(ctx, &p->decoder, n, a->y, a->logits);
}

static void nsp_forward(qkv_ctx *ctx, const qkvi_bert_params *p, int64_t n, qkvi_nsp_acts *a) {
    qkvi_linear_forward(ctx, &p->pooler, n, a->x, a->pooled);
    qkvi_tanh_forward(ctx, n, p->hidden, a->pooled, a->pooled);
    qkvi_linear_forward(ctx, &p->nsp, n, a->pooled, a->logits);
}

qkv_status qkvi_bert_mlm(qkv_ctx *ctx, const qkvi_bert_params *params, int64_t n_rows,
                         const float *hidden, float *logits, qkv_error *error) {
    if (!params->has_mlm) return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no MLM head");
    const size_t elems = (size_t)(n_rows * params->embedding_size);
    float *work = qkvi_aligned_array(2 * elems + 2 * (size_t)n_rows, sizeof(float));
    if (!work) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the MLM head");
    qkvi_mlm_acts a = { .x = (float *)hidden, .logits = logits };
    a.u = a.g = work; /* a run keeps nothing */
    a.y = work + elems;
    a.stats = work + 2 * elems;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    mlm_forward(ctx, params, n_rows, &a);
    qkvi_fpstate_leave(saved);
    free(work);
    return QKV_OK;
}

qkv_status qkvi_bert_nsp(qkv_ctx *ctx, const qkvi_bert_params *params, int64_t n_rows,
                         const float *hidden, float *logits, qkv_error *error) {
    if (!params->has_nsp) return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no NSP head");
    float *work = qkvi_aligned_array((size_t)(n_rows * params->hidden), sizeof(float));
    if (!work) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the NSP head");
    qkvi_nsp_acts a = { .x = (float *)hidden, .pooled = work, .logits = logits };
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    nsp_forward(ctx, params, n_rows, &a);
    qkvi_fpstate_leave(saved);
    free(work);
    return QKV_OK;
}

qkv_status qkvi_bert_judge(qkv_ctx *ctx, const qkvi_bert_params *params, int64_t n_rows,
                           const float *hidden, float *logits, qkv_error *error) {
    if (!params->has_judge)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no head that tells replaced tokens");
    float *work = qkvi_aligned_array((size_t)(n_rows * params->hidden), sizeof(float));
    if (!work) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the judging head");
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkvi_linear_forward(ctx, &params->judge, n_rows, hidden, work);
    qkvi_gelu_forward(ctx, n_rows, params->hidden, work, work);
    qkvi_linear_forward(ctx, &params->judgement, n_rows, work, logits);
    qkvi_fpstate_leave(saved);
    free(work);
    return QKV_OK;
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* a->d_x, from a->logits that hold the gradient of the logits. */
static void mlm_backward(qkv_ctx *ctx, const qkvi_bert_params *p, const qkvi_bert_params *grads,
                         int64_t n, const qkvi_mlm_acts *a) {
    /* logits = y Eᵀ + b */
    qkvi_pack_rows(ctx, n, p->embedding_size, a->y, a->packed);
    qkvi_linear_backward_params(ctx, &grads->decoder, n, a->logits, a->packed, a->sums);
    qkvi_linear_backward_input(ctx, &p->decoder, n, a->logits, a->d, false);
    /* y = norm(g), g = gelu(u) */
    qkvi_layernorm_backward(ctx, &p->transform_norm, &grads->transform_norm, n, a->g, a->stats,
                            a->d, a->d, a->sums);
    qkvi_gelu_backward(ctx, n, p->embedding_size, a->u, a->d, a->d);
    /* u = x Wtᵀ + bt */
    qkvi_pack_rows(ctx, n, p->hidden, a->x, a->packed);
    qkvi_linear_backward_params(ctx, &grads->transform, n, a->d, a->packed, a->sums);
    qkvi_linear_backward_input(ctx, &p->transform, n, a->d, a->d_x, false);
}

static void nsp_backward(qkv_ctx *ctx, const qkvi_bert_params *p, const qkvi_bert_params *grads,
                         int64_t n, const qkvi_nsp_acts *a, const qkvi_mha_scratch *scratch) {
    float *packed = scratch->packed, *sums = scratch->sums;
    /* logits = pooled Wnᵀ + bn */
    qkvi_pack_rows(ctx, n, p->hidden, a->pooled, packed);
    qkvi_linear_backward_params(ctx, &grads->nsp, n, a->logits, packed, sums);
    qkvi_linear_backward_input(ctx, &p->nsp, n, a->logits, a->d, false);
    /* pooled = tanh(x Wpᵀ + bp) */
    qkvi_tanh_backward(ctx, n, p->hidden, a->pooled, a->d, a->d);
    qkvi_pack_rows(ctx, n, p->hidden, a->x, packed);
    qkvi_linear_backward_params(ctx, &grads->pooler, n, a->d, packed, sums);
    qkvi_linear_backward_input(ctx, &p->pooler, n, a->d, a->d_x, false);
}

/* ---- Losses ---------------------------------------------------------------------------------- */

static void zero_linear(const qkvi_linear *d) {
    memset(d->weight, 0, (size_t)(d->n_in * d->n_out) * sizeof *d->weight);
    if (d->bias) memset(d->bias, 0, (size_t)d->n_out * sizeof *d->bias);
}

/*
 * The rows that heads read, first those of targets, then first tokens; the last block picks them.
 */
static void wanted_rows(const qkvi_bert_batch *batch, qkvi_bert_pass *pass) {
    int32_t *rows = pass->pick.rows;
    for (int64_t i = 0; i < batch->n_targets; i++)
        *rows++ = pass->rows.row_of_token[batch->target_tokens[i]];
    for (int64_t b = 0; b < pass->n_labels; b++) *rows++ = (int32_t)pass->rows.first_row[b];
}

/* Losses; logits become their gradients. A head without rows is a head of zero rows. */
static void heads_forward(qkv_ctx *ctx, const qkvi_bert_params *p, const qkvi_bert_batch *batch,
                          qkvi_bert_pass *pass, qkvi_bert_losses *losses) {
    qkvi_cross_entropy mlm = { 0 }, nsp = { 0 };
    if (p->has_mlm) {
        mlm_forward(ctx, p, batch->n_targets, &pass->mlm);
        qkvi_cross_entropy_rows(ctx, batch->n_targets, p->vocab_size, batch->target_ids,
                                pass->mlm.logits, pass->row_loss, &mlm);
    }
    if (p->has_nsp) {
        nsp_forward(ctx, p, pass->n_labels, &pass->nsp);
        qkvi_cross_entropy_rows(ctx, pass->n_labels, 2, batch->labels, pass->nsp.logits,
                                pass->row_loss, &nsp);
    }
    *losses = (qkvi_bert_losses){ mlm.mean, nsp.mean, mlm.n, mlm.n_right, nsp.n, nsp.n_right };
}

/* Gradients of the heads, and pass->pick.d: that of the rows they read. */
static void heads_backward(qkv_ctx *ctx, const qkvi_bert_params *p, const qkvi_bert_params *grads,
                           int64_t n_targets, const qkvi_bert_pass *pass) {
    if (p->has_mlm)
        mlm_backward(ctx, p, grads, n_targets, &pass->mlm);
    else
        zero_linear(&grads->decoder);
    if (p->has_nsp)
        nsp_backward(ctx, p, grads, pass->n_labels, &pass->nsp, &pass->scratch.mha);
    else if (p->has_pooler)
        zero_linear(&grads->pooler);
    if (!p->has_judge) return;
    zero_linear(&grads->judge);
    zero_linear(&grads->judgement);
}

static qkv_status loss_and_grads(qkv_ctx *ctx, const qkvi_bert_params *params,
                                 const qkvi_bert_batch *batch, qkvi_bert_pass *pass,
                                 const qkvi_bert_params *grads, qkvi_bert_losses *losses) {
    wanted_rows(batch, pass);
    QKV_TRY(qkvi_encoder_forward(ctx, params, pass));
    heads_forward(ctx, params, batch, pass, losses);
    if (!grads) return QKV_OK;
    heads_backward(ctx, params, grads, batch->n_targets, pass);
    return qkvi_encoder_backward(ctx, params, grads, pass);
}

qkv_status qkvi_bert_loss(qkv_ctx *ctx, const qkvi_bert_params *params,
                          const qkvi_bert_batch *batch, qkvi_bert_pass *pass,
                          const qkvi_bert_params *grads, qkvi_bert_losses *losses,
                          qkv_error *error) {
    QKV_TRY(qkvi_pass_begin(params, batch, QKVI_KEEP_ALL, pass, error));
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status = loss_and_grads(ctx, params, batch, pass, grads, losses);
    qkvi_fpstate_leave(saved);
    return qkvi_pass_failed(ctx, status, error);
}
