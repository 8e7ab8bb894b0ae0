/*
 * The inside of a cache of keys and values: one block of memory, cut when it is made, and pages
 * that sequences share until one of them writes.
 *
 *     k [page][n_kv_heads][page_len][head_dim]        pages [sequence][row_pages], -1: none
 *     v [page][n_kv_heads][page_len][head_dim_v]      scales alike, without channels
 *
 * Invariants: refs[page] is the number of entries of `pages` that name it; a page with refs 0 is on
 * the stack free_pages, once; a sequence has a page for every token of [first, len) and for no
 * other; a page is written only by the one sequence that has it alone.
 */
#ifndef QKVI_ATTN_KV_CACHE_H
#define QKVI_ATTN_KV_CACHE_H

#include "attn/ctx.h"
#include "attn/kv_view.h"

struct qkv_kv_cache {
    qkv_allocator allocator;
    size_t block_bytes;
    qkv_kv_cache_options o; /* page_len and max_len filled in */
    int64_t elem_bytes, row_pages;
    char *k, *v;
    float *k_scale, *v_scale; /* QKV_I8 */
    int32_t *pages;
    int32_t *refs, *free_pages;
    int64_t n_free;
    int64_t *len, *first; /* [sequence] */
    float *row;           /* of the longer of K and V: a token on its way */
};

/* The entry of position `at` in a sequence's row of pages, and its token there. */
static inline int64_t qkvi_kv_entry(const qkv_kv_cache *c, int64_t at) {
    return (c->o.ring_len ? at % c->o.ring_len : at) / c->o.page_len;
}
static inline int64_t qkvi_kv_token(const qkv_kv_cache *c, int64_t at) {
    return at % c->o.page_len; /* ring_len is a multiple of page_len */
}

/* QKV_ERR_ARGUMENT for NULL and for a sequence that there is not. */
QKV_NODISCARD qkv_status qkvi_kv_check_sequence(const qkv_kv_cache *cache, const char *name,
                                                int64_t sequence, qkv_error *error);

/* A page off the stack, which is not empty; a reference less. */
int32_t qkvi_kv_take(qkv_kv_cache *cache);
void qkvi_kv_drop(qkv_kv_cache *cache, int32_t *entry);

#endif
