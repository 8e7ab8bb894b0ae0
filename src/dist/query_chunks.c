/* See query_chunks.h. */
#include "dist/query_chunks.h"

#include <string.h>

#include "attn/mask.h"
#include "kernels/attend.h"

enum { MOST_QUERIES = 4096 };

/* ---- Layout ---------------------------------------------------------------------------------- */

/* Elements of a row of the mask, bytes of 8 bits included. */
static int64_t mask_elements(const qkvi_problem *p) {
    if (!p->mask_type) return 0;
    if (p->mask_repeats) return 1;
    return p->mask_type == QKV_MASK_BITS ? qkvi_ceil_div(p->mask_len_k, 8) : p->mask_len_k;
}

static void choose_places(qkvi_query_chunks *c, int mask_dims) {
    const qkvi_problem *const p = c->p;
    const int64_t heads = p->n_batch * p->n_kv_heads;
    c->d_o_at = qkvi_round_up(p->head_dim * qkvi_dtype_bytes(p->dtype), 4);
    c->lse_at = c->d_o_at;
    if (c->g) c->lse_at += qkvi_round_up(p->head_dim_v * qkvi_dtype_bytes(p->o_dtype), 4);
    c->head_bytes = c->lse_at + (c->g || c->weights ? 2 : 1) * (int64_t)sizeof(float);
    c->mask_row = qkvi_round_up(mask_elements(p) * qkvi_mask_bytes(p), 4);
    c->mask_batches = mask_dims & 1 ? p->n_batch : 1;
    c->mask_heads = mask_dims & 2 ? p->n_kv_heads : 1;
    c->seg_at = heads * c->head_bytes;
    c->mask_at = c->seg_at + (p->seg_q ? p->n_batch * (int64_t)sizeof(int32_t) : 0);
}

static void pack(const void *user, int64_t turn, int64_t begin, int64_t end, char *to);

void qkvi_query_chunks_init(qkvi_query_chunks *c, qkvi_group *group, const qkvi_problem *p,
                            int mask_dims) {
    const int64_t unit = c->g ? QKVI_KEY_BLOCK : QKVI_QUERY_BLOCK;
    c->p = p;
    choose_places(c, mask_dims);
    const int64_t row =
        c->mask_at + (p->mask_type ? c->mask_batches * c->mask_heads * c->mask_row : 0);
    c->stream = (qkvi_stream){ .group = group,
                               .first = group->first_q,
                               .n_rows = qkvi_stream_rows(group, row, unit, MOST_QUERIES),
                               .row_bytes = row,
                               .n_turns = p->heads_per_kv,
                               .pack = pack,
                               .user = c };
    qkvi_stream_init(&c->stream);
}

void qkvi_query_chunks_lay_out(qkvi_query_chunks *c, qkvi_cutter *cutter) {
    const qkvi_problem *const p = c->p;
    qkvi_stream_lay_out(&c->stream, cutter);
    c->segments =
        qkvi_cut(cutter, p->seg_q ? p->n_batch * c->stream.n_rows : 0, sizeof *c->segments);
    c->slopes = qkvi_cut(cutter, p->alibi_slopes ? p->n_kv_heads : 0, sizeof *c->slopes);
}

/* ---- Sending --------------------------------------------------------------------------------- */

static void pack_head(const qkvi_query_chunks *c, int64_t b, int64_t h, int64_t i, char *to) {
    const qkvi_problem *const p = c->p;
    const qkvi_grads *const g = c->g;
    const size_t q_bytes = (size_t)(p->head_dim * qkvi_dtype_bytes(p->dtype));
    const size_t o_bytes = g ? (size_t)(p->head_dim_v * qkvi_dtype_bytes(p->o_dtype)) : 0;
    float floats[2] = { p->lse[qkvi_q_at(p, p->lse_stride, b, h, i)] };
    if (g) floats[1] = g->delta[qkvi_q_at(p, g->delta_stride, b, h, i)];
    if (c->weights) floats[1] = c->weights[qkvi_q_at(p, c->weights_stride, b, h, i)];
    if (q_bytes) memcpy(to, qkvi_elem(p->q, p->dtype, qkvi_q_at(p, p->q_stride, b, h, i)), q_bytes);
    if (o_bytes)
        memcpy(to + c->d_o_at, qkvi_elem(g->d_o, p->o_dtype, qkvi_q_at(p, g->d_o_stride, b, h, i)),
               o_bytes);
    memcpy(to + c->lse_at, floats, (size_t)(c->head_bytes - c->lse_at));
}

static void pack_mask(const qkvi_query_chunks *c, int64_t b, int64_t h, int64_t i, char *to) {
    const qkvi_problem *const p = c->p;
    const int64_t n = mask_elements(p), bytes = qkvi_mask_bytes(p), key = p->mask_stride[3];
    const char *const from = qkvi_mask_row(p, b, h, i);
    if (key == 1 && n > 0)
        memcpy(to, from, (size_t)(n * bytes));
    else
        for (int64_t j = 0; j < n; j++)
            memcpy(to + j * bytes, from + j * key * bytes, (size_t)bytes);
}

