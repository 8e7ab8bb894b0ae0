/**
 * qkv: attention over stored keys and values, for one or a few query tokens at a time.
 *
 *     qkv_attention_desc_contiguous(&desc, n_batch, 32, 8, 1, len, 128, 128);
 *     qkv_kv_view_contiguous(&view, &desc, QKV_F32);
 *     view.k = k;
 *     view.v = v;
 *     if (qkv_attention_decode(ctx, &desc, q, &view, o, NULL, NULL) != QKV_OK)
 *         fprintf(stderr, "%s\n", qkv_ctx_message(ctx));
 *
 * From a cache, a token of one sequence after another; examples/decode.c is a whole program:
 *
 *     qkv_kv_cache_options options = qkv_kv_cache_options_init();
 *     options.n_sequences = 1, options.n_pages = 1024;
 *     options.n_kv_heads = 8, options.head_dim = options.head_dim_v = 128;
 *     status = qkv_kv_cache_create(ctx, &options, &cache);
 *     ...                                           k, v [8][1][128] and q of a new token:
 *     status = qkv_kv_cache_append(ctx, cache, 0, 1, QKV_F32, k, NULL, v, NULL);
 *     if (status == QKV_OK) status = qkv_kv_cache_view(ctx, cache, 0, 1, &view, &len);
 *     qkv_attention_desc_contiguous(&desc, 1, 32, 8, 1, qkv_kv_cache_len(cache, 0), 128, 128);
 *     desc.flags |= QKV_SET_KV_LEN;
 *     desc.kv_len = len;
 *     if (status == QKV_OK) status = qkv_attention_decode(ctx, &desc, q, &view, o, NULL, NULL);
 */
#ifndef QKV_KV_H
#define QKV_KV_H

#include "qkv/qkv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Where keys and values lie --------------------------------------------------------------- */

/**
 * Where the keys and values of n_batch sequences are stored.
 *
 * Contiguous (page_len 0): k [n_batch][n_kv_heads][len_k][head_dim], strides of batch, head, token.
 * In pages: k [n_pages][n_kv_heads][page_len][head_dim], strides of page, head, token. Token j of
 *     batch b is row j % page_len of page pages[b][j / page_len].
 * In a ring (ring_len > 0): token j is at the place of token j % ring_len. Only the last ring_len
 *     tokens of a sequence are stored; [len_k] above becomes [ring_len].
 * v is the same with head_dim_v. Strides are in elements; those of channels are 1.
 *
 * A row of pages has ceil(len_k / page_len) entries, in a ring ring_len / page_len. With a smaller
 * row_pages it has fewer, and a query that may see a key beyond them is refused. Entries of keys
 * that no query may see by position are not read. All others must be in [0, n_pages). A page may be
 * in many rows.
 */
typedef struct qkv_kv_view {
    size_t struct_size;
    /* Of k and v. q has the type of the descriptor. */
    qkv_dtype dtype;
    const void *k, *v;
    int64_t k_stride[3], v_stride[3];
    /* A multiple of 16, or 0: contiguous. With pages or a ring the caller sets all strides. */
    int64_t page_len;
    int64_t n_pages;
    const int32_t *pages;
    /* Stride of the batch; 0 repeats. */
    int64_t pages_stride;
    /* Entries of a row. 0: as many as len_k or ring_len needs. */
    int64_t row_pages;
    /* A multiple of 16 and of page_len, or 0: no ring. */
    int64_t ring_len;
    /* NULL, or [n_batch]: earlier tokens are no longer stored. */
    const int64_t *first;
    /*
     * QKV_I8: a channel is its element times the scale of its token. Strides are those of batch or
     * page, head, token.
     */
    const float *k_scale, *v_scale;
    int64_t k_scale_stride[3], v_scale_stride[3];
} qkv_kv_view;

/** What qkv_kv_view_contiguous calls: it fills the struct_size bytes that view has. */
QKV_API void qkv_kv_view_fill(qkv_kv_view *view, const qkv_attention_desc *desc, qkv_dtype dtype);

/**
 * Fills a view of contiguous K and V (and scales) that are dense in the shapes of desc. All
 * pointers are NULL. A caller who sets page_len or ring_len must set the strides, too.
 */
static inline void qkv_kv_view_contiguous(qkv_kv_view *view, const qkv_attention_desc *desc,
                                          qkv_dtype dtype) {
    if (!view || !desc) return;
    view->struct_size = sizeof *view;
    qkv_kv_view_fill(view, desc, dtype);
}

