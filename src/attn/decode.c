/*
 * Decode: a few queries against stored keys and values. Who computes what is here, a block of rows
 * in decode_unit.c. Units of work are made in decode_plan.c, the view of K and V is kv_view.c's,
 * sums are in kernels/tmpl/decode.h.
 */
#include "attn/decode_unit.h"
#include "attn/problem.h"
#include "attn/stats.h"
#include "attn/watch.h"

typedef struct pass {
    qkvi_decode_call call;
    atomic_llong next; /* piece of work to be drawn */
    qkvi_watch watch;  /* of splits */
} pass;

/* ---- Pieces of work -------------------------------------------------------------------------- */

/* Whole units, joined as they go. */
static void run_private(void *argument, int thread) {
    pass *const x = argument;
    const qkvi_decode_call *const c = &x->call;
    qkvi_decode_part *const *parts = c->plan.slots[thread].parts;
    while (!qkvi_watch_cancelled(&x->watch)) {
        const int64_t index = atomic_fetch_add(&x->next, 1);
        if (index >= c->plan.n_units) return;
        const qkvi_decode_unit u = qkvi_decode_unit_at(c, index);
        if (u.n_rows) {
            qkvi_decode a = qkvi_decode_prepare(c, &u, thread);
            parts[0]->seen = 0;
            for (int64_t split = u.from; split < u.to; split++) {
                if (qkvi_watch_cancelled(&x->watch)) return;
                qkvi_decode_run_split(c, &u, &a, split, parts[split > u.from]);
                a.part = parts[0];
                if (split > u.from) c->kernels->decode->join(&a, parts[1]);
            }
            a.part = parts[0];
            qkvi_decode_finish(c, &u, &a);
        }
        qkvi_watch_done_one(&x->watch);
    }
}

/* Every unit has a piece at least, which writes its rows. */
static int64_t n_pieces(const qkvi_decode_unit *u) { return qkvi_max_i64(u->to - u->from, 1); }

/* Split by split; who ends the last one of a unit joins them. */
static void run_shared(void *argument, int thread) {
    pass *const x = argument;
    const qkvi_decode_call *const c = &x->call;
    const int64_t n = c->plan.n_units * c->plan.n_splits;
    while (!qkvi_watch_cancelled(&x->watch)) {
        const int64_t piece = atomic_fetch_add(&x->next, 1);
        if (piece >= n) return;
        const int64_t index = piece / c->plan.n_splits, nth = piece % c->plan.n_splits;
        const qkvi_decode_unit u = qkvi_decode_unit_at(c, index);
        if (!u.n_rows || nth >= n_pieces(&u)) continue;
        qkvi_decode a = qkvi_decode_prepare(c, &u, thread);
        a.part = qkvi_decode_part_at(&c->plan, index, nth);
        a.part->seen = 0;
        if (u.from + nth < u.to) qkvi_decode_run_split(c, &u, &a, u.from + nth, a.part);
        if (atomic_fetch_sub(&c->plan.left[index], 1) > 1) continue;
        a.part = qkvi_decode_part_at(&c->plan, index, 0);
        for (int64_t m = 1; m < n_pieces(&u); m++)
            c->kernels->decode->join(&a, qkvi_decode_part_at(&c->plan, index, m));
        qkvi_decode_finish(c, &u, &a);
        qkvi_watch_done_one(&x->watch);
    }
}

static void run(pass *x, qkvi_pool *pool) {
    const qkvi_decode_call *const c = &x->call;
    const bool writes = c->p->head_dim_v > 0 || c->p->lse || c->p->has_stats;
    if (c->p->has_stats) qkvi_stats_begin(c->p);
    if (c->plan.n_units == 0 || !writes) return;
    for (int64_t n = 0; c->plan.shared && n < c->plan.n_units; n++) {
        const qkvi_decode_unit u = qkvi_decode_unit_at(c, n);
        atomic_init(&c->plan.left[n], n_pieces(&u));
    }
    atomic_init(&x->next, 0);
    qkvi_pool_run(pool, c->plan.n_threads, c->plan.shared ? run_shared : run_private, x);
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
    pass x = { .call = { .p = p, .kv = kv, .kernels = ctx->kernels } };
    qkvi_decode_plan *const plan = &x.call.plan;
    size_t bytes = 0;
    void *block;
    QKV_TRY(qkvi_decode_plan_of(ctx, p, plan, &bytes));
    QKV_TRY(qkvi_ctx_workspace(ctx, call, bytes, &block));
    qkvi_cutter cutter = qkvi_cutter_on(block);
    qkvi_decode_lay_out(p, &cutter, plan);
    x.watch = qkvi_watch_begin(call, plan->n_units);
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
