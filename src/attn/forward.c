/*
 * Forward pass: who computes what. The arithmetic is in kernels/tmpl/attend.h, the sizes in plan.c,
 * a head and a block of its queries in forward_head.c.
 *
 * K and V of a key/value head are packed once and shared by all query blocks of all query heads of
 * its group. Where there are many heads, a thread takes a head at a time, packs it and attends; the
 * heads that are left over when every thread has had as many as the others, or all where there are
 * few, are packed by all threads together, who then share out the query blocks, the last first,
 * because under a causal mask these are the longest.
 *
 * A row's result depends on its query, its keys and the options alone: nothing here forms a sum.
 */
#include "attn/forward.h"

#include <math.h>

#include "attn/explain.h"
#include "attn/forward_head.h"
#include "attn/problem.h"
#include "attn/small.h"
#include "attn/watch.h"

typedef struct pass {
    qkvi_forward_call call;
    int n_wave; /* heads that all threads work on now: those in packs */
    int64_t wave_query_blocks, wave_key_blocks; /* of the longest of them */
    atomic_llong next;                          /* piece of work to be drawn */
    qkvi_watch watch;                           /* of query blocks */
} pass;

/* Those that q_len leaves without a row included. */
static int64_t query_blocks(const pass *x, const qkvi_forward_head *w) {
    return qkvi_forward_blocks(&x->call.plan, qkvi_len_q(x->call.p, w->b));
}

/* ---- Pieces of work -------------------------------------------------------------------------- */

/*
 * Query block `nth` of those of n_packs heads, the longest of which has n_blocks: blocks from last
 * to first, then heads.
 */
static void attend_piece(pass *x, const qkvi_packed *packs, int64_t n_packs, int64_t n_blocks,
                         int64_t nth, int thread) {
    const int64_t n_heads = n_packs * x->call.p->heads_per_kv, n = nth % n_heads;
    const qkvi_packed *pack = &packs[n / x->call.p->heads_per_kv];
    const int64_t block = n_blocks - 1 - nth / n_heads;
    const qkvi_forward_head w = qkvi_forward_head_at(&x->call, pack->head);
    const int64_t h = w.g * x->call.p->heads_per_kv + n % x->call.p->heads_per_kv;
    if (block >= query_blocks(x, &w)) return;
    if (qkvi_forward_row(&x->call.plan, block) < w.rules.n_queries)
        qkvi_forward_attend_queries(&x->call, &w, pack, thread, h, block);
    qkvi_watch_done_one(&x->watch);
}

/* A head short enough for the kernel for sentences; false: it is not, or not ordinary. */
static bool attend_sentence(pass *x, const qkvi_forward_head *w, int thread) {
    if (x->call.plan.small_unfit || !qkvi_small_rules(&w->rules) ||
        !qkvi_small_head(x->call.p, x->call.kernels, &x->call.plan, &w->rules, w->b, w->g, thread))
        return false;
    for (int64_t n = 0; n < x->call.p->heads_per_kv * query_blocks(x, w); n++)
        qkvi_watch_done_one(&x->watch);
    return true;
}

/*
 * Whole heads, packed by the thread that attends. Each is drawn while the one before it is under
 * way.
 */
static void run_private(void *argument, int thread) {
    pass *x = argument;
    qkvi_packed *pack = &x->call.plan.packs[thread];
    int64_t index = atomic_fetch_add(&x->next, 1), next;
    for (; index < x->call.plan.n_private && !qkvi_watch_cancelled(&x->watch); index = next) {
        const qkvi_forward_head w = qkvi_forward_head_at(&x->call, index);
        const int64_t n_blocks = query_blocks(x, &w), n_pieces = x->call.p->heads_per_kv * n_blocks;
        next = atomic_fetch_add(&x->next, 1);
        if (qkvi_forward_shared(x->call.p, &x->call.plan, index)) continue;
        if (attend_sentence(x, &w, thread)) continue;
        qkvi_forward_announce(&x->call, next, x->call.plan.slots[thread].scratch);
        pack->head = index;
        for (int64_t n = 0; n < qkvi_forward_key_blocks(&w); n++)
            qkvi_forward_pack_block(&x->call, &w, n, pack);
        for (int64_t n = 0; n < n_pieces && !qkvi_watch_cancelled(&x->watch); n++)
            attend_piece(x, pack, 1, n_blocks, n, thread);
    }
}

static void pack_shared(void *argument, int thread) {
    pass *x = argument;
    (void)thread;
    for (int64_t n; n = atomic_fetch_add(&x->next, 1), n < x->n_wave * x->wave_key_blocks;) {
        const qkvi_packed *pack = &x->call.plan.packs[n / x->wave_key_blocks];
        const qkvi_forward_head w = qkvi_forward_head_at(&x->call, pack->head);
        qkvi_forward_pack_block(&x->call, &w, n % x->wave_key_blocks, pack);
    }
}

static void attend_shared(void *argument, int thread) {
    pass *x = argument;
    const int64_t n_pieces = x->n_wave * x->call.p->heads_per_kv * x->wave_query_blocks;
    qkvi_forward_announce(&x->call, x->call.plan.n_private,
                          x->call.plan.slots[thread].scratch); /* no head of its own is next */
    while (!qkvi_watch_cancelled(&x->watch)) {
        const int64_t nth = atomic_fetch_add(&x->next, 1);
        if (nth >= n_pieces) return;
        attend_piece(x, x->call.plan.packs, x->n_wave, x->wave_query_blocks, nth, thread);
    }
}

static void run_phase(pass *x, qkvi_pool *pool, void (*task)(void *, int)) {
    atomic_store(&x->next, 0);
    qkvi_pool_run(pool, x->call.plan.n_threads, task, x);
}

