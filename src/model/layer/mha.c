/* Multi-head attention over groups of equal lengths, forward and backward: see block.h. */
#include "model/layer/block.h"

#include <math.h>

#include "files/base.h"

double qkvi_mha_scale(const qkvi_mha *layer, const qkvi_mha_change *change) {
    double scale = layer->scale != 0 ? layer->scale : 1 / sqrt((double)layer->head_dim);
    if (change->no_scale) scale = 1;
    return change->temperature != 0 ? scale / change->temperature : scale;
}

void qkvi_mha_describe_scores(const qkvi_mha *layer, const qkvi_mha_change *change,
                              qkv_attention_desc *desc) {
    const bool divided = change->temperature != 0 && change->temperature != 1;
    if (change->causal) desc->flags |= QKV_SET_CAUSAL;
    if (layer->windowed) {
        desc->flags |= QKV_SET_WINDOW;
        desc->window_left = layer->window_left;
        desc->window_right = layer->window_right;
    }
    if (layer->softcap > 0) {
        desc->flags |= QKV_SET_SOFTCAP;
        desc->softcap = layer->softcap;
    }
    if (layer->distances) qkvi_distance_bias_describe(layer->distances, desc);
    if (layer->alibi) {
        desc->flags |= QKV_SET_ALIBI;
        desc->alibi_slopes = layer->alibi;
    }
    if (layer->scale == 0 && !change->no_scale && !divided) return;
    desc->flags |= QKV_SET_SCALE;
    desc->scale = (float)qkvi_mha_scale(layer, change);
}

/*
 * The problem of one group: [n_sequences][n_heads][len][head_dim] by strides into rows of all
 * heads.
 */
static qkv_attention_desc describe(const qkvi_mha *layer, const qkvi_groups *groups,
                                   const qkvi_sequence_group *group) {
    qkv_attention_desc desc;
    const qkvi_mha_change *const change = &groups->change;
    const int64_t head_dim = layer->head_dim;
    const int64_t width = qkvi_mha_width(layer), kv_width = qkvi_mha_kv_width(layer);
    const int64_t len = group->len, len_keys = group->len_keys;
    qkv_attention_desc_contiguous(&desc, group->n_sequences, layer->n_heads, layer->n_kv_heads, len,
                                  len_keys, head_dim, head_dim);
    const int64_t rows[3] = { len * width, head_dim, width };
    const int64_t keys[3] = { len_keys * kv_width, head_dim, kv_width };
    for (int d = 0; d < 3; d++) {
        desc.q_stride[d] = desc.o_stride[d] = rows[d];
        desc.k_stride[d] = desc.v_stride[d] = keys[d];
    }
    qkvi_mha_describe_scores(layer, change, &desc);
    if (change->cut && change->cut->sees) {
        desc.flags |= QKV_SET_MASK;
        desc.mask = change->cut->sees;
        desc.mask_type = QKV_MASK_BOOL;
        desc.mask_stride[1] = change->cut->head_stride;
        desc.mask_stride[2] = len_keys;
        desc.mask_stride[3] = 1;
    } else if (change->seen) { /* the same keys for every query */
        desc.flags |= QKV_SET_MASK;
        desc.mask = change->seen + group->first_key;
        desc.mask_type = QKV_MASK_BOOL;
        desc.mask_stride[0] = len_keys;
        desc.mask_stride[3] = 1;
    }
    if (groups->dropout.rate > 0) { /* every group has weights of its own */
        desc.flags |= QKV_SET_DROPOUT;
        desc.dropout = groups->dropout.rate;
        desc.dropout_seed = qkvi_dropout_seed(&groups->dropout, (uint64_t)group->first_row);
    }
    return desc;
}

/* The same, of q, k and v in bf16. */
static qkv_attention_desc describe_half(const qkvi_mha *layer, const qkvi_groups *groups,
                                        const qkvi_sequence_group *group) {
    qkv_attention_desc desc = describe(layer, groups, group);
    desc.flags |= QKV_SET_O_DTYPE; /* QKV_F32 */
    desc.dtype = QKV_BF16;
    desc.arithmetic = layer->query.half_class;
    return desc;
}