static bool counts(const qkvi_query_chunks *c, int64_t b, int64_t i) {
    return i < qkvi_rows_that_count(c->p, b);
}

/* Rows of the mask that are several batches' are there if one of these has the row. */
static void pack_masks(const qkvi_query_chunks *c, int64_t turn, int64_t i, char *to) {
    for (int64_t n = 0; n < c->mask_batches; n++) {
        bool any = counts(c, n, i);
        for (int64_t b = 1; c->mask_batches == 1 && b < c->p->n_batch; b++) any |= counts(c, b, i);
        for (int64_t g = 0; any && g < c->mask_heads; g++)
            pack_mask(c, n, g * c->p->heads_per_kv + turn, i,
                      to + c->mask_at + (n * c->mask_heads + g) * c->mask_row);
    }
}

/* One token. Rows beyond q_len are not read: nobody uses what is sent of them. */
static void pack_token(const qkvi_query_chunks *c, int64_t turn, int64_t i, char *to) {
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

static void pack(const void *user, int64_t turn, int64_t begin, int64_t end, char *to) {
    const qkvi_query_chunks *const c = user;
    memset(to, 0, (size_t)((end - begin) * c->stream.row_bytes));
    for (int64_t i = begin; i < end; i++)
        pack_token(c, turn, i - c->p->first_q, to + (i - begin) * c->stream.row_bytes);
}

/* ---- Receiving ------------------------------------------------------------------------------- */

/* Strides in elements of this many bytes, of batch, head and token. */
static void set_strides(const qkvi_query_chunks *c, int64_t bytes, int64_t stride[3]) {
    stride[0] = c->p->n_kv_heads * c->head_bytes / bytes;
    stride[1] = c->head_bytes / bytes;
    stride[2] = c->stream.row_bytes / bytes;
}

static void take_mask(const qkvi_query_chunks *c, const char *rows, qkvi_problem *p) {
    const int64_t bytes = qkvi_mask_bytes(p);
    p->mask = rows + c->mask_at;
    p->mask_stride[0] = c->mask_batches > 1 ? c->mask_heads * c->mask_row / bytes : 0;
    p->mask_stride[1] = c->mask_heads > 1 ? c->mask_row / bytes : 0;
    p->mask_stride[2] = c->stream.row_bytes / bytes;
    p->mask_stride[3] = p->mask_repeats ? 0 : 1;
}

static void take_segments(const qkvi_query_chunks *c, const char *rows, qkvi_problem *p) {
    for (int64_t b = 0; b < p->n_batch; b++)
        for (int64_t i = 0; i < p->len_q; i++)
            memcpy(&c->segments[b * p->len_q + i],
                   rows + i * c->stream.row_bytes + c->seg_at + b * (int64_t)sizeof(int32_t),
                   sizeof(int32_t));
    p->seg_q = c->segments;
    p->seg_q_stride = p->len_q;
}

/* One head of each group, as if there were no others. */
static void take_heads(const qkvi_query_chunks *c, int64_t turn, qkvi_problem *p) {
    p->head_step = p->heads_per_kv;
    p->head_first = turn;
    for (int64_t g = 0; p->alibi_slopes && g < p->n_kv_heads; g++)
        c->slopes[g] = p->alibi_slopes[g * p->heads_per_kv + turn];
    if (p->alibi_slopes) p->alibi_slopes = c->slopes;
    if (p->block_len) {
        p->block_offsets += turn * p->block_offsets_stride[1];
        p->block_offsets_stride[1] *= p->heads_per_kv;
    }
    p->n_heads = p->n_kv_heads;
    p->heads_per_kv = 1;
}

qkv_status qkvi_query_chunks_next(qkvi_query_chunks *c, int64_t n, qkvi_problem *p, qkvi_grads *g) {
    const char *rows;
    QKV_TRY(qkvi_stream_next(&c->stream, n, &rows));
    *p = *c->p;
    p->first_q = qkvi_stream_begin(&c->stream, n);
    p->len_q = qkvi_stream_end(&c->stream, n) - p->first_q;
    *g = (qkvi_grads){ .d_o = rows + c->d_o_at,
                       .delta = (const float *)(const void *)(rows + c->lse_at) + 1 };
    p->q = rows;
    p->lse = (float *)(uintptr_t)(rows + c->lse_at);
    set_strides(c, qkvi_dtype_bytes(p->dtype), p->q_stride);
    set_strides(c, qkvi_dtype_bytes(p->o_dtype), g->d_o_stride);
    set_strides(c, sizeof(float), p->lse_stride);
    set_strides(c, sizeof(float), g->delta_stride);
    if (p->mask_type) take_mask(c, rows, p);
    if (p->seg_q) take_segments(c, rows, p);
    take_heads(c, n / c->stream.count, p);
    return QKV_OK;
}
