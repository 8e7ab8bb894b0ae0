/* See columns_part.h. */
#include "attn/columns_part.h"

#include "attn/watch.h"

typedef struct pass {
    const qkvi_columns_part *part;
    qkvi_columns_how how;
    int n_threads;
    qkvi_columns_slot *slots;
    int64_t n_tasks;
    atomic_llong next;
    qkvi_watch watch; /* of tasks */
} pass;

/* ---- Sums ------------------------------------------------------------------------------------ */

void qkvi_columns_sums_lay_out(const qkvi_problem *p, int64_t first, int64_t end,
                               qkvi_cutter *cutter, qkvi_columns_sums *s) {
    s->first = first;
    s->end = end;
    s->n_heads = p->n_batch * p->n_kv_heads;
    s->n_blocks = first < end ? qkvi_ceil_div(end, QKVI_KEY_BLOCK) - first / QKVI_KEY_BLOCK : 0;
    s->of = qkvi_cut(cutter, s->n_heads * s->n_blocks, sizeof *s->of);
    s->own = qkvi_cut(cutter, 1, sizeof *s->own);
}

void qkvi_columns_sums_begin(const qkvi_columns_sums *s) {
    qkvi_columns_begin_keys(s->own);
    for (int64_t n = 0; n < s->n_heads * s->n_blocks; n++) s->of[n] = s->own->keys;
}

/* Keys of block n that are there. */
static qkvi_range keys_of(const qkvi_columns_sums *s, int64_t n) {
    const int64_t key0 = (s->first / QKVI_KEY_BLOCK + n) * QKVI_KEY_BLOCK;
    return (qkvi_range){ qkvi_max_i64(key0, s->first),
                         qkvi_min_i64(key0 + QKVI_KEY_BLOCK, s->end) };
}

/* ---- A block of keys against the queries of the part ----------------------------------------- */

static void add_queries(const pass *x, const qkvi_columns_slot *slot, const qkvi_rules *rules,
                        int64_t b, int64_t g, int64_t i0, int64_t key0) {
    const qkvi_columns_part *const part = x->part;
    const int64_t i1 = qkvi_min_i64(i0 + QKVI_QUERY_BLOCK, rules->n_queries);
    qkvi_attend a;
    qkvi_columns c;
    if (!qkvi_columns_open(&x->how, slot, rules, b, g, i0, i1, key0, &a, &c)) return;
    c.i0 += part->p->first_q;
    c.all = part->all;
    c.tiny = part->tiny;
    if (part->weights) {
        c.weights = part->weights + qkvi_q_at(part->p, part->weights_stride, b, g, i0);
        c.weights_row = part->weights_stride[2];
    }
    x->how.kernels->columns->block(&c);
}

static void run_block(const pass *x, const qkvi_columns_slot *slot, int64_t head, int64_t n) {
    const qkvi_problem *const p = x->part->p;
    const qkvi_columns_sums *const sums = x->part->sums;
    const int64_t b = head / p->n_kv_heads, g = head % p->n_kv_heads;
    const qkvi_rules rules = qkvi_rules_of(p, b);
    const qkvi_range keys = keys_of(sums, n);
    const int64_t end = qkvi_min_i64(keys.end, rules.n_keys);
    const int64_t key0 = keys.begin / QKVI_KEY_BLOCK * QKVI_KEY_BLOCK;
    if (keys.begin >= end) return;
    const qkvi_range rows = qkvi_queries_of_block(&rules, keys.begin, end);
    if (rows.begin >= rows.end) return;
    qkvi_columns_keys(&x->how, slot, &rules, b, g, key0);
    qkvi_columns_sum *const sum = &sums->of[head * sums->n_blocks + n];
    slot->own->keys = *sum;
    for (int64_t i0 = rows.begin / QKVI_QUERY_BLOCK * QKVI_QUERY_BLOCK; i0 < rows.end;
         i0 += QKVI_QUERY_BLOCK)
        add_queries(x, slot, &rules, b, g, i0, key0);
    *sum = slot->own->keys;
}

static void run_task(void *argument, int thread) {
    pass *const x = argument;
    qkvi_columns_begin_slot(&x->slots[thread]);
    for (int64_t n; n = atomic_fetch_add(&x->next, 1), n < x->n_tasks;) {
        const int64_t n_blocks = x->part->sums->n_blocks;
        run_block(x, &x->slots[thread], n / n_blocks, n % n_blocks);
        qkvi_watch_done_one(&x->watch);
    }
}

/* ---- The call -------------------------------------------------------------------------------- */

static void lay_out(qkvi_cutter *cutter, const qkvi_problem *p, const qkv_ctx *ctx, pass *x) {
    qkvi_columns_slot measured;
    x->how = qkvi_columns_how_of(p, ctx);
    x->n_threads = qkvi_pool_threads(ctx->pool);
    x->slots = qkvi_cut(cutter, x->n_threads, sizeof *x->slots);
    for (int n = 0; n < x->n_threads; n++)
        qkvi_columns_lay_out_slot(cutter, &x->how, false, x->slots ? &x->slots[n] : &measured);
}

qkv_status qkvi_columns_part_workspace(qkv_ctx *ctx, const qkvi_problem *p, size_t *bytes) {
    qkvi_cutter cutter = { 0 };
    pass x;
    lay_out(&cutter, p, ctx, &x);
    return qkvi_ctx_measured(ctx, &cutter, bytes);
}

qkv_status qkvi_columns_run_part(qkv_ctx *ctx, const qkvi_columns_part *part,
                                 const qkv_call_options *call) {
    const qkvi_problem *const p = part->p;
    const qkvi_columns_sums *const sums = part->sums;
    pass x = { .part = part };
    size_t bytes;
    void *block;
    QKV_TRY(qkvi_columns_part_workspace(ctx, p, &bytes));
    QKV_TRY(qkvi_ctx_workspace(ctx, call, bytes, &block));
    qkvi_cutter cutter = qkvi_cutter_on(block);
    lay_out(&cutter, p, ctx, &x);
    x.how.there = (qkvi_range){ sums->first, sums->end };
    x.n_tasks = p->len_q && p->heads_per_kv ? sums->n_heads * sums->n_blocks : 0;
    x.watch = qkvi_watch_begin(call, x.n_tasks);
    if (x.n_tasks > 0) qkvi_pool_run(ctx->pool, x.n_threads, run_task, &x);
    return QKV_OK;
}

void qkvi_columns_store(const qkv_ctx *ctx, const qkvi_columns_problem *x,
                        const qkvi_columns_sums *s, int64_t turn) {
    const qkvi_problem *const p = &x->p;
    for (int64_t n = 0; n < s->n_heads * s->n_blocks; n++) {
        const int64_t head = n / s->n_blocks, g = head % p->n_kv_heads;
        const qkvi_range keys = keys_of(s, n % s->n_blocks);
        s->own->keys = s->of[n];
        qkvi_columns_end_keys(x, ctx->kernels, s->own, head / p->n_kv_heads,
                              g * p->heads_per_kv + turn,
                              keys.begin / QKVI_KEY_BLOCK * QKVI_KEY_BLOCK, keys);
    }
}
