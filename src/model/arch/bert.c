/*
 * BERT's encoder, forward and backward: embeddings, norm, blocks. Wiring only.
 *
 *     h0 = norm(word + type + position)      h[l + 1] = block[l](h[l])
 *
 * ELECTRA's h0 is that norm after a linear layer to the width of the blocks.
 */
#include "model/arch/bert.h"

#include "core/fpstate.h"
#include "core/status.h"
#include "model/arch/bert_pass.h"

static qkvi_embed_rows embed_rows(const qkvi_bert_pass *pass) {
    return (qkvi_embed_rows){ pass->rows.ids, pass->rows.types, pass->rows.places };
}

/* Training needs the last block for the rows that heads read. */
static const qkvi_pick *pick_of(const qkvi_bert_pass *pass, int64_t layer) {
    const bool train = pass->keep & QKVI_KEEP_ALL;
    return train && layer == pass->n_layers - 1 ? &pass->pick : NULL;
}

qkv_status qkvi_encoder_forward(qkv_ctx *ctx, const qkvi_bert_params *params,
                                qkvi_bert_pass *pass) {
    const int64_t n = pass->rows.n_rows;
    const qkvi_groups groups = qkvi_pass_groups(pass);
    const qkvi_embed_rows rows = embed_rows(pass);
    qkvi_embed_forward(ctx, &params->embed, n, &rows, pass->embed_s);
    qkvi_layernorm_forward(ctx, &params->embed_norm, params->eps, n, NULL, pass->embed_s,
                           pass->embedded, pass->embed_stats);
    if (qkvi_bert_projects(params))
        qkvi_linear_forward(ctx, &params->project, n, pass->embedded, pass->h0);
    const float *x = pass->h0;
    for (int64_t l = 0; l < params->n_layers; l++) {
        QKV_TRY(qkvi_block_forward(ctx, &params->blocks[l], &groups, pick_of(pass, l), x,
                                   &pass->acts[l]));
        x = pass->acts[l].y2;
    }
    return QKV_OK;
}

/* pass->d is the gradient of h0; returns that of the norm's output. */
static float *project_backward(qkv_ctx *ctx, const qkvi_bert_params *params,
                               const qkvi_bert_params *grads, qkvi_bert_pass *pass) {
    const int64_t n = pass->rows.n_rows;
    if (!qkvi_bert_projects(params)) return pass->d;
    qkvi_pack_rows(ctx, n, params->embedding_size, pass->embedded, pass->embed_packed);
    qkvi_linear_backward_params(ctx, &grads->project, n, pass->d, pass->embed_packed,
                                pass->embed_sums);
    qkvi_linear_backward_input(ctx, &params->project, n, pass->d, pass->d_embed, false);
    return pass->d_embed;
}

qkv_status qkvi_encoder_backward(qkv_ctx *ctx, const qkvi_bert_params *params,
                                 const qkvi_bert_params *grads, qkvi_bert_pass *pass) {
    const int64_t n = pass->rows.n_rows;
    const qkvi_groups groups = qkvi_pass_groups(pass);
    const qkvi_embed_rows rows = embed_rows(pass);
    for (int64_t l = params->n_layers - 1; l >= 0; l--) {
        const float *x = l ? pass->acts[l - 1].y2 : pass->h0;
        QKV_TRY(qkvi_block_backward(ctx, &params->blocks[l], &grads->blocks[l], &groups,
                                    pick_of(pass, l), x, &pass->acts[l], pass->d, &pass->scratch));
    }
    float *const d = project_backward(ctx, params, grads, pass);
    qkvi_layernorm_backward(ctx, &params->embed_norm, &grads->embed_norm, n, pass->embed_s,
                            pass->embed_stats, d, d, pass->embed_sums);
    qkvi_embed_backward(ctx, &grads->embed, n, &rows, d, pass->embed_scratch);
    return QKV_OK;
}

qkv_status qkvi_pass_failed(const qkv_ctx *ctx, qkv_status status, qkv_error *error) {
    if (status == QKV_OK) return QKV_OK;
    if (status == QKV_ERR_BUSY) /* then the context's message belongs to the other call */
        return qkvi_error_set(error, status, "the context is inside another call");
    return qkvi_error_set(error, status, "%s", qkv_ctx_message(ctx));
}

qkv_status qkvi_bert_forward(qkv_ctx *ctx, const qkvi_bert_params *params,
                             const qkvi_bert_batch *batch, uint32_t flags, qkvi_bert_pass *pass,
                             qkv_error *error) {
    qkvi_bert_batch inputs = *batch; /* no targets, no labels */
    inputs.n_targets = 0;
    inputs.labels = NULL;
    QKV_TRY(
        qkvi_pass_begin(params, &inputs, flags & (QKV_RUN_CAPTURE | QKV_RUN_HIDDEN), pass, error));
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status = qkvi_encoder_forward(ctx, params, pass);
    qkvi_fpstate_leave(saved);
    return qkvi_pass_failed(ctx, status, error);
}
