/*
 * Forward pass: who computes what. The arithmetic is in kernels/tmpl/attend.h, the sizes in plan.c.
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
#include <string.h>

#include "attn/blocks.h"
#include "attn/dropout.h"
#include "attn/explain.h"
#include "attn/pack.h"
#include "attn/plan.h"
#include "attn/seen.h"
#include "attn/small.h"
#include "attn/stats.h"
#include "attn/watch.h"

typedef struct pass {
    const qkvi_problem *p;
    const qkvi_forward_part *part; /* NULL: all keys are in one call */
    const qkvi_kernels *kernels;
    qkvi_forward_plan plan;
    int n_wave; /* heads that all threads work on now: those in packs */
    int64_t wave_query_blocks, wave_key_blocks; /* of the longest of them */
    atomic_llong next;                          /* piece of work to be drawn */
    qkvi_watch watch;                           /* of query blocks */
} pass;

/* One key/value head of one batch, and what its queries see. */
typedef struct head {
    int64_t b, g;
    qkvi_rules rules;
    qkvi_range keys;   /* all that some query sees */
    int64_t first_key; /* of the first block with one */
} head;

static head head_at(const pass *x, int64_t index) {
    const qkvi_problem *const p = x->p;
    head w = { .b = index / p->n_kv_heads, .g = index % p->n_kv_heads };
    w.rules = qkvi_rules_of(p, w.b);
    if (w.rules.n_queries > 0) w.keys = qkvi_keys_of_block(&w.rules, 0, w.rules.n_queries);
    if (x->part) w.keys = qkvi_part_keys(x->part, w.keys);
    w.first_key = w.keys.begin / QKVI_KEY_BLOCK * QKVI_KEY_BLOCK;
    return w;
}

static int64_t key_blocks(const head *w) {
    return qkvi_ceil_div(w->keys.end - w->first_key, QKVI_KEY_BLOCK);
}

/* Those that q_len leaves without a row included. */
static int64_t query_blocks(const pass *x, const head *w) {
    return qkvi_forward_blocks(&x->plan, qkvi_len_q(x->p, w->b));
}

/* ---- Packing --------------------------------------------------------------------------------- */

/* Block number `index` of the head's keys, if it has so many. Reads only keys that a query sees. */
static void pack_block(const pass *x, const head *w, int64_t index, const qkvi_packed *to) {
    const qkvi_problem *p = x->p;
    const qkvi_class_row *const class = &qkvi_classes[x->plan.class];
    const int64_t key = w->first_key + index * QKVI_KEY_BLOCK;
    const int64_t n = qkvi_min_i64(QKVI_KEY_BLOCK, w->keys.end - key);
    uint32_t see[QKVI_SEEN_WORDS];
    if (n <= 0) return;
    qkvi_seen(p, x->kernels, &w->rules, w->b, w->g, key, n, see);
    const void *v = qkvi_elem(p->v, p->dtype, qkvi_k_at(p, p->v_stride, w->b, w->g, key));
    const int64_t at = key - w->first_key;
    uint32_t *values = to->v + at * x->plan.v_depth;
    qkvi_pack_keys(p, x->kernels, w->b, w->g, key, n, see, x->plan.class, x->plan.k_factor,
                   to->k + at * x->plan.k_depth);
    to->v_finite[index] = true;
    if (class->per_word == 2) {
        const int64_t rows = qkvi_round_up(n, class->step); /* no query sees the last */
        to->v_finite[index] = x->kernels->pack_channel_pairs(v, p->v_stride[2], rows, p->head_dim_v,
                                                             QKVI_KEY_BLOCK, see, values);
        return;
    }
    for (int word, end = 0; qkvi_seen_next(see, end, &word, &end);) { /* the others are not read */
        const int64_t j = 32 * word, rows = qkvi_min_i64(32 * end, n) - j;
        to->v_finite[index] &= x->kernels->pack_channels[p->dtype](
            qkvi_elem(v, p->dtype, j * p->v_stride[2]), p->v_stride[2], rows, p->head_dim_v,
            QKVI_KEY_BLOCK, see + word, (float *)values + j * QKVI_PANEL);
    }
}

/* ---- What comes next ------------------------------------------------------------------------- */

/*
 * A head of more than 768 KiB needs the cache for itself, and takes so long that waiting for the
 * next costs nothing: at L = 1,024 and D = 64, causal, fetching brings 74 to 79 % of the peak; at
 * L = 2,048 and D = 128 it costs half a per cent (Zen 5, 1 MiB of L2).
 */
