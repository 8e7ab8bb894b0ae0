/* See kv_cache.h. */
#include "attn/kv_cache.h"

#include <inttypes.h>
#include <string.h>

#include "core/arena.h"
#include "core/options.h"

enum { PAGE_LEN = 64, MOST_HEADS = 1 << 20, MOST_PAGE_LEN = 1 << 20 };

/* ---- Life ------------------------------------------------------------------------------------ */

static qkv_status check_range(const char *name, int64_t value, int64_t low, int64_t high,
                              qkv_error *e) {
    if (value < low || value > high)
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "%s = %" PRId64 " is not in [%" PRId64 ", %" PRId64 "]", name, value,
                              low, high);
    return QKV_OK;
}

static qkv_status check_options(qkv_kv_cache_options *o, qkv_error *e) {
    if ((int)o->dtype < QKV_F32 || o->dtype > QKV_I8)
        return qkvi_error_set(e, QKV_ERR_DTYPE,
                              "dtype = %d is none of QKV_F32, QKV_BF16, QKV_F16, QKV_I8",
                              (int)o->dtype);
    if (!o->page_len) o->page_len = PAGE_LEN;
    QKV_TRY(check_range("n_sequences", o->n_sequences, 1, INT32_MAX, e));
    QKV_TRY(check_range("n_kv_heads", o->n_kv_heads, 1, MOST_HEADS, e));
    QKV_TRY(check_range("head_dim", o->head_dim, 0, QKVI_MAX_HEAD_DIM, e));
    QKV_TRY(check_range("head_dim_v", o->head_dim_v, 0, QKVI_MAX_HEAD_DIM, e));
    QKV_TRY(check_range("page_len", o->page_len, 1, MOST_PAGE_LEN, e));
    QKV_TRY(check_range("n_pages", o->n_pages, 1, INT32_MAX, e));
    QKV_TRY(check_range("ring_len", o->ring_len, 0, o->n_pages * o->page_len, e));
    const int64_t most = o->ring_len ? QKVI_MAX_SIZE : o->n_pages * o->page_len;
    if (!o->max_len) o->max_len = most;
    QKV_TRY(check_range("max_len", o->max_len, 1, most, e));
    if (o->page_len % QKVI_DECODE_GROUP)
        return qkvi_error_set(e, QKV_ERR_SHAPE, "page_len = %" PRId64 " is not a multiple of %d",
                              o->page_len, (int)QKVI_DECODE_GROUP);
    if (o->ring_len % o->page_len)
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "ring_len = %" PRId64 " is not a multiple of page_len = %" PRId64,
                              o->ring_len, o->page_len);
    return QKV_OK;
}

/* Cuts everything but the struct itself from the block. */
static void lay_out(qkvi_cutter *cutter, qkv_kv_cache *c) {
    const qkv_kv_cache_options *o = &c->o;
    const size_t tokens = (size_t)(o->n_kv_heads * o->page_len);
    const size_t elem = (size_t)c->elem_bytes, scales = o->dtype == QKV_I8 ? sizeof(float) : 0;
    c->k = qkvi_cut(cutter, o->n_pages, tokens * (size_t)o->head_dim * elem);
    c->v = qkvi_cut(cutter, o->n_pages, tokens * (size_t)o->head_dim_v * elem);
    c->k_scale = qkvi_cut(cutter, o->n_pages, tokens * scales);
    c->v_scale = qkvi_cut(cutter, o->n_pages, tokens * scales);
    c->pages = qkvi_cut(cutter, o->n_sequences, (size_t)c->row_pages * sizeof *c->pages);
    c->refs = qkvi_cut(cutter, o->n_pages, sizeof *c->refs);
    c->free_pages = qkvi_cut(cutter, o->n_pages, sizeof *c->free_pages);
    c->len = qkvi_cut(cutter, o->n_sequences, sizeof *c->len);
    c->first = qkvi_cut(cutter, o->n_sequences, sizeof *c->first);
    c->row = qkvi_cut(cutter, qkvi_max_i64(o->head_dim, o->head_dim_v), sizeof *c->row);
}

static void clear(qkv_kv_cache *c) {
    for (int64_t n = 0; n < c->o.n_sequences; n++) c->len[n] = c->first[n] = 0;
    for (int64_t n = 0; n < c->o.n_sequences * c->row_pages; n++) c->pages[n] = -1;
    for (int64_t n = 0; n < c->o.n_pages; n++) { /* page 0 is the first to be taken */
        c->refs[n] = 0;
        c->free_pages[n] = (int32_t)(c->o.n_pages - 1 - n);
    }
    c->n_free = c->o.n_pages;
}

