/* A stack, forward and backward: see stack.h. Wiring only. */
#include "model/arch/stack.h"

/* ---- What blocks read ------------------------------------------------------------------------ */

/* Sites of dropout in a stack: its embeddings, then those of each block. */
static qkvi_row_dropout dropout_of(const qkvi_stack_pass *pass, int64_t layer) {
    qkvi_row_dropout dropout = pass->dropout;
    dropout.site += layer < 0 ? 0 : 1 + (uint32_t)layer * QKVI_BLOCK_SITES;
    return dropout;
}

/* What is cut in a layer; a stack with keys of another one is a decoder over an encoder. */
const qkvi_uncut *qkvi_stack_cut(const qkvi_stack_pass *pass, qkv_attention_kind which,
                                 int64_t layer) {
    const qkvi_uncut *const cuts = pass->change.cuts[which];
    return cuts ? &cuts[layer] : NULL;
}

const float *qkvi_stack_turns(const qkvi_stack_pass *pass, int64_t layer) {
    const int rope = pass->stack->blocks[layer].mha.rope;
    return rope > 0 ? pass->turns[rope - 1] : NULL;
}

static qkvi_block_rows rows_of(const qkvi_stack_pass *pass, int64_t layer) {
    const qkvi_batch_rows *const r = &pass->rows;
    qkvi_block_rows rows = { .memory = pass->memory,
                             .dropout = dropout_of(pass, layer),
                             .layer = layer,
                             .kept = pass->kept,
                             .outputs = pass->outputs };
    rows.self = (qkvi_groups){ .n_rows = r->n_rows,
                               .n_keys = r->n_rows,
                               .n_groups = r->n_groups,
                               .list = r->groups,
                               .turns = qkvi_stack_turns(pass, layer),
                               .change = pass->change };
    rows.self.change.causal |= pass->stack->causal;
    rows.self.change.seen = r->seen;
    rows.self.change.cut = qkvi_stack_cut(pass, pass->keys ? QKV_DECODER : QKV_SELF, layer);
    if (!pass->keys) return rows;
    rows.cross = (qkvi_groups){ .n_rows = r->n_rows,
                                .n_keys = pass->keys->n_rows,
                                .n_groups = r->n_cross_groups,
                                .list = r->cross_groups,
                                .change = pass->change };
    rows.cross.change.causal = false;
    rows.cross.change.seen = pass->keys->seen;
    rows.cross.change.cut = qkvi_stack_cut(pass, QKV_CROSS, layer);
    return rows;
}

/* Training an encoder needs its last block for the rows that heads read. */
static const qkvi_pick *pick_of(const qkvi_stack_pass *pass, int64_t layer) {
    return pass->picks && layer == pass->stack->n_layers - 1 ? &pass->pick : NULL;
}

static const float *input_of(const qkvi_stack_pass *pass, int64_t layer) {
    return layer ? pass->acts[layer - 1].output : pass->h0;
}

/* ---- Forward --------------------------------------------------------------------------------- */

static void embed_forward(qkv_ctx *ctx, const qkvi_stack *stack, qkvi_stack_pass *pass) {
    const int64_t n = pass->rows.n_rows;
    const qkvi_embed_rows rows = { pass->rows.ids, pass->rows.types, pass->rows.places };
    const qkvi_row_dropout dropout = dropout_of(pass, -1);
    if (qkvi_stack_sees(stack)) {
        const qkvi_patch_rows images = qkvi_stack_images(pass);
        qkvi_patches_forward(ctx, &stack->patches, &images, &pass->patches, pass->embed_s);
    } else {
        qkvi_embed_forward(ctx, &stack->embed, n, &rows, pass->embed_s);
    }
    if (stack->embed_norm.gamma)
        qkvi_layernorm_forward(ctx, &stack->embed_norm, stack->eps, n, NULL, pass->embed_s,
                               pass->embedded, pass->embed_stats);
    qkvi_dropout_rows(ctx, &dropout, n, stack->embedding_size, pass->embedded);
    if (qkvi_stack_projects(stack))
        qkvi_linear_forward(ctx, &stack->project, n, pass->embedded, pass->h0);
    if (stack->positions)
        qkvi_gather(ctx, stack->hidden, n, rows.places, 1, true, stack->positions, pass->h0);
}

static void turn_rows(qkv_ctx *ctx, const qkvi_stack *stack, const qkvi_stack_pass *pass) {
    if (qkvi_stack_sees(stack) && stack->patches.theta > 0) {
        const qkvi_patch_rows images = qkvi_stack_images(pass);
        qkvi_patches_turns(&stack->patches, &images, stack->ropes[0].dim, pass->turns[0]);
        return;
    }
    for (int r = 0; r < 2; r++)
        if (stack->ropes[r].w)
            qkvi_rope_turns(ctx, &stack->ropes[r], pass->rows.n_rows, pass->rows.places,
                            pass->rows.reaches, pass->turns[r]);
}

void qkvi_stack_norm(qkv_ctx *ctx, const qkvi_stack *stack, int64_t n_rows, const float *x,
                     float *y, float *stats) {
    /* without a residual s is only read */
    qkvi_layernorm_forward(ctx, &stack->last_norm, stack->eps, n_rows, NULL, (float *)(uintptr_t)x,
                           y, stats);
}