enum { MOST_FETCHED = 768 << 10 };

static qkvi_fetch fetch_rows(const void *x, qkv_dtype type, int64_t stride, int64_t n,
                             int64_t dim) {
    const int64_t row_bytes = dim * qkvi_dtype_bytes(type);
    return (qkvi_fetch){
        .at = x,
        .row_bytes = stride * qkvi_dtype_bytes(type),
        .n_rows = n,
        .lines = n > 0 && n <= MOST_FETCHED / qkvi_max_i64(row_bytes, 1)
                     ? qkvi_ceil_div(row_bytes, 64)
                     : 0,
    };
}

/* While a thread attends to a head, its slot has the next one's K, V and Q fetched. */
static void announce(const pass *x, int64_t index, qkvi_attend_scratch *scratch) {
    const qkvi_problem *p = x->p;
    memset(scratch->fetch, 0, sizeof scratch->fetch);
    if (index >= x->plan.n_private || qkvi_forward_shared(p, &x->plan, index)) return;
    const head w = head_at(x, index);
    const int64_t key = w.keys.begin, n_keys = w.keys.end - key, h = w.g * p->heads_per_kv;
    const void *k = qkvi_elem(p->k, p->dtype, qkvi_k_at(p, p->k_stride, w.b, w.g, key));
    const void *v = qkvi_elem(p->v, p->dtype, qkvi_k_at(p, p->v_stride, w.b, w.g, key));
    const void *q = qkvi_elem(p->q, p->dtype, qkvi_q_at(p, p->q_stride, w.b, h, 0));
    scratch->fetch[1] = fetch_rows(k, p->dtype, p->k_stride[2], n_keys, p->head_dim);
    scratch->fetch[2] = fetch_rows(v, p->dtype, p->v_stride[2], n_keys, p->head_dim_v);
    scratch->fetch[3] = fetch_rows(q, p->dtype, p->q_stride[2], w.rules.n_queries, p->head_dim);
}

/* ---- A block of queries ---------------------------------------------------------------------- */

/* Queries are copied into the slot if the plan says so; o of 16 bits is finished in o_sum. */
static void place_queries(const pass *x, const qkvi_forward_slot *slot, const void *q, void *o,
                          qkvi_attend *a) {
    const qkvi_problem *p = x->p;
    a->q = q;
    a->q_row = p->q_stride[2];
    a->o = o;
    a->o_row = p->o_stride[2];
    if (slot->q) {
        qkvi_copy_queries(p, x->kernels, &x->plan.copied_q, q, a->n_queries, slot->q);
        a->q = slot->q;
        a->q_row = x->plan.copied_q.row;
    }
    if (p->o_dtype != QKV_F32) {
        a->o = a->o_sum;
        a->o_row = x->plan.o_sum_row;
    }
}

/* Sums of the block from query i0 of head h on, where they outlive the call; NULL: they need not. */
static const qkvi_attend_state *state_of(const pass *x, int64_t b, int64_t h, int64_t i0,
                                         qkvi_attend_state *state, float **o_sum) {
    const qkvi_forward_part *const part = x->part;
    if (!part) return NULL;
    const int64_t row = (b * x->p->n_heads + h) * x->p->len_q + i0;
    *state = (qkvi_attend_state){ .begin = part->begin,
                                  .end = part->end,
                                  .m = part->sums.m + row,
                                  .l = part->sums.l + row,
                                  .l_rounded = part->sums.l_rounded + row,
                                  .stats = part->sums.stats + row * (int64_t)part->sums.stats_bytes,
                                  .stats_bytes = part->sums.stats_bytes,
                                  .last = part->last };
    *o_sum = part->sums.o + row * x->plan.o_sum_row;
    return state;
}

