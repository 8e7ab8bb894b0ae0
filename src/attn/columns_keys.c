/* Sums of each key: see columns.h. */
#include <string.h>

#include "attn/columns.h"
#include "core/options.h"

void qkvi_columns_begin_keys(qkvi_columns_scratch *own) {
    memset(&own->keys, 0, sizeof own->keys);
    for (int t = 0; t < QKVI_KEY_BLOCK; t++) own->keys.largest_query[t] = -1;
}

void qkvi_columns_end_keys(const qkvi_columns_problem *x, const qkvi_kernels *kernels,
                           qkvi_columns_scratch *own, int64_t b, int64_t h, int64_t key0,
                           qkvi_range keys) {
    const qkv_attention_columns *const want = &x->want;
    int64_t n_cells = 0, n_tiny = 0;
    if (want->entropy) kernels->columns->end(own);
    for (int64_t j = keys.begin; j < keys.end; j++) {
        const int64_t at = qkvi_k_at(&x->p, want->stride, b, h, j), t = j - key0;
        if (want->received) want->received[at] = (float)own->keys.received[t];
        if (want->n_queries) want->n_queries[at] = own->keys.n_queries[t];
        if (want->largest) want->largest[at] = own->keys.largest[t];
        if (want->largest_query) want->largest_query[at] = own->keys.largest_query[t];
        if (want->entropy) want->entropy[at] = own->entropy[t];
        n_cells += own->keys.n_queries[t];
        n_tiny += own->keys.n_tiny[t];
    }
    const int64_t head = b * x->p.n_heads + h;
    if (want->n_cells) __atomic_fetch_add(&want->n_cells[head], n_cells, __ATOMIC_RELAXED);
    if (want->n_tiny) __atomic_fetch_add(&want->n_tiny[head], n_tiny, __ATOMIC_RELAXED);
}

void qkvi_columns_begin_counts(const qkvi_columns_problem *x) {
    const size_t bytes = (size_t)(x->p.n_batch * x->p.n_heads) * sizeof(int64_t);
    if (x->want.n_cells && bytes) memset(x->want.n_cells, 0, bytes);
    if (x->want.n_tiny && bytes) memset(x->want.n_tiny, 0, bytes);
}

/* ---- Public helper --------------------------------------------------------------------------- */

/* Rows of a head in memory. */
static int64_t packed_rows(const qkv_attention_desc *d, const int64_t *cu, int64_t len) {
    return d->flags & QKV_SET_CU_SEQLENS && cu && d->n_batch >= 0 ? cu[d->n_batch] : len;
}

void qkv_attention_columns_fill(qkv_attention_columns *columns, const qkv_attention_desc *desc) {
    qkv_attention_desc d = { 0 };
    if (!columns || !desc || qkvi_options_read(&d, sizeof d, desc, "desc", NULL) != QKV_OK) return;
    const uint64_t n_heads = (uint64_t)d.n_heads, len_q = (uint64_t)d.len_q;
    const uint64_t len_k = (uint64_t)d.len_k;
    const uint64_t offset = d.flags & QKV_SET_Q_OFFSET ? (uint64_t)d.q_offset : 0;
    qkv_attention_columns made = {
        .stride = { 0, packed_rows(&d, d.cu_seqlens_k, d.len_k), 1 },
        .row_weights_stride = { 0, packed_rows(&d, d.cu_seqlens_q, d.len_q), 1 },
        .first_diagonal = (int64_t)(offset - len_k + 1),
        .n_diagonals = d.len_q && d.len_k ? (int64_t)(len_q + len_k - 1) : 0
    };
    if (!(d.flags & QKV_SET_CU_SEQLENS)) {
        made.stride[0] = (int64_t)(n_heads * len_k);
        made.row_weights_stride[0] = (int64_t)(n_heads * len_q);
    }
    qkvi_options_write(columns, &made, sizeof made);
}