qkv_status qkvi_stack_forward(qkv_ctx *ctx, const qkvi_stack *stack, qkvi_stack_pass *pass) {
    if (pass->first == 0) embed_forward(ctx, stack, pass);
    turn_rows(ctx, stack, pass);
    for (int64_t l = pass->first; l < stack->n_layers; l++) {
        const qkvi_block_rows rows = rows_of(pass, l);
        QKV_TRY(qkvi_block_forward(ctx, &stack->blocks[l], &rows, pick_of(pass, l),
                                   input_of(pass, l), &pass->acts[l]));
    }
    if (stack->last_norm.gamma)
        qkvi_stack_norm(ctx, stack, qkvi_stack_last_rows(pass), input_of(pass, stack->n_layers),
                        pass->y, pass->y_stats);
    return QKV_OK;
}

qkv_status qkvi_pass_failed(const qkv_ctx *ctx, qkv_status status, qkv_error *error) {
    if (status == QKV_OK) return QKV_OK;
    if (status == QKV_ERR_BUSY) /* then the context's message belongs to the other call */
        return qkvi_error_set(error, status, "the context is inside another call");
    return qkvi_error_set(error, status, "%s", qkv_ctx_message(ctx));
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* pass->d is the gradient of h0; returns that of the embeddings, their norm and dropout done. */
static float *project_backward(qkv_ctx *ctx, const qkvi_stack *stack, const qkvi_stack *grads,
                               qkvi_stack_pass *pass) {
    const int64_t n = pass->rows.n_rows;
    if (!qkvi_stack_projects(stack)) return pass->d;
    qkvi_pack_rows(ctx, &stack->project, n, pass->embedded, pass->embed_packed);
    qkvi_linear_backward_params(ctx, &stack->project, &grads->project, n, pass->d,
                                pass->embed_packed, pass->embed_sums);
    qkvi_linear_backward_input(ctx, &stack->project, n, pass->d, pass->d_embed);
    return pass->d_embed;
}

/* Of positions that were added behind a projection. */
static void positions_backward(qkv_ctx *ctx, const qkvi_stack *stack, const qkvi_stack *grads,
                               qkvi_stack_pass *pass) {
    const int64_t n_slots = qkvi_stack_positions(stack);
    if (n_slots == 0) return;
    memset(grads->positions, 0, (size_t)(n_slots * stack->hidden) * sizeof(float));
    qkvi_scatter(ctx, stack->hidden, n_slots, -1, pass->rows.n_rows, pass->rows.places, 1, pass->d,
                 grads->positions, pass->embed_scratch);
}

static void embed_backward(qkv_ctx *ctx, const qkvi_stack *stack, const qkvi_stack *grads,
                           qkvi_stack_pass *pass) {
    const int64_t n = pass->rows.n_rows;
    const qkvi_embed_rows rows = { pass->rows.ids, pass->rows.types, pass->rows.places };
    const qkvi_row_dropout dropout = dropout_of(pass, -1);
    positions_backward(ctx, stack, grads, pass);
    float *const d = project_backward(ctx, stack, grads, pass);
    qkvi_dropout_rows(ctx, &dropout, n, stack->embedding_size, d);
    if (stack->embed_norm.gamma)
        qkvi_layernorm_backward(ctx, &stack->embed_norm, &grads->embed_norm, n, pass->embed_s,
                                pass->embed_stats, d, d, pass->embed_sums);
    if (qkvi_stack_sees(stack)) {
        const qkvi_patch_rows images = qkvi_stack_images(pass);
        qkvi_patches_backward(ctx, &stack->patches, &grads->patches, &images, &pass->patches, d);
        return;
    }
    qkvi_embed_backward(ctx, &grads->embed, n, &rows, d, pass->embed_scratch);
}

qkv_status qkvi_stack_backward(qkv_ctx *ctx, const qkvi_stack *stack, const qkvi_stack *grads,
                               qkvi_stack_pass *pass) {
    float *const d_y = pass->picks ? pass->pick.d : pass->d;
    if (stack->last_norm.gamma)
        qkvi_layernorm_backward(ctx, &stack->last_norm, &grads->last_norm,
                                qkvi_stack_last_rows(pass), input_of(pass, stack->n_layers),
                                pass->y_stats, d_y, d_y, pass->embed_sums);
    const qkvi_distance_bias *const d = &grads->distances;
    if (d->table) memset(d->table, 0, (size_t)(d->n_buckets * d->n_heads) * sizeof *d->table);
    for (int64_t l = stack->n_layers - 1; l >= 0; l--) {
        const qkvi_block_rows rows = rows_of(pass, l);
        QKV_TRY(qkvi_block_backward(ctx, &stack->blocks[l], &grads->blocks[l], &rows,
                                    pick_of(pass, l), input_of(pass, l), &pass->acts[l], pass->d,
                                    pass->d_memory, &pass->scratch));
    }
    embed_backward(ctx, stack, grads, pass);
    return QKV_OK;
}
