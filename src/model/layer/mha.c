/* Multi-head self-attention over groups of equal length, forward and backward: see mha.h. */
#include "model/layer/mha.h"

/*
 * The problem of one group: [n_sequences][n_heads][len][head_dim] by strides into [rows][hidden].
 */
static qkv_attention_desc describe(const qkvi_mha *layer, const qkvi_group *group,
                                   const qkvi_mha_change *change) {
    qkv_attention_desc desc;
    const int64_t n_heads = layer->n_heads, head_dim = layer->head_dim, len = group->len;
    qkv_attention_desc_contiguous(&desc, group->n_sequences, n_heads, n_heads, len, len, head_dim,
                                  head_dim);
    const int64_t stride[3] = { len * layer->hidden, head_dim, layer->hidden };
    for (int d = 0; d < 3; d++)
        desc.q_stride[d] = desc.k_stride[d] = desc.v_stride[d] = desc.o_stride[d] = stride[d];
    if (change->causal) desc.flags |= QKV_SET_CAUSAL;
    if (change->scale != 0) {
        desc.flags |= QKV_SET_SCALE;
        desc.scale = change->scale;
    }
    if (change->seen) { /* the same keys for every query */
        desc.flags |= QKV_SET_MASK;
        desc.mask = change->seen + group->first_row;
        desc.mask_type = QKV_MASK_BOOL;
        desc.mask_stride[0] = len;
        desc.mask_stride[3] = 1;
    }
    return desc;
}

qkv_status qkvi_mha_forward(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_groups *groups,
                            const float *x, qkvi_mha_acts *acts) {
    qkvi_linear_forward(ctx, &layer->query, groups->n_rows, x, acts->q);
    qkvi_linear_forward(ctx, &layer->key, groups->n_rows, x, acts->k);
    qkvi_linear_forward(ctx, &layer->value, groups->n_rows, x, acts->v);
    for (int64_t g = 0; g < groups->n_groups; g++) {
        const qkvi_group *group = &groups->list[g];
        const qkv_attention_desc desc = describe(layer, group, &groups->change);
        const int64_t at = group->first_row * layer->hidden;
        const qkv_status status = qkv_attention_forward(
            ctx, &desc, acts->q + at, acts->k + at, acts->v + at, acts->o + at,
            acts->lse + group->first_row * layer->n_heads, NULL);
        if (status != QKV_OK) return status;
    }
    return QKV_OK;
}

static qkv_status attention_backward(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_groups *groups,
                                     int64_t g, const qkvi_mha_acts *acts,
                                     const qkvi_mha_scratch *d) {
    const qkvi_group *group = &groups->list[g];
    const qkv_attention_desc desc = describe(layer, group, &groups->change);
    const int64_t at = group->first_row * layer->hidden;
    qkv_attention_grads grads;
    qkv_attention_grads_contiguous(&grads, &desc);
    for (int i = 0; i < 3; i++)
        grads.d_o_stride[i] = grads.d_q_stride[i] = grads.d_k_stride[i] = grads.d_v_stride[i] =
            desc.q_stride[i];
    grads.d_o = d->d_o + at;
    grads.d_q = d->d_q + at;
    grads.d_k = d->d_k + at;
    grads.d_v = d->d_v + at;
    return qkv_attention_backward(ctx, &desc, acts->q + at, acts->k + at, acts->v + at,
                                  acts->o + at, acts->lse + group->first_row * layer->n_heads,
                                  &grads, NULL);
}

qkv_status qkvi_mha_backward(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_mha *d,
                             const qkvi_groups *groups, const float *x, const qkvi_mha_acts *acts,
                             float *d_x, const qkvi_mha_scratch *scratch) {
    const int64_t n_rows = groups->n_rows, hidden = layer->hidden;
    float *packed = scratch->packed, *sums = scratch->sums;

    /* o = softmax(q kᵀ / √head_dim) v */
    for (int64_t g = 0; g < groups->n_groups; g++) {
        const qkv_status status = attention_backward(ctx, layer, groups, g, acts, scratch);
        if (status != QKV_OK) return status;
    }

    /* q = x Wqᵀ + bq, k = x Wkᵀ + bk, v = x Wvᵀ + bv */
    qkvi_pack_rows(ctx, n_rows, hidden, x, packed);
    qkvi_linear_backward_params(ctx, &d->query, n_rows, scratch->d_q, packed, sums);
    qkvi_linear_backward_params(ctx, &d->key, n_rows, scratch->d_k, packed, sums);
    qkvi_linear_backward_params(ctx, &d->value, n_rows, scratch->d_v, packed, sums);
    qkvi_linear_backward_input(ctx, &layer->query, n_rows, scratch->d_q, d_x, true);
    qkvi_linear_backward_input(ctx, &layer->key, n_rows, scratch->d_k, d_x, true);
    qkvi_linear_backward_input(ctx, &layer->value, n_rows, scratch->d_v, d_x, true);
    return QKV_OK;
}