/* ---- Decode ---------------------------------------------------------------------------------- */

/**
 * Attention of a few queries over stored keys and values, with the formulas, options and special
 * values of qkv_attention_forward. It is made for a len_q of 1 to 16; any is legal. K and V are
 * read once for all query heads that share them.
 *
 * q, o and lse have the shapes and strides of desc. Its k_stride and v_stride are ignored. For one
 * new token per sequence: len_q 1, QKV_SET_KV_LEN with each sequence's length, no causal rule. For
 * several: QKV_SET_CAUSAL and QKV_SET_Q_OFFSET with q_offsets[b] = kv_len[b] - len_q.
 *
 * Types: class f32 always; 16-bit and int8 elements become floats. desc.arithmetic is checked as in
 *     forward, and then ignored.
 * Overlap: o, lse and statistics must not overlap any array.
 * Special values, accuracy: as forward in class f32. Tokens that a ring no longer stores must not
 *     be visible: with a ring, set QKV_SET_Q_OFFSET with q_offsets[b] = kv_len[b] -
 *     len_q, and a window_left below ring_len.
 * Determinism: the bits of a row depend on its query, its keys and the options. They do not depend
 *     on threads, instruction set, batch, len_q, heads that share keys, or on where the keys are.
 *     The order of sums is not that of forward (docs/numerics.md). Statistics do not change bits of
 *     o.
 * Memory: qkv_attention_decode_workspace. Nothing is allocated once the context has that much.
 * Threads: those of the context, over batches, key/value heads and splits of 1,024 keys.
 *
 * @param lse   NULL: not written.
 * @param call  NULL: the defaults.
 * @return QKV_OK, or an error: o and lse are untouched, except after QKV_ERR_CANCELLED. Errors of
 *         forward; QKV_ERR_SHAPE for lengths that are no multiples, a page outside [0, n_pages), or
 *         a query that may see a token before `first`; QKV_ERR_UNSUPPORTED for dropout and for
 *         packed sequences (set kv_len for each sequence instead).
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_decode(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                                      const void *q, const qkv_kv_view *view,
                                                      void *o, float *lse,
                                                      const qkv_call_options *call);

/**
 * Returns in *bytes the workspace of qkv_attention_decode with this descriptor, for any view: a
 * closed formula of shapes, window and number of threads (docs/numerics.md).
 * @return QKV_OK, or what the call would return for this descriptor. Errors in a view or in lists
 *         of blocks are found by the call alone.
 */
QKV_API QKV_NODISCARD qkv_status qkv_attention_decode_workspace(qkv_ctx *ctx,
                                                                const qkv_attention_desc *desc,
                                                                size_t *bytes);

/* ---- Cache ----------------------------------------------------------------------------------- */

/**
 * Keys and values of several sequences that grow. They are in pages of page_len tokens of one block
 * of memory, which is allocated when the cache is made. Sequences that begin alike share pages; a
 * page is copied when one of them writes into it.
 *
 * A cache serves one call at a time. A call that fails changes nothing.
 */
typedef struct qkv_kv_cache qkv_kv_cache;

typedef struct qkv_kv_cache_options {
    size_t struct_size;
    /* Type in which K and V are stored. */
    qkv_dtype dtype;
    /* Sequences are 0 to n_sequences - 1, all empty at first. */
    int64_t n_sequences;
    int64_t n_kv_heads, head_dim, head_dim_v;
    /* A multiple of 16. 0: 64. */
    int64_t page_len;
    /* For all sequences together. */
    int64_t n_pages;
    /* Of a sequence. 0: as many tokens as all pages have, or 2^48 in a ring. */
    int64_t max_len;
    /* A multiple of page_len: only the last so many tokens are stored. 0: all are. */
    int64_t ring_len;
} qkv_kv_cache_options;

QKV_DEFINE_INIT(qkv_kv_cache_options)