static void attend_queries(const pass *x, const head *w, const qkvi_packed *from, int thread,
                           int64_t h, int64_t block) {
    const qkvi_problem *p = x->p;
    const int64_t i0 = qkvi_forward_row(&x->plan, block);
    const int64_t end = qkvi_min_i64(qkvi_forward_row(&x->plan, block + 1), w->rules.n_queries);
    const qkvi_forward_slot *slot = &x->plan.slots[thread];
    qkvi_dropout dropout;
    qkvi_attend_stats stats;
    qkvi_attend_state state;
    qkvi_attend a = {
        .class = x->plan.class,
        .head_dim = p->head_dim,
        .head_dim_v = p->head_dim_v,
        .k_words = x->plan.k_depth,
        .n_queries = (int)(end - i0),
        .k = from->k,
        .v = from->v,
        .first_key = w->first_key,
        .v_finite = from->v_finite,
        .scratch = slot->scratch,
        .o_sum = slot->o_sum,
        .o_sum_row = x->plan.o_sum_row,
        .mask = qkvi_mask_from(p, w->b, h, i0, 0),
        .block_len = p->block_len,
        .dropout = qkvi_dropout_from(p, w->b, h, i0, 0, &dropout),
        .scale = x->plan.scale,
        .softcap = p->has_softcap ? p->softcap : 0,
        .has_sink = p->sinks,
        .sink = p->sinks ? p->sinks[h] : 0,
        .lse_row = p->lse_stride[2],
        .stats = qkvi_stats_from(p, &w->rules, w->b, h, i0,
                                 x->plan.stats ? &x->plan.stats[thread] : NULL, &stats),
    };
    a.state = state_of(x, w->b, h, i0, &state, &a.o_sum);
    if (p->lse) a.lse = p->lse + qkvi_q_at(p, p->lse_stride, w->b, h, i0);
    for (int i = 0; p->block_len && i < a.n_queries; i += 32)
        a.blocks[i / 32] = qkvi_blocks_of(p, w->b, h, i0 + i);
    for (int i = 0; i < a.n_queries; i++) {
        const qkvi_range keys = qkvi_keys_of(&w->rules, i0 + i);
        slot->scratch->begin[i] = keys.begin;
        slot->scratch->end[i] = keys.end;
    }
    void *o = qkvi_elem(p->o, p->o_dtype, qkvi_q_at(p, p->o_stride, w->b, h, i0));
    place_queries(x, slot, qkvi_elem(p->q, p->dtype, qkvi_q_at(p, p->q_stride, w->b, h, i0)), o,
                  &a);
    slot->scratch->fetch[0] = fetch_rows(o, p->o_dtype, p->o_stride[2], a.n_queries, p->head_dim_v);
    x->kernels->attend_block(&a);
    if (a.stats) qkvi_stats_count(p, w->b, h, &stats);
    if (p->o_dtype != QKV_F32 && (!x->part || x->part->last))
        x->kernels->store_rows[p->o_dtype](a.o, a.o_row, a.n_queries, p->head_dim_v, 1, o,
                                           p->o_stride[2]);
}

/* ---- Pieces of work -------------------------------------------------------------------------- */

/*
 * Query block `nth` of those of n_packs heads, the longest of which has n_blocks: blocks from last
 * to first, then heads.
 */
static void attend_piece(pass *x, const qkvi_packed *packs, int64_t n_packs, int64_t n_blocks,
                         int64_t nth, int thread) {
    const int64_t n_heads = n_packs * x->p->heads_per_kv, n = nth % n_heads;
    const qkvi_packed *pack = &packs[n / x->p->heads_per_kv];
    const int64_t block = n_blocks - 1 - nth / n_heads;
    const head w = head_at(x, pack->head);
    const int64_t h = w.g * x->p->heads_per_kv + n % x->p->heads_per_kv;
    if (block >= query_blocks(x, &w)) return;
    if (qkvi_forward_row(&x->plan, block) < w.rules.n_queries)
        attend_queries(x, &w, pack, thread, h, block);
    qkvi_watch_done_one(&x->watch);
}

/* A head short enough for the kernel for sentences; false: it is not, or not ordinary. */
static bool attend_sentence(pass *x, const head *w, int thread) {
    if (x->plan.small_unfit || !qkvi_small_rules(&w->rules) ||
        !qkvi_small_head(x->p, x->kernels, &x->plan, &w->rules, w->b, w->g, thread))
        return false;
    for (int64_t n = 0; n < x->p->heads_per_kv * query_blocks(x, w); n++)
        qkvi_watch_done_one(&x->watch);
    return true;
}

/*
 * Whole heads, packed by the thread that attends. Each is drawn while the one before it is under
 * way.
 */
