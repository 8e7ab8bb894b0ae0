/* See decode_unit.h. */
#include "attn/decode_unit.h"

#include "attn/blocks.h"
#include "attn/seen.h"
#include "attn/stats.h"

qkvi_decode_unit qkvi_decode_unit_at(const qkvi_decode_call *x, int64_t index) {
    const qkvi_problem *p = x->p;
    const int64_t head = index / x->plan.n_row_blocks;
    qkvi_decode_unit u = { .b = head / p->n_kv_heads,
                           .g = head % p->n_kv_heads,
                           .first_row = index % x->plan.n_row_blocks * x->plan.n_rows };
    u.rules = qkvi_rules_of(p, u.b);
    const int64_t left = u.rules.n_queries * p->heads_per_kv - u.first_row;
    if (left <= 0) return u;
    u.n_rows = (int)qkvi_min_i64(left, x->plan.n_rows);
    const int64_t end_row = u.first_row + u.n_rows;
    u.keys = qkvi_keys_of_block(&u.rules, u.first_row / p->heads_per_kv,
                                qkvi_ceil_div(end_row, p->heads_per_kv));
    if (u.keys.begin == u.keys.end) return u;
    u.from = u.keys.begin / QKVI_DECODE_SPLIT;
    u.to = qkvi_ceil_div(u.keys.end, QKVI_DECODE_SPLIT);
    return u;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Which query and which head row r of the unit is. */
static int64_t query_of(const qkvi_decode_call *x, const qkvi_decode_unit *u, int r) {
    return (u->first_row + r) / x->p->heads_per_kv;
}
static int64_t head_of(const qkvi_decode_call *x, const qkvi_decode_unit *u, int r) {
    return u->g * x->p->heads_per_kv + (u->first_row + r) % x->p->heads_per_kv;
}

/* Where the unit's row r is in an array of queries, in elements. */
static int64_t row_at(const qkvi_decode_call *x, const qkvi_decode_unit *u, int r,
                      const int64_t stride[3]) {
    const int64_t i = query_of(x, u, r), h = head_of(x, u, r);
    return u->b * stride[0] + h * stride[1] + i * stride[2];
}

/* o of 16 bits is finished in the slot's block; qkvi_decode_finish rounds it. */
static void fill_row(const qkvi_decode_call *x, const qkvi_decode_unit *u, int r,
                     const qkvi_decode_slot *slot, qkvi_decode_row *row) {
    const qkvi_problem *p = x->p;
    const int64_t i = query_of(x, u, r), h = head_of(x, u, r);
    const qkvi_range keys = qkvi_keys_of(&u->rules, i);
    *row = (qkvi_decode_row){
        .begin = keys.begin,
        .end = keys.end,
        .mask = qkvi_mask_from(p, u->b, h, i, 0),
        .has_sink = p->sinks,
        .sink = p->sinks ? p->sinks[h] : 0,
        .o = p->o_dtype == QKV_F32 ? (float *)p->o + row_at(x, u, r, p->o_stride)
                                   : slot->block + r * x->plan.o_row,
    };
    if (p->block_len) row->blocks = qkvi_blocks_of(p, u->b, h, i);
    if (p->lse) row->lse = p->lse + row_at(x, u, r, p->lse_stride);
}

/* A row of q times the factor, zeros after it. */
static void pack_row(const qkvi_decode_call *x, const qkvi_decode_unit *u, int r, float *to) {
    const qkvi_problem *p = x->p;
    x->kernels->rows->load[p->dtype](qkvi_elem(p->q, p->dtype, row_at(x, u, r, p->q_stride)), 0, 1,
                                     p->head_dim, to, 0);
    for (int64_t c = 0; c < p->head_dim; c++) to[c] *= x->plan.q_factor;
    for (int64_t c = p->head_dim; c < x->plan.q_row; c++) to[c] = 0;
}

/* The first row of each head stands for all of them. NULL: no statistics. */
static qkvi_decode_stats *prepare_stats(const qkvi_decode_call *x, const qkvi_decode_unit *u,
                                        int thread) {
    qkvi_decode_stats *stats = x->plan.slots[thread].stats;
    if (!stats) return NULL;
    stats->n_heads = (int)qkvi_min_i64(x->p->heads_per_kv, u->n_rows);
    for (int n = 0; n < stats->n_heads; n++)
        qkvi_stats_from(x->p, &u->rules, u->b, head_of(x, u, n), query_of(x, u, n),
                        &x->plan.stats[thread], &stats->of[n]);
    return stats;
}

qkvi_decode qkvi_decode_prepare(const qkvi_decode_call *x, const qkvi_decode_unit *u, int thread) {
    const qkvi_problem *p = x->p;
    const qkvi_decode_slot *slot = &x->plan.slots[thread];
    qkvi_decode a = {
        .head_dim = p->head_dim,
        .head_dim_v = p->head_dim_v,
        .n_rows = u->n_rows,
        .q = slot->q,
        .q_row = x->plan.q_row,
        .rows = slot->rows,
        .n_held = qkvi_min_i64(u->keys.end, x->kv->end),
        .storage = x->kv->storage,
        .scale = x->plan.scale,
        .softcap = p->has_softcap ? p->softcap : 0,
        .block_len = p->block_len,
        .scratch = slot->scratch,
        .block = slot->block,
        .stage = slot->stage,
        .o_row = x->plan.o_row,
        .stats = prepare_stats(x, u, thread),
    };
    qkvi_kv_rows_of(x->kv, u->b, u->g, &a.k, &a.v, &a.place);
    for (int r = 0; r < u->n_rows; r++) {
        fill_row(x, u, r, slot, &slot->rows[r]);
        pack_row(x, u, r, slot->q + r * a.q_row);
    }
    return a;
}

void qkvi_decode_finish(const qkvi_decode_call *x, const qkvi_decode_unit *u,
                        const qkvi_decode *a) {
    const qkvi_problem *p = x->p;
    x->kernels->decode->finish(a);
    for (int r = 0; p->o_dtype != QKV_F32 && r < u->n_rows; r++)
        x->kernels->rows->store[p->o_dtype](
            a->rows[r].o, 0, 1, p->head_dim_v, 1,
            qkvi_elem(p->o, p->o_dtype, row_at(x, u, r, p->o_stride)), 0);
    for (int n = 0; a->stats && n < a->stats->n_heads; n++)
        qkvi_stats_count(p, u->b, head_of(x, u, n), &a->stats->of[n]);
}

void qkvi_decode_run_split(const qkvi_decode_call *x, const qkvi_decode_unit *u, qkvi_decode *a,
                           int64_t split, qkvi_decode_part *part) {
    a->first_key = qkvi_max_i64(split * QKVI_DECODE_SPLIT, u->keys.begin);
    a->end_key = qkvi_min_i64((split + 1) * QKVI_DECODE_SPLIT, u->keys.end);
    a->part = part;
    x->kernels->decode->split(a);
}
