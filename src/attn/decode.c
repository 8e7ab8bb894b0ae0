/*
 * Decode: a few queries against stored keys and values. Units of work are made in decode_plan.c,
 * the view of K and V is kv_view.c's, sums are in kernels/tmpl/decode.h.
 */
#include "attn/blocks.h"
#include "attn/ctx.h"
#include "attn/decode_plan.h"
#include "attn/kv_view.h"
#include "attn/seen.h"
#include "attn/stats.h"
#include "attn/watch.h"
#include "kernels/table.h"

typedef struct decode_call {
    const qkvi_problem *p;
    const qkvi_kv *kv;
    const qkvi_kernels *kernels;
    qkvi_decode_plan plan;
    atomic_llong next; /* piece of work to be drawn */
    qkvi_watch watch;  /* of splits */
} decode_call;

/* A block of rows of one key/value head of one sequence; row = query * heads_per_kv + head. */
typedef struct decode_unit {
    int64_t b, g, first_row;
    int n_rows; /* 0: none */
    qkvi_rules rules;
    qkvi_range keys;  /* all that some row may see by position */
    int64_t from, to; /* their splits */
} decode_unit;

static decode_unit unit_at(const decode_call *x, int64_t index) {
    const qkvi_problem *p = x->p;
    const int64_t head = index / x->plan.n_row_blocks;
    decode_unit u = { .b = head / p->n_kv_heads,
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
static int64_t query_of(const decode_call *x, const decode_unit *u, int r) {
    return (u->first_row + r) / x->p->heads_per_kv;
}
static int64_t head_of(const decode_call *x, const decode_unit *u, int r) {
    return u->g * x->p->heads_per_kv + (u->first_row + r) % x->p->heads_per_kv;
}

/* Where the unit's row r is in an array of queries, in elements. */
static int64_t row_at(const decode_call *x, const decode_unit *u, int r, const int64_t stride[3]) {
    const int64_t i = query_of(x, u, r), h = head_of(x, u, r);
    return u->b * stride[0] + h * stride[1] + i * stride[2];
}

/* o of 16 bits is finished in the slot's block; finish_unit rounds it. */
static void fill_row(const decode_call *x, const decode_unit *u, int r,
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
static void pack_row(const decode_call *x, const decode_unit *u, int r, float *to) {
    const qkvi_problem *p = x->p;
    x->kernels->load_rows[p->dtype](qkvi_elem(p->q, p->dtype, row_at(x, u, r, p->q_stride)), 0, 1,
                                    p->head_dim, to, 0);
    for (int64_t c = 0; c < p->head_dim; c++) to[c] *= x->plan.q_factor;
    for (int64_t c = p->head_dim; c < x->plan.q_row; c++) to[c] = 0;
}

/* The first row of each head stands for all of them. NULL: no statistics. */
static qkvi_decode_stats *prepare_stats(const decode_call *x, const decode_unit *u, int thread) {
    qkvi_decode_stats *stats = x->plan.slots[thread].stats;
    if (!stats) return NULL;
    stats->n_heads = (int)qkvi_min_i64(x->p->heads_per_kv, u->n_rows);
    for (int n = 0; n < stats->n_heads; n++)
        qkvi_stats_from(x->p, &u->rules, u->b, head_of(x, u, n), query_of(x, u, n),
                        &x->plan.stats[thread], &stats->of[n]);
    return stats;
}

/* What the kernel is told about a unit, its rows filled in; keys and part are still to be set. */
static qkvi_decode prepare(const decode_call *x, const decode_unit *u, int thread) {
    const qkvi_problem *p = x->p;
    const qkvi_decode_slot *slot = &x->plan.slots[thread];
    qkvi_decode a = {
        .head_dim = p->head_dim,
        .head_dim_v = p->head_dim_v,
        .n_rows = u->n_rows,
        .q = slot->q,
        .q_row = x->plan.q_row,
        .rows = slot->rows,
        .n_held = u->keys.end,
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

static void finish_unit(const decode_call *x, const decode_unit *u, const qkvi_decode *a) {
    const qkvi_problem *p = x->p;
    x->kernels->decode_finish(a);
    for (int r = 0; p->o_dtype != QKV_F32 && r < u->n_rows; r++)
        x->kernels->store_rows[p->o_dtype](
            a->rows[r].o, 0, 1, p->head_dim_v, 1,
            qkvi_elem(p->o, p->o_dtype, row_at(x, u, r, p->o_stride)), 0);
    for (int n = 0; a->stats && n < a->stats->n_heads; n++)
        qkvi_stats_count(p, u->b, head_of(x, u, n), &a->stats->of[n]);
}

static void run_split(const decode_call *x, const decode_unit *u, qkvi_decode *a, int64_t split,
                      qkvi_decode_part *part) {
    a->first_key = qkvi_max_i64(split * QKVI_DECODE_SPLIT, u->keys.begin);
    a->end_key = qkvi_min_i64((split + 1) * QKVI_DECODE_SPLIT, u->keys.end);
    a->part = part;
    x->kernels->decode_split(a);
}

/* ---- Pieces of work -------------------------------------------------------------------------- */

/* Whole units, joined as they go. */
static void run_private(void *argument, int thread) {
    decode_call *x = argument;
    qkvi_decode_part *const *parts = x->plan.slots[thread].parts;
    while (!qkvi_watch_cancelled(&x->watch)) {
        const int64_t index = atomic_fetch_add(&x->next, 1);
        if (index >= x->plan.n_units) return;
        const decode_unit u = unit_at(x, index);
        if (u.n_rows) {
            qkvi_decode a = prepare(x, &u, thread);
            parts[0]->seen = 0;
            for (int64_t split = u.from; split < u.to; split++) {
                if (qkvi_watch_cancelled(&x->watch)) return;
                run_split(x, &u, &a, split, parts[split > u.from]);
                a.part = parts[0];
                if (split > u.from) x->kernels->decode_join(&a, parts[1]);
            }
            a.part = parts[0];
            finish_unit(x, &u, &a);
        }
        qkvi_watch_done_one(&x->watch);
    }
}

static qkvi_decode_part *part_at(const decode_call *x, int64_t unit, int64_t nth) {
    return (qkvi_decode_part *)(void *)(x->plan.parts + (size_t)(unit * x->plan.n_splits + nth) *
                                                            x->plan.part_bytes);
}

/* Every unit has a piece at least, which writes its rows. */
static int64_t n_pieces(const decode_unit *u) { return qkvi_max_i64(u->to - u->from, 1); }

/* Split by split; who ends the last one of a unit joins them. */
static void run_shared(void *argument, int thread) {
    decode_call *x = argument;
    const int64_t n = x->plan.n_units * x->plan.n_splits;
    while (!qkvi_watch_cancelled(&x->watch)) {
        const int64_t piece = atomic_fetch_add(&x->next, 1);
        if (piece >= n) return;
        const int64_t index = piece / x->plan.n_splits, nth = piece % x->plan.n_splits;
        const decode_unit u = unit_at(x, index);
        if (!u.n_rows || nth >= n_pieces(&u)) continue;
        qkvi_decode a = prepare(x, &u, thread);
        a.part = part_at(x, index, nth);
        a.part->seen = 0;
        if (u.from + nth < u.to) run_split(x, &u, &a, u.from + nth, a.part);
        if (atomic_fetch_sub(&x->plan.left[index], 1) > 1) continue;
        a.part = part_at(x, index, 0);
        for (int64_t m = 1; m < n_pieces(&u); m++)
            x->kernels->decode_join(&a, part_at(x, index, m));
        finish_unit(x, &u, &a);
        qkvi_watch_done_one(&x->watch);
    }
}

static void run(decode_call *x, qkvi_pool *pool) {
    const bool writes = x->p->head_dim_v > 0 || x->p->lse || x->p->has_stats;
    if (x->p->has_stats) qkvi_stats_begin(x->p);
    if (x->plan.n_units == 0 || !writes) return;
    for (int64_t n = 0; x->plan.shared && n < x->plan.n_units; n++) {
        const decode_unit u = unit_at(x, n);
        atomic_init(&x->plan.left[n], n_pieces(&u));
    }
    atomic_init(&x->next, 0);
    qkvi_pool_run(pool, x->plan.n_threads, x->plan.shared ? run_shared : run_private, x);
}

/* ---- The call -------------------------------------------------------------------------------- */

qkv_status qkvi_decode_plan_of(qkv_ctx *ctx, const qkvi_problem *p, qkvi_decode_plan *plan,
                               size_t *bytes) {
    qkvi_cutter cutter = { 0 };
    qkvi_decode_plan_make(p, qkvi_pool_threads(ctx->pool), plan);
    qkvi_decode_lay_out(p, &cutter, plan);
    return qkvi_ctx_measured(ctx, &cutter, bytes);
}

static qkv_status decode(qkv_ctx *ctx, const qkvi_problem *p, const qkvi_kv *kv,
                         const qkv_call_options *call) {
    decode_call x = { .p = p, .kv = kv, .kernels = ctx->kernels };
    size_t bytes = 0;
    void *block;
    QKV_TRY(qkvi_decode_plan_of(ctx, p, &x.plan, &bytes));
    QKV_TRY(qkvi_ctx_workspace(ctx, call, bytes, &block));
    qkvi_cutter cutter = qkvi_cutter_on(block);
    qkvi_decode_lay_out(p, &cutter, &x.plan);
    x.watch = qkvi_watch_begin(call, x.plan.n_units);
    run(&x, ctx->pool);
    return qkvi_watch_end(&x.watch, ctx);
}

qkv_status qkv_attention_decode(qkv_ctx *ctx, const qkv_attention_desc *desc, const void *q,
                                const qkv_kv_view *view, void *o, float *lse,
                                const qkv_call_options *call) {
    qkvi_problem problem;
    qkvi_kv kv;
    qkv_call_options options;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = qkvi_call_read(call, &options, &ctx->error);
    if (status == QKV_OK)
        status = qkvi_problem_decode(desc, q, view, o, lse, &options, &problem, &kv, &ctx->error);
    if (status == QKV_OK) status = decode(ctx, &problem, &kv, &options);
    return qkvi_ctx_end(ctx, status);
}

qkv_status qkv_attention_decode_workspace(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                          size_t *bytes) {
    qkvi_problem problem;
    qkvi_decode_plan made;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = qkvi_problem_decode_shape(desc, &problem, &ctx->error);
    if (status == QKV_OK && !bytes) status = qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "bytes is NULL");
    if (status == QKV_OK) status = qkvi_decode_plan_of(ctx, &problem, &made, bytes);
    return qkvi_ctx_end(ctx, status);
}