static void run_private(void *argument, int thread) {
    pass *x = argument;
    qkvi_packed *pack = &x->plan.packs[thread];
    int64_t index = atomic_fetch_add(&x->next, 1), next;
    for (; index < x->plan.n_private && !qkvi_watch_cancelled(&x->watch); index = next) {
        const head w = head_at(x, index);
        const int64_t n_blocks = query_blocks(x, &w), n_pieces = x->p->heads_per_kv * n_blocks;
        next = atomic_fetch_add(&x->next, 1);
        if (qkvi_forward_shared(x->p, &x->plan, index)) continue;
        if (attend_sentence(x, &w, thread)) continue;
        announce(x, next, x->plan.slots[thread].scratch);
        pack->head = index;
        for (int64_t n = 0; n < key_blocks(&w); n++) pack_block(x, &w, n, pack);
        for (int64_t n = 0; n < n_pieces && !qkvi_watch_cancelled(&x->watch); n++)
            attend_piece(x, pack, 1, n_blocks, n, thread);
    }
}

static void pack_shared(void *argument, int thread) {
    pass *x = argument;
    (void)thread;
    for (int64_t n; n = atomic_fetch_add(&x->next, 1), n < x->n_wave * x->wave_key_blocks;) {
        const qkvi_packed *pack = &x->plan.packs[n / x->wave_key_blocks];
        const head w = head_at(x, pack->head);
        pack_block(x, &w, n % x->wave_key_blocks, pack);
    }
}

static void attend_shared(void *argument, int thread) {
    pass *x = argument;
    const int64_t n_pieces = x->n_wave * x->p->heads_per_kv * x->wave_query_blocks;
    announce(x, x->plan.n_private, x->plan.slots[thread].scratch); /* no head of its own is next */
    while (!qkvi_watch_cancelled(&x->watch)) {
        const int64_t nth = atomic_fetch_add(&x->next, 1);
        if (nth >= n_pieces) return;
        attend_piece(x, x->plan.packs, x->n_wave, x->wave_query_blocks, nth, thread);
    }
}

static void run_phase(pass *x, qkvi_pool *pool, void (*task)(void *, int)) {
    atomic_store(&x->next, 0);
    qkvi_pool_run(pool, x->plan.n_threads, task, x);
}

/* The next heads that all threads share, from *index on, as many as can be packed. */
static bool next_wave(pass *x, int64_t *index) {
    x->n_wave = 0;
    x->wave_query_blocks = x->wave_key_blocks = 0;
    for (; *index < x->plan.n_heads && x->n_wave < x->plan.n_packs; ++*index) {
        if (!qkvi_forward_shared(x->p, &x->plan, *index)) continue;
        const head w = head_at(x, *index);
        x->plan.packs[x->n_wave++].head = *index;
        x->wave_query_blocks = qkvi_max_i64(x->wave_query_blocks, query_blocks(x, &w));
        x->wave_key_blocks = qkvi_max_i64(x->wave_key_blocks, key_blocks(&w));
    }
    return x->n_wave > 0;
}

static void run(pass *x, qkvi_pool *pool) {
    if (!qkvi_forward_works(x->p, x->p->lse)) return;
    if (x->plan.n_private > 0) run_phase(x, pool, run_private);
    int64_t index = x->plan.most_pairs < INFINITY ? 0 : x->plan.n_private;
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

/* x->plan is made. */
static qkv_status run_plan(qkv_ctx *ctx, pass *x, const qkv_call_options *call) {
    const qkvi_problem *const p = x->p;
    size_t bytes = 0;
    void *block;
    qkvi_cutter cutter = { 0 };
    qkvi_forward_lay_out(p, &cutter, &x->plan);
    QKV_TRY(qkvi_ctx_measured(ctx, &cutter, &bytes));
    QKV_TRY(qkvi_ctx_workspace(ctx, call, bytes, &block));
    cutter = qkvi_cutter_on(block);
    qkvi_forward_lay_out(p, &cutter, &x->plan);
    x->watch = qkvi_watch_begin(call, p->n_heads * x->plan.n_query_blocks);
    if (!x->part) qkvi_forward_parts_begin(p);
    run(x, ctx->pool);
    return qkvi_watch_end(&x->watch, ctx);
}

qkv_status qkvi_forward_run(qkv_ctx *ctx, const qkvi_problem *p, const qkv_call_options *call) {
    pass x = { .p = p, .kernels = ctx->kernels };
    make_plan(ctx, p, &x.plan);
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
    pass x = { .p = p, .kernels = ctx->kernels, .part = part };
    make_part_plan(ctx, p, part->end - part->begin, &x.plan);
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