/* The next heads that all threads share, from *index on, as many as can be packed. */
static bool next_wave(pass *x, int64_t *index) {
    x->n_wave = 0;
    x->wave_query_blocks = x->wave_key_blocks = 0;
    for (; *index < x->call.plan.n_heads && x->n_wave < x->call.plan.n_packs; ++*index) {
        if (!qkvi_forward_shared(x->call.p, &x->call.plan, *index)) continue;
        const qkvi_forward_head w = qkvi_forward_head_at(&x->call, *index);
        x->call.plan.packs[x->n_wave++].head = *index;
        x->wave_query_blocks = qkvi_max_i64(x->wave_query_blocks, query_blocks(x, &w));
        x->wave_key_blocks = qkvi_max_i64(x->wave_key_blocks, qkvi_forward_key_blocks(&w));
    }
    return x->n_wave > 0;
}

static void run(pass *x, qkvi_pool *pool) {
    if (!qkvi_forward_works(x->call.p, x->call.p->lse)) return;
    if (x->call.plan.n_private > 0) run_phase(x, pool, run_private);
    int64_t index = x->call.plan.most_pairs < INFINITY ? 0 : x->call.plan.n_private;
    while (!qkvi_watch_cancelled(&x->watch) && next_wave(x, &index)) {
        run_phase(x, pool, pack_shared);
        run_phase(x, pool, attend_shared);
    }
}

/* ---- The call -------------------------------------------------------------------------------- */

static void make_plan(const qkv_ctx *ctx, const qkvi_problem *p, qkvi_forward_plan *plan) {
    qkvi_forward_plan_make(p, qkvi_pool_threads(ctx->pool), qkvi_arithmetic_of(p, ctx), plan);
}

qkv_status qkvi_forward_plan_of(qkv_ctx *ctx, const qkvi_problem *p, qkvi_forward_plan *plan,
                                size_t *bytes) {
    qkvi_cutter cutter = { 0 };
    make_plan(ctx, p, plan);
    qkvi_forward_lay_out(p, &cutter, plan);
    return qkvi_ctx_measured(ctx, &cutter, bytes);
}

/* x->call.plan is made. */
static qkv_status run_plan(qkv_ctx *ctx, pass *x, const qkv_call_options *call) {
    const qkvi_problem *const p = x->call.p;
    size_t bytes = 0;
    void *block;
    qkvi_cutter cutter = { 0 };
    qkvi_forward_lay_out(p, &cutter, &x->call.plan);
    QKV_TRY(qkvi_ctx_measured(ctx, &cutter, &bytes));
    QKV_TRY(qkvi_ctx_workspace(ctx, call, bytes, &block));
    cutter = qkvi_cutter_on(block);
    qkvi_forward_lay_out(p, &cutter, &x->call.plan);
    x->watch = qkvi_watch_begin(call, p->n_heads * x->call.plan.n_query_blocks);
    if (!x->call.part) qkvi_forward_parts_begin(p);
    run(x, ctx->pool);
    return qkvi_watch_end(&x->watch, ctx);
}

qkv_status qkvi_forward_run(qkv_ctx *ctx, const qkvi_problem *p, const qkv_call_options *call) {
    pass x = { .call = { .p = p, .kernels = ctx->kernels } };
    make_plan(ctx, p, &x.call.plan);
    return run_plan(ctx, &x, call);
}

static void make_part_plan(const qkv_ctx *ctx, const qkvi_problem *p, int64_t n_keys,
                           qkvi_forward_plan *plan) {
    make_plan(ctx, p, plan);
    plan->n_key_blocks = qkvi_ceil_div(n_keys, QKVI_KEY_BLOCK);
    plan->small_unfit = "keys come in parts";
}

qkv_status qkvi_forward_part_workspace(qkv_ctx *ctx, const qkvi_problem *p, int64_t n_keys,
                                       size_t *bytes) {
    qkvi_cutter cutter = { 0 };
    qkvi_forward_plan plan;
    make_part_plan(ctx, p, n_keys, &plan);
    qkvi_forward_lay_out(p, &cutter, &plan);
    return qkvi_ctx_measured(ctx, &cutter, bytes);
}

qkv_status qkvi_forward_run_part(qkv_ctx *ctx, const qkvi_problem *p, const qkvi_forward_part *part,
                                 const qkv_call_options *call) {
    pass x = { .call = { .p = p, .kernels = ctx->kernels, .part = part } };
    make_part_plan(ctx, p, part->end - part->begin, &x.call.plan);
    return run_plan(ctx, &x, call);
}

qkv_status qkv_attention_forward(qkv_ctx *ctx, const qkv_attention_desc *desc, const void *q,
                                 const void *k, const void *v, void *o, float *lse,
                                 const qkv_call_options *call) {
    qkvi_problem problem;
    qkv_call_options options;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = qkvi_call_read(call, &options, &ctx->error);
    if (status == QKV_OK)
        status = qkvi_problem_forward(desc, q, k, v, o, lse, &options, &problem, &ctx->error);
    if (status == QKV_OK) status = qkvi_forward_run(ctx, &problem, &options);
    return qkvi_ctx_end(ctx, status);
}

qkv_status qkv_attention_workspace(qkv_ctx *ctx, const qkv_attention_desc *desc, size_t *bytes) {
    qkvi_problem problem;
    qkvi_forward_plan made;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = qkvi_problem_shape(desc, true, &problem, &ctx->error);
    if (status == QKV_OK && !bytes) status = qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "bytes is NULL");
    if (status == QKV_OK) status = qkvi_forward_plan_of(ctx, &problem, &made, bytes);
    return qkvi_ctx_end(ctx, status);
}
