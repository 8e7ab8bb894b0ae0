/**
 * qkv: attention over keys and values that are kept, one or a few query tokens at a time.
 *
 *     qkv_attention_desc_contiguous(&desc, n_batch, 32, 8, 1, len, 128, 128);
 *     qkv_kv_view_contiguous(&view, &desc, QKV_F32);
 *     view.k = k;
 *     view.v = v;
 *     if (qkv_attention_decode(ctx, &desc, q, &view, o, NULL, NULL) != QKV_OK)
 *         fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
 */
#ifndef QKV_KV_H
#define QKV_KV_H

#include "qkv/qkv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Where keys and values lie --------------------------------------------------------------- */

/**
 * Keys and values of n_batch sequences, as they are stored.
 *
 * Contiguous (page_len 0): k [n_batch][n_kv_heads][len_k][head_dim], strides of batch, head, token.
 * In pages: k [n_pages][n_kv_heads][page_len][head_dim], strides of page, head, token; token j of
 *     batch b is row j % page_len of page pages[b][j / page_len].
 * In a ring (ring_len above 0): token j is where token j % ring_len would be, so that only the last
 *     ring_len tokens of a sequence are there; [len_k] above becomes [ring_len].
 * v alike, with head_dim_v. Strides are in elements, those of channels are 1.
 *
 * A row of pages has ceil(len_k / page_len) entries (ring_len / page_len in a ring). Those of keys
 * that no query may see by position are not read; the others must be in [0, n_pages). The same page
 * may stand in any number of rows.
 */
typedef struct qkv_kv_view {
    size_t struct_size;
    qkv_dtype dtype; /* of k and v, whatever q has */
    const void *k, *v;
    int64_t k_stride[3], v_stride[3];
    int64_t page_len; /* a multiple of 16, or 0: contiguous */
    int64_t n_pages;
    const int32_t *pages;
    int64_t pages_stride; /* of the batch; 0 broadcasts */
    int64_t ring_len;     /* a multiple of 16, and of page_len; 0: no ring */
    const int64_t *first; /* nullable, [n_batch]: tokens before it are no longer there */
    /*
     * QKV_I8: a channel is its element times the scale of its token, in the place of k (v) that the
     * strides of batch or page, head and token name.
     */
    const float *k_scale, *v_scale;
    int64_t k_scale_stride[3], v_scale_stride[3];
} qkv_kv_view;

/**
 * Fills a view of contiguous K and V (and scales) that are dense in the shapes of desc, with all
 * pointers NULL. Whoever sets page_len or ring_len afterwards must set their strides, too.
 */
QKV_API void qkv_kv_view_contiguous(qkv_kv_view *view, const qkv_attention_desc *desc,
                                    qkv_dtype dtype);

/* ---- Decode ---------------------------------------------------------------------------------- */

/**
 * Attention of a few queries over stored keys and values: the formulas, options and special values
 * of qkv_attention_forward, for len_q of 1 ... 16 or so (any is legal). K and V are read once for
 * all query heads that share them, where they lie.
 *
 * q, o and lse have the shapes and strides of desc; its k_stride and v_stride are ignored. For one
 * new token per sequence: len_q 1, QKV_SET_KV_LEN with each sequence's length, and no causal rule.
 * For several: QKV_SET_CAUSAL with q_offsets[b] = kv_len[b] - len_q.
 *
 * Overlap: o and lse must overlap nothing.
 * Special values, accuracy: as forward; a ring's tokens that are no longer there may not be seen.
 * Determinism: the bits of a row depend on its query, its keys and the options; not on threads,
 *     instruction set, batch, len_q, heads that share keys, nor on where the keys lie. The order of
 *     sums is not forward's (docs/numerics.md).
 * Memory: qkv_attention_decode_workspace; nothing is allocated once the context's arena has grown
 *     to it.
 * Threads: the context's, over batches, key/value heads and splits of 1,024 keys.
 *
 * @param lse   nullable.
 * @param call  nullable.
 * @return QKV_OK, or an error: o and lse are then untouched (QKV_ERR_CANCELLED excepted). As
 *         forward; QKV_ERR_SHAPE for lengths that are no multiples, for a page that is not in
 *         [0, n_pages) and for a query that may see a token before `first`; QKV_ERR_UNSUPPORTED for
 *         dropout, for packed sequences (give each sequence its kv_len) and for block masks.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_decode(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                                      const void *q, const qkv_kv_view *view,
                                                      void *o, float *lse,
                                                      const qkv_call_options *call);

/**
 * Bytes of workspace that qkv_attention_decode needs with this descriptor, for any view: a closed
 * formula of shapes, window and number of threads (docs/numerics.md).
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_decode_workspace(qkv_ctx *ctx,
                                                                const qkv_attention_desc *desc,
                                                                size_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
