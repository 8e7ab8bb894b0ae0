/*
 * A rectangle of weights: the blocks of the pass over columns (columns.h), whose p are handed over. A
 * task is a block of 256 keys.
 */
#include <math.h>
#include <string.h>

#include "attn/columns.h"
#include "attn/watch.h"

typedef struct pass {
    const qkvi_problem *p;
    const qkvi_rectangle *r;
    qkvi_columns_how how;
    qkvi_rules rules;
    int n_threads;
    int64_t first, n_tasks; /* blocks of keys */
    qkvi_columns_slot *slots;
    atomic_llong next;
    qkvi_watch watch;
} pass;

static void plan(pass *y, const qkvi_problem *p, const qkvi_rectangle *r, const qkv_ctx *ctx) {
    y->p = p;
    y->r = r;
    y->how = qkvi_columns_how_of(p, ctx);
    y->first = r->j0 / QKVI_KEY_BLOCK;
    if (r->i0 < r->i1 && r->j0 < r->j1)
        y->n_tasks = qkvi_ceil_div(r->j1, QKVI_KEY_BLOCK) - y->first;
    y->n_threads = qkvi_columns_threads(p, ctx, y->n_tasks);
}

static void lay_out(qkvi_cutter *cutter, pass *y) {
    qkvi_columns_slot measured;
    y->slots = qkvi_cut(cutter, y->n_threads, sizeof *y->slots);
    for (int n = 0; n < y->n_threads; n++)
        qkvi_columns_lay_out_slot(cutter, &y->how, false, y->slots ? &y->slots[n] : &measured);
}

/* Weights of the queries [i0, i1) and the keys [j0, j1), of the block in the slot or, if not `seen`, 0. */
static void hand_over(const pass *y, const qkvi_columns_slot *slot, bool seen, int64_t i0,
                      int64_t i1, int64_t key0, int64_t j0, int64_t j1) {
    const qkvi_rectangle *r = y->r;
    for (int64_t i = qkvi_max_i64(i0, r->i0); i < i1; i++) {
        const float *from = slot->scratch->s + (i - i0) * QKVI_SCORE_ROW + (j0 - key0);
        const float lse = i < y->rules.n_queries
                              ? y->p->lse[qkvi_q_at(y->p, y->p->lse_stride, r->b, r->h, i)]
                              : 0;
        float *to = r->out + (i - r->i0) * r->row + (j0 - r->j0);
        if (isnan(lse) || lse == INFINITY)
            for (int64_t j = j0; j < j1; j++) *to++ = NAN;
        else if (seen)
            memcpy(to, from, (size_t)(j1 - j0) * sizeof *to);
        else
            memset(to, 0, (size_t)(j1 - j0) * sizeof *to);
    }
}

static void run_keys(const pass *y, const qkvi_columns_slot *slot, int64_t key0) {
    const qkvi_rectangle *r = y->r;
    const int64_t g = r->h / y->p->heads_per_kv;
    const int64_t j0 = qkvi_max_i64(key0, r->j0), j1 = qkvi_min_i64(key0 + QKVI_KEY_BLOCK, r->j1);
    const int64_t begin = y->p->block_len ? r->i0 / 32 * 32 : r->i0; /* 32 rows have one list */
    qkvi_columns_keys(&y->how, slot, &y->rules, r->b, g, key0);
    for (int64_t i0 = begin; i0 < r->i1; i0 += QKVI_QUERY_BLOCK) {
        const int64_t i1 = qkvi_min_i64(i0 + QKVI_QUERY_BLOCK, r->i1);
        const int64_t n = qkvi_min_i64(i1, y->rules.n_queries); /* rows from it on are not read */
        qkvi_attend a;
        qkvi_columns c;
        const bool seen =
            i0 < n && qkvi_columns_open(&y->how, slot, &y->rules, r->b, r->h, i0, n, key0, &a, &c);
        c.all = true;
        c.tiny = 0;
        if (seen) y->how.kernels->columns_block(&c);
        hand_over(y, slot, seen, i0, seen ? n : i1, key0, j0, j1);
        if (seen) hand_over(y, slot, false, n, i1, key0, j0, j1);
    }
}

static void run_task(void *argument, int thread) {
    pass *y = argument;
    const qkvi_columns_slot *slot = &y->slots[thread];
    qkvi_columns_begin_slot(slot);
    memset(slot->own, 0, sizeof *slot->own);
    while (!qkvi_watch_cancelled(&y->watch)) {
        const int64_t nth = atomic_fetch_add(&y->next, 1);
        if (nth >= y->n_tasks) return;
        run_keys(y, slot, (y->first + nth) * QKVI_KEY_BLOCK);
        qkvi_watch_done_one(&y->watch);
    }
}

static qkv_status weights(qkv_ctx *ctx, const qkvi_problem *p, const qkvi_rectangle *r,
                          const qkv_call_options *call) {
    pass y = { .rules = qkvi_rules_of(p, r->b) };
    qkvi_cutter cutter = { 0 };
    size_t bytes = 0;
    void *block;
    plan(&y, p, r, ctx);
    lay_out(&cutter, &y);
    QKV_TRY(qkvi_ctx_measured(ctx, &cutter, &bytes));
    QKV_TRY(qkvi_ctx_workspace(ctx, call, bytes, &block));
    cutter = qkvi_cutter_on(block);
    lay_out(&cutter, &y);
    y.watch = qkvi_watch_begin(call, y.n_tasks);
    if (y.n_tasks > 0) qkvi_pool_run(ctx->pool, y.n_threads, run_task, &y);
    return qkvi_watch_end(&y.watch, ctx);
}

qkv_status qkv_attention_weights(qkv_ctx *ctx, const qkv_attention_desc *desc, const void *q,
                                 const void *k, const float *lse, int64_t b, int64_t h, int64_t i0,
                                 int64_t i1, int64_t j0, int64_t j1, float *p, int64_t p_row,
                                 const qkv_call_options *call) {
    const qkvi_rectangle r = { b, h, i0, i1, j0, j1, p, p_row };
    qkvi_columns_problem x;
    qkv_call_options options;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = qkvi_call_read(call, &options, &ctx->error);
    if (status == QKV_OK)
        status = qkvi_weights_read(desc, q, k, lse, &r, &options, &x, &ctx->error);
    if (status == QKV_OK) status = weights(ctx, &x.p, &r, &options);
    return qkvi_ctx_end(ctx, status);
}
