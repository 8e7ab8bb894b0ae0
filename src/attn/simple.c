/* The one call for dense arrays of floats. */
#include "attn/ctx.h"
#include "qkv/qkv.h"

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
