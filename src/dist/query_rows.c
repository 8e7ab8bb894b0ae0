/* See query_rows.h. */
#include "dist/query_rows.h"

#include <string.h>

#include "attn/mask.h"

/* ---- Layout ---------------------------------------------------------------------------------- */

/* Elements of a row of the mask, bytes of 8 bits included. */
static int64_t mask_elements(const qkvi_problem *p) {
    if (!p->mask_type) return 0;
    if (p->mask_repeats) return 1;
    return p->mask_type == QKV_MASK_BITS ? qkvi_ceil_div(p->mask_len_k, 8) : p->mask_len_k;
}

static void choose_places(qkvi_query_rows *c, int mask_dims) {
    const qkvi_problem *const p = c->p;
    const int64_t heads = p->n_batch * p->n_kv_heads;
    c->d_o_at = qkvi_round_up(p->head_dim * qkvi_dtype_bytes(p->dtype), 4);
    c->lse_at = c->d_o_at;
    if (c->g) c->lse_at += qkvi_round_up(p->head_dim_v * qkvi_dtype_bytes(p->o_dtype), 4);
    const int64_t floats = c->without_lse ? 0 : c->g || c->weights ? 2 : 1;
    c->head_bytes = c->lse_at + floats * (int64_t)sizeof(float);
    c->mask_row = qkvi_round_up(mask_elements(p) * qkvi_mask_bytes(p), 4);
    c->mask_batches = mask_dims & 1 ? p->n_batch : 1;
    c->mask_heads = mask_dims & 2 ? p->n_kv_heads : 1;
    c->seg_at = heads * c->head_bytes;
    c->mask_at = c->seg_at + (p->seg_q ? p->n_batch * (int64_t)sizeof(int32_t) : 0);
}

void qkvi_query_rows_init(qkvi_query_rows *c, int mask_dims) {
    const qkvi_problem *const p = c->p;
    choose_places(c, mask_dims);
    c->row_bytes = c->mask_at + (p->mask_type ? c->mask_batches * c->mask_heads * c->mask_row : 0);
}

void qkvi_query_rows_lay_out(qkvi_query_rows *c, int64_t n_rows, qkvi_cutter *cutter) {
    const qkvi_problem *const p = c->p;
    c->segments = qkvi_cut(cutter, p->seg_q ? p->n_batch * n_rows : 0, sizeof *c->segments);
    c->slopes = qkvi_cut(cutter, p->alibi_slopes ? p->n_kv_heads : 0, sizeof *c->slopes);
}

/* ---- Sending --------------------------------------------------------------------------------- */

static void pack_head(const qkvi_query_rows *c, int64_t b, int64_t h, int64_t i, char *to) {
    const qkvi_problem *const p = c->p;
    const qkvi_grads *const g = c->g;
    const size_t q_bytes = (size_t)(p->head_dim * qkvi_dtype_bytes(p->dtype));
    const size_t o_bytes = g ? (size_t)(p->head_dim_v * qkvi_dtype_bytes(p->o_dtype)) : 0;
    float floats[2] = { 0 };
    if (!c->without_lse) floats[0] = p->lse[qkvi_q_at(p, p->lse_stride, b, h, i)];
    if (g) floats[1] = g->delta[qkvi_q_at(p, g->delta_stride, b, h, i)];
    if (c->weights) floats[1] = c->weights[qkvi_q_at(p, c->weights_stride, b, h, i)];
    if (q_bytes) memcpy(to, qkvi_elem(p->q, p->dtype, qkvi_q_at(p, p->q_stride, b, h, i)), q_bytes);
    if (o_bytes)
        memcpy(to + c->d_o_at, qkvi_elem(g->d_o, p->o_dtype, qkvi_q_at(p, g->d_o_stride, b, h, i)),
               o_bytes);
    memcpy(to + c->lse_at, floats, (size_t)(c->head_bytes - c->lse_at));
}

static void pack_mask(const qkvi_query_rows *c, int64_t b, int64_t h, int64_t i, char *to) {
    const qkvi_problem *const p = c->p;
    const int64_t n = mask_elements(p), bytes = qkvi_mask_bytes(p), key = p->mask_stride[3];
    const char *const from = qkvi_mask_row(p, b, h, i);
    if (key == 1 && n > 0)
        memcpy(to, from, (size_t)(n * bytes));
    else
        for (int64_t j = 0; j < n; j++)
            memcpy(to + j * bytes, from + j * key * bytes, (size_t)bytes);
}

static bool counts(const qkvi_query_rows *c, int64_t b, int64_t i) {
    return i < qkvi_rows_that_count(c->p, b);
}

/* Rows of the mask that are several batches' are there if one of these has the row. */
static void pack_masks(const qkvi_query_rows *c, int64_t turn, int64_t i, char *to) {
    for (int64_t n = 0; n < c->mask_batches; n++) {
        bool any = counts(c, n, i);
        for (int64_t b = 1; c->mask_batches == 1 && b < c->p->n_batch; b++) any |= counts(c, b, i);
        for (int64_t g = 0; any && g < c->mask_heads; g++)
            pack_mask(c, n, g * c->p->heads_per_kv + turn, i,
                      to + c->mask_at + (n * c->mask_heads + g) * c->mask_row);
    }
}

