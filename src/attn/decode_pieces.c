/* See decode_pieces.h. */
#include "attn/decode_pieces.h"

#include <string.h>

#include "attn/stats.h"
#include "attn/watch.h"

typedef struct pass {
    const qkvi_decode_call *call;
    qkvi_decode_pieces *pieces;
    int64_t from, to;  /* splits that are computed now */
    atomic_llong next; /* piece of work to be drawn */
    qkvi_watch watch;
} pass;

static qkvi_decode_part *sum_of(const qkvi_decode_pieces *x, char *sums, int64_t unit) {
    return (qkvi_decode_part *)(void *)(sums + (size_t)unit * x->call.plan.part_bytes);
}

static qkvi_decode_part *part_of(const qkvi_decode_pieces *x, int64_t unit, int64_t split) {
    return qkvi_decode_part_at(&x->call.plan, unit, split - x->from);
}

/* ---- Before ---------------------------------------------------------------------------------- */

void qkvi_decode_pieces_init(qkvi_decode_pieces *x, const qkv_ctx *ctx, const qkvi_problem *p,
                             int64_t from, int64_t to) {
    *x =
        (qkvi_decode_pieces){ .call = { .p = p, .kernels = ctx->kernels }, .from = from, .to = to };
    qkvi_decode_plan_pieces(p, qkvi_pool_threads(ctx->pool), to - from, &x->call.plan);
}

void qkvi_decode_pieces_lay_out(qkvi_decode_pieces *x, qkvi_cutter *cutter) {
    const qkvi_decode_plan *const plan = &x->call.plan;
    qkvi_decode_lay_out(x->call.p, cutter, &x->call.plan);
    x->sum_bytes = (size_t)plan->n_units * plan->part_bytes;
    x->sum = qkvi_cut(cutter, plan->n_units, plan->part_bytes);
    x->other = x->merges ? qkvi_cut(cutter, plan->n_units, plan->part_bytes) : NULL;
}

void qkvi_decode_pieces_begin(qkvi_decode_pieces *x) {
    if (x->sum_bytes) memset(x->sum, 0, x->sum_bytes);
}

/* ---- Splits ---------------------------------------------------------------------------------- */

static void run_splits(void *argument, int thread) {
    pass *const x = argument;
    const int64_t n_splits = x->to - x->from;
    for (int64_t n; n = atomic_fetch_add(&x->next, 1), n < x->call->plan.n_units * n_splits;) {
        const int64_t index = n / n_splits, split = x->from + n % n_splits;
        const qkvi_decode_unit u = qkvi_decode_unit_at(x->call, index);
        if (u.n_rows && split >= u.from && split < u.to) {
            qkvi_decode a = qkvi_decode_prepare(x->call, &u, thread);
            qkvi_decode_run_split(x->call, &u, &a, split, part_of(x->pieces, index, split));
        }
        qkvi_watch_done_one(&x->watch);
    }
}

void qkvi_decode_pieces_run(qkvi_decode_pieces *pieces, qkv_ctx *ctx, const qkvi_kv *kv,
                            int64_t from, int64_t to, const qkv_call_options *call) {
    qkvi_decode_call with_keys = pieces->call;
    with_keys.kv = kv;
    pass x = { .call = &with_keys, .pieces = pieces, .from = from, .to = to };
    if (from >= to || with_keys.plan.n_units == 0) return;
    x.watch = qkvi_watch_begin(call, with_keys.plan.n_units * (to - from));
    qkvi_pool_run(ctx->pool, with_keys.plan.n_threads, run_splits, &x);
}

/* ---- Together -------------------------------------------------------------------------------- */

/* The kernel needs no keys to join and to finish. */
static const qkvi_kv no_keys = { .k = "", .v = "" };

static void join_units(void *argument, int thread) {
    pass *const x = argument;
    const qkvi_decode_pieces *const own = x->pieces;
    for (int64_t n; n = atomic_fetch_add(&x->next, 1), n < x->call->plan.n_units;) {
        const qkvi_decode_unit u = qkvi_decode_unit_at(x->call, n);
        const int64_t end = qkvi_min_i64(u.to, own->to);
        if (!u.n_rows) continue;
        qkvi_decode a = qkvi_decode_prepare(x->call, &u, thread);
        a.part = sum_of(own, own->sum, n);
        for (int64_t split = qkvi_max_i64(u.from, own->from); split < end; split++)
            x->call->kernels->decode->join(&a, part_of(own, n, split));
    }
}

static void merge_units(void *argument, int thread) {
    pass *const x = argument;
    const qkvi_decode_pieces *const own = x->pieces;
    for (int64_t n; n = atomic_fetch_add(&x->next, 1), n < x->call->plan.n_units;) {
        const qkvi_decode_unit u = qkvi_decode_unit_at(x->call, n);
        if (!u.n_rows) continue;
        qkvi_decode a = qkvi_decode_prepare(x->call, &u, thread);
        a.part = sum_of(own, own->sum, n);
        x->call->kernels->decode->join(&a, sum_of(own, own->other, n));
    }
}

static void finish_units(void *argument, int thread) {
    pass *const x = argument;
    for (int64_t n; n = atomic_fetch_add(&x->next, 1), n < x->call->plan.n_units;) {
        const qkvi_decode_unit u = qkvi_decode_unit_at(x->call, n);
        if (!u.n_rows) continue;
        qkvi_decode a = qkvi_decode_prepare(x->call, &u, thread);
        a.part = sum_of(x->pieces, x->pieces->sum, n);
        qkvi_decode_finish(x->call, &u, &a);
    }
}

static void run_on_units(qkvi_decode_pieces *pieces, qkv_ctx *ctx,
                         void (*task)(void *argument, int thread)) {
    qkvi_decode_call without_keys = pieces->call;
    without_keys.kv = &no_keys;
    pass x = { .call = &without_keys, .pieces = pieces };
    if (without_keys.plan.n_units > 0)
        qkvi_pool_run(ctx->pool, without_keys.plan.n_threads, task, &x);
}

void qkvi_decode_pieces_join(qkvi_decode_pieces *x, qkv_ctx *ctx) {
    if (x->from < x->to) run_on_units(x, ctx, join_units);
}

void qkvi_decode_pieces_merge(qkvi_decode_pieces *x, qkv_ctx *ctx) {
    run_on_units(x, ctx, merge_units);
}

void qkvi_decode_pieces_finish(qkvi_decode_pieces *x, qkv_ctx *ctx) {
    const qkvi_problem *const p = x->call.p;
    if (p->has_stats) qkvi_stats_begin(p);
    if (p->head_dim_v > 0 || p->lse || p->has_stats) run_on_units(x, ctx, finish_units);
}