static qkv_status attend(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_groups *groups,
                         const qkvi_sequence_group *group, const qkvi_mha_acts *acts) {
    const int64_t at = group->first_row * qkvi_mha_width(layer),
                  from = group->first_key * qkvi_mha_kv_width(layer);
    float *const o = acts->o + at, *const lse = acts->lse + group->first_row * layer->n_heads;
    if (acts->half[0]) {
        const qkv_attention_desc desc = describe_half(layer, groups, group);
        return qkv_attention_forward(ctx, &desc, acts->half[0] + at, acts->half[1] + from,
                                     acts->half[2] + from, o, lse, NULL);
    }
    const qkv_attention_desc desc = describe(layer, groups, group);
    return qkv_attention_forward(ctx, &desc, acts->q + at, acts->k + from, acts->v + from, o, lse,
                                 NULL);
}

/* ---- Norms and turns of queries and keys ----------------------------------------------------- */

/* As many rows as the norm has: of heads, or of all of them. */
static int64_t norm_rows(const qkvi_layernorm *norm, int64_t n_rows, int64_t width) {
    return n_rows * (width / norm->n);
}

static qkvi_rope_heads rope_heads(const qkvi_mha *layer, int64_t n_heads) {
    return (qkvi_rope_heads){ n_heads, layer->head_dim, layer->turned, layer->neighbours };
}

static void place(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_layernorm *norm, int64_t n_rows,
                  int64_t n_heads, const float *turns, float *raw, float *stats, float *x) {
    const int64_t width = n_heads * layer->head_dim;
    if (norm->gamma)
        qkvi_layernorm_forward(ctx, norm, layer->eps, norm_rows(norm, n_rows, width), NULL,
                               raw ? raw : x, x, stats);
    const qkvi_rope_heads heads = rope_heads(layer, n_heads);
    if (turns) qkvi_rotate(ctx, &heads, n_rows, turns, false, x);
}

void qkvi_mha_place(qkv_ctx *ctx, const qkvi_mha *layer, int64_t n_rows, int64_t n_keys,
                    const float *turns, const qkvi_mha_acts *acts) {
    place(ctx, layer, &layer->q_norm, n_rows, layer->n_heads, turns, acts->raw[0], acts->stats[0],
          acts->q);
    place(ctx, layer, &layer->k_norm, n_keys, layer->n_kv_heads, turns, acts->raw[1],
          acts->stats[1], acts->k);
}

/* d, the gradient of x that was placed, becomes that of what the projection gave. */
static void place_backward(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_layernorm *norm,
                           const qkvi_layernorm *d_norm, int64_t n_rows, int64_t n_heads,
                           const float *turns, const float *raw, const float *stats, float *d,
                           float *sums) {
    const int64_t width = n_heads * layer->head_dim;
    const qkvi_rope_heads heads = rope_heads(layer, n_heads);
    if (turns) qkvi_rotate(ctx, &heads, n_rows, turns, true, d);
    if (norm->gamma)
        qkvi_layernorm_backward(ctx, norm, d_norm, norm_rows(norm, n_rows, width), raw, stats, d, d,
                                sums);
}

qkv_status qkvi_mha_forward(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_groups *groups,
                            const float *x, const float *memory, qkvi_mha_acts *acts) {
    const qkvi_linear *const maps[3] = { &layer->query, &layer->key, &layer->value };
    float *const results[3] = { acts->raw[0] ? acts->raw[0] : acts->q,
                                acts->raw[1] ? acts->raw[1] : acts->k, acts->v };
    const int n_apart = memory ? 1 : 0; /* the query's x is not what the others read */
    if (memory) qkvi_linear_forward(ctx, &layer->query, groups->n_rows, x, acts->q);
    qkvi_linears_forward(ctx, 3 - n_apart, maps + n_apart, groups->n_keys, memory ? memory : x,
                         results + n_apart, acts->half[0] ? acts->half : NULL);
    qkvi_mha_place(ctx, layer, groups->n_rows, groups->n_keys, groups->turns, acts);
    for (int64_t g = 0; g < groups->n_groups; g++)
        QKV_TRY(attend(ctx, layer, groups, &groups->list[g], acts));
    return QKV_OK;
}

