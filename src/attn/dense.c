/*
 * Dense arrays: descriptors and gradients for callers to begin with, where nothing is checked, and
 * the one call for floats.
 */
#include "attn/ctx.h"
#include "core/options.h"
#include "qkv/qkv.h"

/*
 * Strides of a dense [..][n_heads][len][row]. They may wrap for absurd sizes: the checks of
 * a call find those.
 */
static void dense(int64_t stride[3], int64_t n_heads, int64_t len, int64_t row) {
    stride[2] = row;
    stride[1] = (int64_t)((uint64_t)len * (uint64_t)row);
    stride[0] = (int64_t)((uint64_t)n_heads * (uint64_t)stride[1]);
}

void qkv_attention_desc_fill(qkv_attention_desc *desc, int64_t n_batch, int64_t n_heads,
                             int64_t n_kv_heads, int64_t len_q, int64_t len_k, int64_t head_dim,
                             int64_t head_dim_v) {
    if (!desc) return;
    qkv_attention_desc made = { .dtype = QKV_F32,
                                .n_batch = n_batch,
                                .n_heads = n_heads,
                                .n_kv_heads = n_kv_heads,
                                .len_q = len_q,
                                .len_k = len_k,
                                .head_dim = head_dim,
                                .head_dim_v = head_dim_v };
    dense(made.q_stride, n_heads, len_q, head_dim);
    dense(made.k_stride, n_kv_heads, len_k, head_dim);
    dense(made.v_stride, n_kv_heads, len_k, head_dim_v);
    dense(made.o_stride, n_heads, len_q, head_dim_v);
    dense(made.lse_stride, n_heads, len_q, 1);
    qkvi_options_write(desc, &made, sizeof made);
}

/* Dense, and 0 where the mask repeats. */
static void dense_mask(int64_t stride[4], const qkv_attention_desc *desc) {
    const int64_t len_k = desc->mask_len_k ? desc->mask_len_k : desc->len_k;
    const int64_t size[4] = { desc->n_batch, desc->n_heads, desc->len_q, len_k };
    uint64_t elems = 1;
    for (int n = 3; n >= 0; n--) {
        if (desc->mask_stride[n] == 0 || (n == 3 && desc->mask_len_k == 1)) continue;
        stride[n] = (int64_t)elems;
        elems *= (uint64_t)size[n];
    }
}

void qkv_attention_grads_fill(qkv_attention_grads *grads, const qkv_attention_desc *desc) {
    qkv_attention_desc d = { 0 };
    if (!grads || !desc || qkvi_options_read(&d, sizeof d, desc, "desc", NULL) != QKV_OK) return;
    qkv_attention_grads made = { 0 };
    dense(made.d_q_stride, d.n_heads, d.len_q, d.head_dim);
    dense(made.d_k_stride, d.n_kv_heads, d.len_k, d.head_dim);
    dense(made.d_v_stride, d.n_kv_heads, d.len_k, d.head_dim_v);
    dense(made.d_o_stride, d.n_heads, d.len_q, d.head_dim_v);
    if (d.flags & QKV_SET_MASK) dense_mask(made.d_mask_stride, &d);
    if (d.flags & QKV_SET_DISTANCE_BIAS && d.distance_bias_stride)
        made.d_distance_bias_stride =
            (int64_t)((uint64_t)d.distance_before + 1 + (uint64_t)d.distance_after);
    qkvi_options_write(grads, &made, sizeof made);
}

qkv_status qkv_attention(qkv_ctx *ctx, int64_t n_batch, int64_t n_heads, int64_t len_q,
                         int64_t len_k, int64_t head_dim, qkv_visibility visibility, const float *q,
                         const float *k, const float *v, float *o) {
    qkv_attention_desc desc;
    qkv_attention_desc_contiguous(&desc, n_batch, n_heads, n_heads, len_q, len_k, head_dim,
                                  head_dim);
    if (visibility == QKV_CAUSAL)
        desc.flags |= QKV_SET_CAUSAL;
    else if (visibility != QKV_FULL) {
        QKV_TRY(qkvi_ctx_begin(ctx));
        return qkvi_ctx_end(ctx,
                            qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT,
                                          "visibility = %d is no qkv_visibility", (int)visibility));
    }
    return qkv_attention_forward(ctx, &desc, q, k, v, o, NULL, NULL);
}