/* One token. Rows beyond q_len are not read: what is sent of them is not used. */
static void pack_token(const qkvi_query_rows *c, int64_t turn, int64_t i, char *to) {
    const qkvi_problem *const p = c->p;
    for (int64_t b = 0; b < p->n_batch; b++) {
        for (int64_t g = 0; counts(c, b, i) && g < p->n_kv_heads; g++)
            pack_head(c, b, g * p->heads_per_kv + turn, i,
                      to + (b * p->n_kv_heads + g) * c->head_bytes);
        if (p->seg_q)
            memcpy(to + c->seg_at + b * (int64_t)sizeof(int32_t),
                   &p->seg_q[b * p->seg_q_stride + i], sizeof(int32_t));
    }
    if (p->mask_type) pack_masks(c, turn, i, to);
}

void qkvi_query_rows_pack(const qkvi_query_rows *c, int64_t turn, int64_t begin, int64_t end,
                          char *to) {
    if (begin < end) memset(to, 0, (size_t)((end - begin) * c->row_bytes));
    for (int64_t i = begin; i < end; i++)
        pack_token(c, turn, i - c->p->first_q, to + (i - begin) * c->row_bytes);
}

/* ---- Receiving ------------------------------------------------------------------------------- */

/* Strides in elements of this many bytes, of batch, head and token. */
static void set_strides(const qkvi_query_rows *c, int64_t bytes, int64_t stride[3]) {
    stride[0] = c->p->n_kv_heads * c->head_bytes / bytes;
    stride[1] = c->head_bytes / bytes;
    stride[2] = c->row_bytes / bytes;
}

void qkvi_query_rows_place(const qkvi_query_rows *c, qkvi_problem *p) {
    set_strides(c, qkvi_dtype_bytes(p->dtype), p->q_stride);
}

static void take_mask(const qkvi_query_rows *c, const char *rows, qkvi_problem *p) {
    const int64_t bytes = qkvi_mask_bytes(p);
    p->mask = rows + c->mask_at;
    p->mask_stride[0] = c->mask_batches > 1 ? c->mask_heads * c->mask_row / bytes : 0;
    p->mask_stride[1] = c->mask_heads > 1 ? c->mask_row / bytes : 0;
    p->mask_stride[2] = c->row_bytes / bytes;
    p->mask_stride[3] = p->mask_repeats ? 0 : 1;
}

static void take_segments(const qkvi_query_rows *c, const char *rows, qkvi_problem *p) {
    for (int64_t b = 0; b < p->n_batch; b++)
        for (int64_t i = 0; i < p->len_q; i++)
            memcpy(&c->segments[b * p->len_q + i],
                   rows + i * c->row_bytes + c->seg_at + b * (int64_t)sizeof(int32_t),
                   sizeof(int32_t));
    p->seg_q = c->segments;
    p->seg_q_stride = p->len_q;
}

/* One head of each group, as if there were no others. */
static void take_heads(const qkvi_query_rows *c, int64_t turn, qkvi_problem *p) {
    p->all_heads = p->n_heads;
    p->head_step = p->heads_per_kv;
    p->head_first = turn;
    for (int64_t g = 0; p->alibi_slopes && g < p->n_kv_heads; g++)
        c->slopes[g] = p->alibi_slopes[g * p->heads_per_kv + turn];
    if (p->alibi_slopes) p->alibi_slopes = c->slopes;
    if (p->distance_bias) {
        p->distance_bias += turn * p->distance_bias_stride;
        p->distance_bias_stride *= p->heads_per_kv;
    }
    if (p->block_len) {
        p->block_offsets += turn * p->block_offsets_stride[1];
        p->block_offsets_stride[1] *= p->heads_per_kv;
    }
    p->n_heads = p->n_kv_heads;
    p->heads_per_kv = 1;
}

void qkvi_query_rows_take(const qkvi_query_rows *c, int64_t turn, int64_t begin, int64_t end,
                          const char *from, qkvi_problem *p, qkvi_grads *g) {
    *p = *c->p;
    p->first_q = begin;
    p->len_q = end - begin;
    *g = (qkvi_grads){ .d_o = from + c->d_o_at,
                       .delta = (const float *)(const void *)(from + c->lse_at) + 1 };
    p->q = from;
    p->lse = (float *)(uintptr_t)(from + c->lse_at);
    qkvi_query_rows_place(c, p);
    set_strides(c, qkvi_dtype_bytes(p->o_dtype), g->d_o_stride);
    set_strides(c, sizeof(float), p->lse_stride);
    set_strides(c, sizeof(float), g->delta_stride);
    if (p->mask_type) take_mask(c, from, p);
    if (p->seg_q) take_segments(c, from, p);
    take_heads(c, turn, p);
}
