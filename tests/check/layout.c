/* See layout.h. */
#include "check/layout.h"

bool layout_of_keys(char which) { return which == 'k' || which == 'v'; }

static const int64_t *starts_of(const qkv_attention_desc *d, char which) {
    if (!(d->flags & QKV_SET_CU_SEQLENS)) return NULL;
    return layout_of_keys(which) ? d->cu_seqlens_k : d->cu_seqlens_q;
}

void layout_shape(const qkv_attention_desc *d, char which, int64_t size[4]) {
    const bool keys = layout_of_keys(which);
    size[0] = d->n_batch;
    size[1] = keys ? d->n_kv_heads : d->n_heads;
    size[2] = keys ? d->len_k : d->len_q;
    size[3] = which == 'l' ? 1 : which == 'q' || which == 'k' ? d->head_dim : d->head_dim_v;
}

void layout_storage(const qkv_attention_desc *d, char which, int64_t size[4]) {
    const int64_t *const starts = starts_of(d, which);
    layout_shape(d, which, size);
    if (!starts) return;
    size[0] = 1;
    size[2] = starts[d->n_batch];
}

void layout_mask(const qkv_attention_desc *d, int64_t size[4]) {
    size[0] = d->n_batch;
    size[1] = d->n_heads;
    size[2] = d->len_q;
    size[3] = d->mask_len_k ? d->mask_len_k : d->len_k;
}

int64_t layout_rows(const qkv_attention_desc *d, char which, int64_t b) {
    const int64_t *const starts = starts_of(d, which);
    if (starts) return starts[b + 1] - starts[b];
    return layout_of_keys(which) ? d->len_k : d->len_q;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t layout_queries(const qkv_attention_desc *d, int64_t b) {
    const int64_t rows = layout_rows(d, 'q', b);
    return d->flags & QKV_SET_Q_LEN ? least(rows, d->q_len[b]) : rows;
}

int64_t layout_keys(const qkv_attention_desc *d, int64_t b) {
    const int64_t rows = layout_rows(d, 'k', b);
    return d->flags & QKV_SET_KV_LEN ? least(rows, d->kv_len[b]) : rows;
}

int64_t layout_place(const qkv_attention_desc *d, char which, const int64_t stride[3], int64_t b,
                     int64_t h, int64_t i) {
    const int64_t *const starts = starts_of(d, which);
    const int64_t row = starts ? starts[b] + i : i;
    return (starts ? 0 : b * stride[0]) + h * stride[1] + row * stride[2];
}

int64_t layout_elems(const int64_t size[4], const int64_t stride[3]) {
    int64_t elems = size[3];
    for (int n = 0; n < 3; n++) elems = size[n] && elems ? elems + (size[n] - 1) * stride[n] : 0;
    return elems;
}
