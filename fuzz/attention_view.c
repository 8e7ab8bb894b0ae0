/*
 * Keys and values of a case as decode finds them: contiguous, in pages, in a ring, in a ring of
 * pages, of every type that can be stored; mostly right, now and then with any number in one field.
 * A function of the case's seed.
 */
#include "fuzz/attention_case.h"

enum { MOST_TOKENS = 4096 };

static void edit(uint64_t *state, qkv_kv_view *w) {
    const uint64_t random = attention_next_random(state);
    const int64_t value = (int64_t)attention_next_random(state) >> random % 64;
    int64_t *const numbers[] = { &w->page_len, &w->n_pages, &w->pages_stride, &w->row_pages,
                                 &w->ring_len };
    int64_t *const strides[] = { w->k_stride, w->v_stride, w->k_scale_stride, w->v_scale_stride };
    const uint64_t place = random >> 8 & 15, which = random >> 16;
    if (place < 9)
        *numbers[which % 5] = value;
    else if (place < 15)
        strides[which % 4][which / 4 % 3] = value;
    else
        w->dtype = (qkv_dtype)(int)value;
}

void attention_view_read(attention_case *c) {
    uint64_t state = c->seed ^ UINT64_C(0xdec0de);
    const uint64_t random = attention_next_random(&state);
    qkv_attention_desc dense = c->desc; /* what lies together has the strides of a batch */
    const int64_t page_len = random >> 8 & 1 ? 16 * (1 + (int64_t)(random >> 16) % 4) : 0;
    const int64_t step = page_len ? page_len : 16;
    const int64_t ring_len = random >> 9 & 1 ? step * (1 + (int64_t)(random >> 24) % 6) : 0;
    const int64_t len = ring_len ? ring_len : dense.len_k;
    qkv_kv_view *const w = &c->view;
    dense.len_k = page_len ? page_len : len;
    dense.struct_size = sizeof dense; /* a lie about it is for the call itself */
    qkv_kv_view_contiguous(w, &dense, (qkv_dtype)(random & 3));
    w->page_len = page_len;
    w->ring_len = ring_len;
    if (page_len) {
        w->n_pages = 1 + (int64_t)(random >> 32 & 7);
        w->row_pages = random >> 40 & 3 ? 0 : 1 + (int64_t)(random >> 44 & 7);
        w->pages_stride = random >> 48 & 1 && len <= MOST_TOKENS ? len / page_len + 1 : 0;
    }
    c->has_first = (random >> 50 & 7) == 0;
    c->plain_view = !page_len && !ring_len && !c->has_first && random >> 53 & 3;
    if (!(random >> 53 & 3)) edit(&state, w);
}

static int64_t size_of(int64_t value) { return value < 0 ? 0 : value; }

static int64_t pages_of_row(const qkv_kv_view *w, int64_t len_k) {
    const int64_t len = w->ring_len > 0 ? w->ring_len : len_k;
    if (w->page_len <= 0) return 0;
    const int64_t all = len / w->page_len + (len % w->page_len > 0);
    return w->row_pages > 0 && w->row_pages < all ? w->row_pages : all;
}

bool attention_view_plan(const attention_case *c, attention_array *k, attention_array *v,
                         attention_array *k_scale, attention_array *v_scale, attention_array *pages,
                         attention_array *first) {
    const qkv_attention_desc *const d = &c->desc;
    const qkv_kv_view *const w = &c->view;
    const size_t bytes = w->dtype == QKV_F32 ? 4 : w->dtype == QKV_I8 ? 1 : 2;
    const int64_t tokens = w->page_len ? w->page_len : w->ring_len ? w->ring_len : d->len_k;
    const int64_t blocks = size_of(w->page_len ? w->n_pages : d->n_batch), rows = size_of(tokens);
    const int64_t rows_k[4] = { blocks, d->n_kv_heads, rows, d->head_dim };
    const int64_t rows_v[4] = { blocks, d->n_kv_heads, rows, d->head_dim_v };
    const int64_t scales[4] = { blocks, d->n_kv_heads, rows, 1 };
    const int64_t table[4] = { d->n_batch, 1, 1, pages_of_row(w, d->len_k) };
    const int64_t each[4] = { 1, 1, 1, d->n_batch };
    const int64_t of_pages[3] = { w->pages_stride }, none[3] = { 0 };
    if (blocks > MOST_TOKENS || rows > MOST_TOKENS || table[3] > MOST_TOKENS) return false;
    const bool fits = attention_array_plan(rows_k, w->k_stride, 1, bytes, k) &&
                      attention_array_plan(rows_v, w->v_stride, 1, bytes, v) &&
                      attention_array_plan(scales, w->k_scale_stride, 1, 4, k_scale) &&
                      attention_array_plan(scales, w->v_scale_stride, 1, 4, v_scale) &&
                      attention_array_plan(table, of_pages, 1, sizeof *w->pages, pages) &&
                      attention_array_plan(each, none, 1, sizeof *w->first, first);
    k->type = v->type = w->dtype;
    return fits;
}

void attention_view_fill(const attention_case *c, attention_array *pages, attention_array *first) {
    uint64_t state = c->seed ^ UINT64_C(0x9a6e5);
    const int64_t n_pages = c->view.n_pages;
    for (size_t e = 0; e < pages->n_elems; e++)
        ((int32_t *)pages->data)[e] = (int32_t)attention_value(&state, 0, n_pages - 1);
    for (size_t b = 0; b < first->n_elems; b++)
        ((int64_t *)first->data)[b] = attention_value(&state, -1, 3);
}