static qkv_status create(qkv_ctx *ctx, const qkv_kv_cache_options *given, qkv_kv_cache **out) {
    qkv_kv_cache c = { .allocator = ctx->allocator };
    qkvi_cutter cutter = { 0 };
    if (!given) return qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "options is NULL");
    QKV_TRY(qkvi_options_read(&c.o, sizeof c.o, given, "options", &ctx->error));
    QKV_TRY(check_options(&c.o, &ctx->error));
    c.elem_bytes = qkvi_storage_bytes(c.o.dtype);
    c.row_pages = qkvi_ceil_div(c.o.ring_len ? c.o.ring_len : c.o.max_len, c.o.page_len);
    (void)qkvi_cut(&cutter, 1, sizeof c);
    lay_out(&cutter, &c);
    if (cutter.overflow)
        return qkvi_ctx_fail(ctx, QKV_ERR_MEMORY, "the cache does not fit the address space");
    c.block_bytes = cutter.used_bytes;
    void *const block = qkvi_alloc(&c.allocator, c.block_bytes);
    if (!block)
        return qkvi_ctx_fail(ctx, QKV_ERR_MEMORY, "no memory for %zu bytes of cache",
                             c.block_bytes);
    cutter = qkvi_cutter_on(block);
    *out = qkvi_cut(&cutter, 1, sizeof c);
    lay_out(&cutter, &c);
    clear(&c);
    **out = c;
    return QKV_OK;
}

qkv_status qkv_kv_cache_create(qkv_ctx *ctx, const qkv_kv_cache_options *options,
                               qkv_kv_cache **cache) {
    if (cache) *cache = NULL;
    QKV_TRY(qkvi_ctx_begin(ctx));
    const qkv_status status =
        cache ? create(ctx, options, cache) : qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "cache is NULL");
    return qkvi_ctx_end(ctx, status);
}

void qkv_kv_cache_free(qkv_kv_cache *cache) {
    if (!cache) return;
    const qkv_allocator allocator = cache->allocator;
    qkvi_release(&allocator, cache, cache->block_bytes);
}

size_t qkv_kv_cache_bytes(const qkv_kv_cache *cache) { return cache ? cache->block_bytes : 0; }

int64_t qkv_kv_cache_free_pages(const qkv_kv_cache *cache) { return cache ? cache->n_free : 0; }

int64_t qkv_kv_cache_len(const qkv_kv_cache *cache, int64_t sequence) {
    return !cache || sequence < 0 || sequence >= cache->o.n_sequences ? -1 : cache->len[sequence];
}

/* ---- Pages ----------------------------------------------------------------------------------- */

qkv_status qkvi_kv_check_sequence(const qkv_kv_cache *c, const char *name, int64_t sequence,
                                  qkv_error *e) {
    if (!c) return qkvi_error_set(e, QKV_ERR_ARGUMENT, "cache is NULL");
    if (sequence < 0 || sequence >= c->o.n_sequences)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s = %" PRId64 " is not in [0, %" PRId64 ")",
                              name, sequence, c->o.n_sequences);
    return QKV_OK;
}

int32_t qkvi_kv_take(qkv_kv_cache *c) {
    const int32_t page = c->free_pages[--c->n_free];
    c->refs[page] = 1;
    return page;
}

void qkvi_kv_drop(qkv_kv_cache *c, int32_t *entry) {
    if (*entry < 0) return;
    if (--c->refs[*entry] == 0) c->free_pages[c->n_free++] = *entry;
    *entry = -1;
}

/* Is a token of [first, len) in this entry of the row? */
static bool holds(const qkv_kv_cache *c, int64_t entry, int64_t first, int64_t len) {
    const int64_t ring = c->o.ring_len, begin = entry * c->o.page_len, end = begin + c->o.page_len;
    if (first == len) return false;
    if (!ring) return begin < len;
    const int64_t from = first % ring, to = from + (len - first); /* of slots, perhaps round it */
    return (begin < to && from < end) || begin + ring < to;
}

