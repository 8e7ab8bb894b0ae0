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
 * A row of pages has ceil(len_k / page_len) entries (ring_len / page_len in a ring) unless row_pages
 * says that there are fewer: then no query may see a key beyond them. Entries of keys that no query
 * may see by position are not read; the others must be in [0, n_pages). The same page may stand in
 * any number of rows.
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
    int64_t row_pages;    /* entries of a row; 0: as many as len_k (ring_len) asks for */
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
 * For several: QKV_SET_CAUSAL and QKV_SET_Q_OFFSET with q_offsets[b] = kv_len[b] - len_q.
 *
 * With QKV_SET_STATS statistics of the rows, as forward writes them (qkv/stats.h): o and lse keep their
 * bits.
 *
 * Overlap: o, lse and statistics must overlap nothing.
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
 *         dropout and for packed sequences (give each sequence its kv_len).
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_decode(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                                      const void *q, const qkv_kv_view *view,
                                                      void *o, float *lse,
                                                      const qkv_call_options *call);

/**
 * Bytes of workspace that qkv_attention_decode needs with this descriptor, for any view: a closed
 * formula of shapes, window and number of threads (docs/numerics.md).
 * @return QKV_OK, or what the call itself would return for this descriptor; a view's faults, and wrong
 *         lists of blocks, are refused by the call alone.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_decode_workspace(qkv_ctx *ctx,
                                                                const qkv_attention_desc *desc,
                                                                size_t *bytes);

/* ---- Cache ----------------------------------------------------------------------------------- */

/**
 * Keys and values of several sequences that grow: pages of page_len tokens out of one block of
 * memory, which is allocated when the cache is made, and nothing after that. Sequences that begin
 * alike share pages until one of them writes into such a page, which is then copied.
 *
 * One call at a time, appends not during decode. A call that fails changes nothing.
 */
typedef struct qkv_kv_cache qkv_kv_cache;

typedef struct qkv_kv_cache_options {
    size_t struct_size;
    qkv_dtype dtype;     /* how K and V are stored */
    int64_t n_sequences; /* 0 ... n_sequences - 1, all empty at first */
    int64_t n_kv_heads, head_dim, head_dim_v;
    int64_t page_len; /* a multiple of 16; 0: 64 */
    int64_t n_pages;  /* for all sequences together */
    int64_t
        max_len; /* of a sequence; 0: as many as there are tokens in all pages, or 2^48 in a ring */
    int64_t ring_len; /* a multiple of page_len: only the last so many tokens stay; 0: all do */
} qkv_kv_cache_options;

#define QKV_KV_CACHE_OPTIONS_INIT                                                                  \
    { sizeof(qkv_kv_cache_options), QKV_F32, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * Makes a cache with the context's allocator, which must work until the cache is destroyed; the
 * context itself need not live so long. Bytes: n_pages n_kv_heads page_len (head_dim + head_dim_v)
 * times those of an element, for QKV_I8 8 n_pages n_kv_heads page_len more, 8 n_pages, and
 * (4 row + 16) n_sequences with row = ceil(max_len or ring_len / page_len), each piece rounded up to
 * 64.
 *
 * @param cache  receives the cache; set to NULL on error.
 * @return QKV_OK; QKV_ERR_SHAPE for a size that is out of range or no multiple; QKV_ERR_DTYPE;
 *         QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_kv_cache_create(qkv_ctx *ctx,
                                                     const qkv_kv_cache_options *options,
                                                     qkv_kv_cache **cache);

/** Frees everything. NULL is allowed. */
QKV_API void qkv_kv_cache_destroy(qkv_kv_cache *cache);

/**
 * Appends n tokens to a sequence, converted to the cache's type (rounded to nearest even). int8: of
 * each token and head, scale = max |x| / 127 and elements x / scale, rounded to nearest even; a row
 * that has a NaN or an infinity makes every row that sees it NaN.
 *
 * @param dtype     of k and v: QKV_F32, QKV_BF16 or QKV_F16.
 * @param k_stride  of head and token, in elements, of k [n_kv_heads][n][head_dim]; NULL: dense.
 * @param v_stride  alike, with head_dim_v.
 * @return QKV_OK; QKV_ERR_SHAPE if the sequence would exceed max_len, n exceeds ring_len, or too few
 *         pages are free (copies of shared ones count); QKV_ERR_ARGUMENT for a sequence that there
 *         is not, and for arrays; QKV_ERR_DTYPE, QKV_ERR_STRIDE.
 */
QKV_API QKV_NODISCARD qkv_status qkv_kv_cache_append(qkv_ctx *ctx, qkv_kv_cache *cache,
                                                     int64_t sequence, int64_t n, qkv_dtype dtype,
                                                     const void *k, const int64_t k_stride[2],
                                                     const void *v, const int64_t v_stride[2]);

/**
 * Shortens a sequence to len tokens: back to before a guess that failed, or to nothing. Pages that
 * it no longer needs are given back. QKV_ERR_SHAPE if it is shorter, or if len > 0 and the ring has
 * lost token len already.
 */
QKV_API QKV_NODISCARD qkv_status qkv_kv_cache_truncate(qkv_ctx *ctx, qkv_kv_cache *cache,
                                                       int64_t sequence, int64_t len);

/**
 * Makes the empty sequence `to` a copy of `from`, without copying: pages are shared until one of
 * them writes. QKV_ERR_ARGUMENT if `to` is not empty.
 */
QKV_API QKV_NODISCARD qkv_status qkv_kv_cache_fork(qkv_ctx *ctx, qkv_kv_cache *cache, int64_t from,
                                                   int64_t to);

/**
 * What qkv_attention_decode needs to attend to n_sequences sequences from first_sequence on: a view,
 * and their lengths for QKV_SET_KV_LEN (desc.len_k may be any number that is not less). Both point
 * into the cache and follow it.
 */
QKV_API QKV_NODISCARD qkv_status qkv_kv_cache_view(qkv_ctx *ctx, const qkv_kv_cache *cache,
                                                   int64_t first_sequence, int64_t n_sequences,
                                                   qkv_kv_view *view, const int64_t **len);

/** The length of a sequence, tokens that a ring has lost included; -1: there is none such. */
QKV_API int64_t qkv_kv_cache_len(const qkv_kv_cache *cache, int64_t sequence);

/** Pages that no sequence holds; 0 for NULL. */
QKV_API int64_t qkv_kv_cache_free_pages(const qkv_kv_cache *cache);

/** Bytes of memory of the cache; 0 for NULL. */
QKV_API size_t qkv_kv_cache_bytes(const qkv_kv_cache *cache);

#ifdef __cplusplus
}
#endif
#endif