static qkv_status attention_backward(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_mha *d_layer,
                                     const qkvi_groups *groups, int64_t g,
                                     const qkvi_mha_acts *acts, const qkvi_mha_scratch *d) {
    const qkvi_sequence_group *group = &groups->list[g];
    const qkv_attention_desc desc = describe(layer, groups, group);
    const int64_t at = group->first_row * qkvi_mha_width(layer),
                  from = group->first_key * qkvi_mha_kv_width(layer);
    qkv_attention_grads grads;
    qkv_attention_grads_contiguous(&grads, &desc);
    for (int i = 0; i < 3; i++) {
        grads.d_o_stride[i] = grads.d_q_stride[i] = desc.q_stride[i];
        grads.d_k_stride[i] = grads.d_v_stride[i] = desc.k_stride[i];
    }
    grads.d_o = d->d_o + at;
    grads.d_q = d->d_q + at;
    grads.d_k = d->d_k + from;
    grads.d_v = d->d_v + from;
    if (layer->distances) grads.d_distance_bias = d->d_bias;
    QKV_TRY(qkv_attention_backward(ctx, &desc, acts->q + at, acts->k + from, acts->v + from,
                                   acts->o + at, acts->lse + group->first_row * layer->n_heads,
                                   &grads, NULL));
    if (layer->distances)
        qkvi_distance_bias_backward(layer->distances, d->d_bias, d_layer->distances->table);
    return QKV_OK;
}

qkv_status qkvi_mha_backward(qkv_ctx *ctx, const qkvi_mha *layer, const qkvi_mha *d,
                             const qkvi_groups *groups, const float *x, const float *memory,
                             const qkvi_mha_acts *acts, float *d_x, float *d_memory,
                             const qkvi_mha_scratch *scratch) {
    const int64_t n_rows = groups->n_rows, n_keys = groups->n_keys;
    float *packed = scratch->packed, *sums = scratch->sums, *product = scratch->product;

    /* o = softmax(scale q kᵀ) v */
    for (int64_t g = 0; g < groups->n_groups; g++) {
        const qkv_status status = attention_backward(ctx, layer, d, groups, g, acts, scratch);
        if (status != QKV_OK) return status;
    }

    /* q = turn(norm(q)), k = turn(norm(k)) */
    place_backward(ctx, layer, &layer->q_norm, &d->q_norm, n_rows, layer->n_heads, groups->turns,
                   acts->raw[0], acts->stats[0], scratch->d_q, sums);
    place_backward(ctx, layer, &layer->k_norm, &d->k_norm, n_keys, layer->n_kv_heads, groups->turns,
                   acts->raw[1], acts->stats[1], scratch->d_k, sums);

    /* q = x Wqᵀ + bq, k = m Wkᵀ + bk, v = m Wvᵀ + bv */
    qkvi_pack_rows(ctx, &layer->query, n_rows, x, packed);
    qkvi_linear_backward_params(ctx, &layer->query, &d->query, n_rows, scratch->d_q, packed, sums);
    if (memory) qkvi_pack_rows(ctx, &layer->key, n_keys, memory, packed);
    qkvi_linear_backward_params(ctx, &layer->key, &d->key, n_keys, scratch->d_k, packed, sums);
    qkvi_linear_backward_params(ctx, &layer->value, &d->value, n_keys, scratch->d_v, packed, sums);
    qkvi_linear_backward_input_add(ctx, &layer->query, n_rows, scratch->d_q, d_x, product);
    qkvi_linear_backward_input_add(ctx, &layer->key, n_keys, scratch->d_k, d_memory, product);
    qkvi_linear_backward_input_add(ctx, &layer->value, n_keys, scratch->d_v, d_memory, product);
    return QKV_OK;
}