static void cut_to(qkv_kv_cache *c, int64_t sequence, int64_t len) {
    c->len[sequence] = len;
    if (len == 0) c->first[sequence] = 0;
    for (int64_t n = 0; n < c->row_pages; n++)
        if (!holds(c, n, c->first[sequence], len))
            qkvi_kv_drop(c, &c->pages[sequence * c->row_pages + n]);
}

static qkv_status truncate_to(qkv_kv_cache *c, int64_t sequence, int64_t len, qkv_error *e) {
    QKV_TRY(qkvi_kv_check_sequence(c, "sequence", sequence, e));
    if (len < 0 || len > c->len[sequence])
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "len = %" PRId64 " is not in [0, %" PRId64 "], the sequence's length",
                              len, c->len[sequence]);
    if (len && len < c->first[sequence])
        return qkvi_error_set(e, QKV_ERR_SHAPE,
                              "len = %" PRId64 " is less than %" PRId64
                              ", the first token that the ring still has",
                              len, c->first[sequence]);
    cut_to(c, sequence, len);
    return QKV_OK;
}

qkv_status qkv_kv_cache_truncate(qkv_ctx *ctx, qkv_kv_cache *cache, int64_t sequence, int64_t len) {
    QKV_TRY(qkvi_ctx_begin(ctx));
    return qkvi_ctx_end(ctx, truncate_to(cache, sequence, len, &ctx->error));
}

/* ---- Sharing --------------------------------------------------------------------------------- */

static qkv_status fork_to(qkv_kv_cache *c, int64_t from, int64_t to, qkv_error *e) {
    QKV_TRY(qkvi_kv_check_sequence(c, "from", from, e));
    QKV_TRY(qkvi_kv_check_sequence(c, "to", to, e));
    if (c->len[to] || from == to)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "to = %" PRId64 " is not empty", to);
    for (int64_t n = 0; n < c->row_pages; n++) {
        const int32_t page = c->pages[from * c->row_pages + n];
        c->pages[to * c->row_pages + n] = page;
        if (page >= 0) c->refs[page]++;
    }
    c->len[to] = c->len[from];
    c->first[to] = c->first[from];
    return QKV_OK;
}

qkv_status qkv_kv_cache_fork(qkv_ctx *ctx, qkv_kv_cache *cache, int64_t from, int64_t to) {
    QKV_TRY(qkvi_ctx_begin(ctx));
    return qkvi_ctx_end(ctx, fork_to(cache, from, to, &ctx->error));
}

/* ---- For decode ------------------------------------------------------------------------------ */

static void strides(const qkv_kv_cache *c, int64_t row, int64_t stride[3]) {
    stride[2] = row;
    stride[1] = c->o.page_len * row;
    stride[0] = c->o.n_kv_heads * stride[1];
}

static qkv_status view_of(const qkv_kv_cache *c, int64_t first, int64_t n, qkv_kv_view *view,
                          const int64_t **len, qkv_error *e) {
    QKV_TRY(qkvi_kv_check_sequence(c, "first_sequence", first, e));
    if (!view || !len)
        return qkvi_error_set(e, QKV_ERR_ARGUMENT, "%s is NULL", view ? "len" : "view");
    QKV_TRY(check_range("n_sequences", n, 1, c->o.n_sequences - first, e));
    qkv_kv_view made = { .dtype = c->o.dtype,
                         .k = c->k,
                         .v = c->v,
                         .page_len = c->o.page_len,
                         .n_pages = c->o.n_pages,
                         .pages = c->pages + first * c->row_pages,
                         .pages_stride = c->row_pages,
                         .row_pages = c->row_pages,
                         .ring_len = c->o.ring_len,
                         .first = c->first + first };
    strides(c, c->o.head_dim, made.k_stride);
    strides(c, c->o.head_dim_v, made.v_stride);
    if (c->o.dtype == QKV_I8) {
        made.k_scale = c->k_scale;
        made.v_scale = c->v_scale;
        strides(c, 1, made.k_scale_stride);
        strides(c, 1, made.v_scale_stride);
    }
    qkvi_options_write(view, &made, sizeof made);
    *len = c->len + first;
    return QKV_OK;
}

qkv_status qkv_kv_cache_view_fill(qkv_ctx *ctx, const qkv_kv_cache *cache, int64_t first_sequence,
                                  int64_t n_sequences, qkv_kv_view *view, const int64_t **len) {
    QKV_TRY(qkvi_ctx_begin(ctx));
    return qkvi_ctx_end(ctx, view_of(cache, first_sequence, n_sequences, view, len, &ctx->error));
}