/**
 * Makes a cache with the context's allocator, which must work until the cache is freed. The
 * context may be freed before it. Bytes: n_pages n_kv_heads page_len (head_dim + head_dim_v)
 * elements; for QKV_I8 8 n_pages n_kv_heads page_len more; 8 n_pages; (4 row + 16) n_sequences with
 * row = ceil(max_len or ring_len / page_len); 4 max(head_dim, head_dim_v); and up to 256. Each
 * piece is rounded up to 64. qkv_kv_cache_bytes returns the sum.
 *
 * @param cache  receives the cache; NULL after an error.
 * @return QKV_OK; QKV_ERR_SHAPE for a size out of range or no multiple; QKV_ERR_DTYPE;
 *         QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_kv_cache_create(qkv_ctx *ctx,
                                                     const qkv_kv_cache_options *options,
                                                     qkv_kv_cache **cache);

/** Frees the cache. NULL is allowed. */
QKV_API void qkv_kv_cache_free(qkv_kv_cache *cache);

/**
 * Appends n tokens to a sequence. They are converted to the cache's type, rounded to nearest even.
 * int8: of each token and head, scale = max |x| / 127, and elements are x / scale, rounded to
 * nearest even. A row with a NaN or an infinity makes every row that sees it NaN.
 *
 * Memory: none; pages are those of the cache. Threads: the calling one. Time: O(n), and copies of
 * shared pages.
 *
 * @param dtype     of k and v: QKV_F32, QKV_BF16 or QKV_F16.
 * @param k_stride  of head and token, in elements, of k [n_kv_heads][n][head_dim]. NULL: dense.
 * @param v_stride  the same with head_dim_v.
 * @return QKV_OK; QKV_ERR_SHAPE if the sequence would exceed max_len, n exceeds ring_len, or too
 *         few pages are free (a cache never grows; copies of shared ones count); QKV_ERR_ARGUMENT
 *         for an unknown sequence, and for arrays; QKV_ERR_DTYPE; QKV_ERR_STRIDE.
 */
QKV_API QKV_NODISCARD qkv_status qkv_kv_cache_append(qkv_ctx *ctx, qkv_kv_cache *cache,
                                                     int64_t sequence, int64_t n, qkv_dtype dtype,
                                                     const void *k, const int64_t k_stride[2],
                                                     const void *v, const int64_t v_stride[2]);

/**
 * Shortens a sequence to len tokens, and frees the pages that it no longer needs: tokens len and
 * after are taken back. Older tokens that they displaced from a ring stay lost. QKV_ERR_SHAPE if
 * the sequence is shorter, or if len > 0 and the ring no longer stores token len, the first one
 * that is taken back.
 */
QKV_API QKV_NODISCARD qkv_status qkv_kv_cache_truncate(qkv_ctx *ctx, qkv_kv_cache *cache,
                                                       int64_t sequence, int64_t len);

/**
 * Makes the empty sequence `to` a copy of `from`. Nothing is copied now: pages are shared until one
 * of them writes. QKV_ERR_ARGUMENT if `to` is not empty.
 */
QKV_API QKV_NODISCARD qkv_status qkv_kv_cache_fork(qkv_ctx *ctx, qkv_kv_cache *cache, int64_t from,
                                                   int64_t to);

/** What qkv_kv_cache_view calls: it fills the struct_size bytes that view has. */
QKV_API QKV_NODISCARD qkv_status qkv_kv_cache_view_fill(qkv_ctx *ctx, const qkv_kv_cache *cache,
                                                        int64_t first_sequence, int64_t n_sequences,
                                                        qkv_kv_view *view, const int64_t **len);

/**
 * Returns what qkv_attention_decode needs for n_sequences sequences from first_sequence on: a view,
 * and their lengths for QKV_SET_KV_LEN. Both point into the cache and follow it. desc.len_k may be
 * any number that is not less than these lengths.
 */
QKV_NODISCARD static inline qkv_status qkv_kv_cache_view(qkv_ctx *ctx, const qkv_kv_cache *cache,
                                                         int64_t first_sequence,
                                                         int64_t n_sequences, qkv_kv_view *view,
                                                         const int64_t **len) {
    if (view) view->struct_size = sizeof *view;
    return qkv_kv_cache_view_fill(ctx, cache, first_sequence, n_sequences, view, len);
}

/** Returns the length of a sequence, with tokens that a ring no longer stores; -1: unknown. */
QKV_API int64_t qkv_kv_cache_len(const qkv_kv_cache *cache, int64_t sequence);

/** Returns how many pages no sequence uses; 0 for NULL. */
QKV_API int64_t qkv_kv_cache_free_pages(const qkv_kv_cache *cache);

/** Returns the bytes of memory of the cache; 0 for NULL. */
QKV_API size_t qkv_kv_cache_bytes(const qkv_kv_cache *cache);

#ifdef __cplusplus
}
#endif
#endif
