/*
 * Rules that are arrays of their own: packed sequences, block masks. A case has each now and then,
 * mostly right: starts that fall and lists that are no lists are for the checks to find. What is
 * promised is there: offsets of blocks never lead past the end of the index.
 */
#include "fuzz/attention_case.h"

#include <string.h>

enum { MOST_LEN = 4096 };

bool attention_packed(const attention_case *c) { return c->desc.flags & QKV_SET_CU_SEQLENS; }

int64_t attention_rows(const attention_case *c, bool keys) {
    if (!attention_packed(c)) return keys ? c->desc.len_k : c->desc.len_q;
    return (keys ? c->cu_k : c->cu_q)[c->desc.n_batch];
}

static int64_t at_most(int64_t x, int64_t most) { return x > most ? most : x; }

/* [token][head][channel], without a stride of the batch. */
static void pack(int64_t *stride, int64_t n_heads, int64_t dim) {
    stride[0] = 0;
    stride[1] = dim;
    stride[2] = (int64_t)((uint64_t)n_heads * (uint64_t)dim); /* hostile sizes may wrap */
}

static void pack_all(attention_case *c) {
    qkv_attention_desc *const d = &c->desc;
    pack(d->q_stride, d->n_heads, d->head_dim);
    pack(d->k_stride, d->n_kv_heads, d->head_dim);
    pack(d->v_stride, d->n_kv_heads, d->head_dim_v);
    pack(d->o_stride, d->n_heads, d->head_dim_v);
    pack(d->lse_stride, d->n_heads, 1);
    pack(c->grads.d_o_stride, d->n_heads, d->head_dim_v);
    pack(c->grads.d_q_stride, d->n_heads, d->head_dim);
    pack(c->grads.d_k_stride, d->n_kv_heads, d->head_dim);
    pack(c->grads.d_v_stride, d->n_kv_heads, d->head_dim_v);
}

static void make_starts(uint64_t *state, const attention_case *c, int64_t most, int64_t *starts) {
    starts[0] = attention_next_random(state) % 64 == 0;
    for (int64_t b = 0; b < c->desc.n_batch; b++)
        starts[b + 1] = (int64_t)((uint64_t)starts[b] +
                                  (uint64_t)attention_value(state, 0, at_most(most, MOST_LEN)));
}

static void make_packed(uint64_t *state, attention_case *c) {
    qkv_attention_desc *const d = &c->desc;
    if (!attention_packed(c) || d->n_batch < 0 || d->n_batch > CASE_MOST_BATCHES) return;
    make_starts(state, c, d->len_q, c->cu_q);
    make_starts(state, c, d->len_k, c->cu_k);
    d->cu_seqlens_q = c->cu_q;
    d->cu_seqlens_k = c->cu_k;
    if (attention_next_random(state) % 16) { /* lengths that shorten, mostly */
        for (int64_t b = 0; b < d->n_batch; b++) {
            const int64_t n_q = c->cu_q[b + 1] - c->cu_q[b], n_k = c->cu_k[b + 1] - c->cu_k[b];
            c->q_len[b] = at_most(c->q_len[b], n_q);
            c->kv_len[b] = at_most(c->kv_len[b], n_k);
        }
    }
}

/* ---- Block masks ----------------------------------------------------------------------------- */

/* One list; returns where the next one begins. */
static int64_t make_list(uint64_t *state, attention_case *c, int64_t *offsets, int64_t rows,
                         int64_t keys, int64_t at) {
    const uint64_t share = attention_next_random(state) % 5; /* of four blocks */
    for (int64_t i = 0; i <= rows; i++) {
        offsets[i] = at;
        if (attention_next_random(state) % 128 == 0)
            offsets[i] = attention_value(state, -3, at); /* falls, or is negative */
        if (offsets[i] > CASE_MOST_BLOCKS) offsets[i] = -1;
        for (int64_t j = 0; i < rows && j < keys && at < CASE_MOST_BLOCKS; j++)
            if (attention_next_random(state) % 4 < share)
                c->block_index[at++] = attention_next_random(state) % 256
                                           ? (int32_t)j
                                           : (int32_t)attention_next_random(state);
    }
    return at;
}

static void make_blocks(uint64_t *state, attention_case *c) {
    static const int64_t lens[] = { 32, 64, 96, 128, 32, 64, 0, 33 };
    qkv_attention_desc *const d = &c->desc;
    if (!(d->flags & QKV_SET_BLOCK_MASK)) return;
    d->block_len = lens[attention_next_random(state) % 8];
    const int64_t len = d->block_len ? d->block_len : 1;
    if (d->len_q < 0 || d->len_k < 0 || d->len_q > MOST_LEN || d->len_k > MOST_LEN) return;
    if (d->n_batch < 1 || d->n_heads < 1 || d->n_batch > 64 || d->n_heads > 64) return;
    const int64_t rows = (d->len_q + len - 1) / len, keys = (d->len_k + len - 1) / len;
    const int64_t n_b = attention_next_random(state) % 2 ? d->n_batch : 1;
    const int64_t n_h = attention_next_random(state) % 2 ? d->n_heads : 1;
    if (n_b * n_h * (rows + 1) > CASE_MOST_OFFSETS) return;
    d->block_offsets_stride[0] = n_b == 1 ? 0 : n_h * (rows + 1);
    d->block_offsets_stride[1] = n_h == 1 ? 0 : rows + 1;
    int64_t at = 0;
    for (int64_t n = 0; n < n_b * n_h; n++)
        at = make_list(state, c, c->block_offsets + n * (rows + 1), rows, keys, at);
    if (attention_next_random(state) % 64 == 0) d->block_offsets_stride[0] = -1;
    d->block_offsets = c->block_offsets;
    d->block_index = c->block_index;
}

/* ---- All of them ----------------------------------------------------------------------------- */

void attention_rules_read(attention_case *c) {
    uint64_t state = c->seed ^ UINT64_C(0x51a9);
    const uint64_t random = attention_next_random(&state);
    if ((random >> 8) % 6 == 0) {
        c->desc.flags |= QKV_SET_CU_SEQLENS;
        pack_all(c);
    }
    if ((random >> 16) % 6 == 0) c->desc.flags |= QKV_SET_BLOCK_MASK;
    make_packed(&state, c);
    make_blocks(&state, c);
}
