/*
 * A rectangle of weights, normalised (docs/numerics.md, Weights). Blocks of queries meet blocks of
 * 256 keys as in the pass over columns (columns.h), all that the queries see, whatever keys are
 * asked for. Of each block a row keeps the greatest score and its sum, and where the block meets
 * the rectangle, e = exp(s - greatest of the block) goes to the caller's array. When all blocks are
 * done, the row's own sum is known, and e becomes a weight in place.
 *
 * Rows go in waves, which bounds what is kept. A task is a block of keys, then a few rows.
 */
#include <math.h>
#include <string.h>

#include "attn/columns.h"
#include "attn/problem.h"
#include "attn/watch.h"
#include "kernels/vec/vec_double.h"

enum {
    KEPT = 1 << 18, /* blocks of rows that are kept at once, if 96 rows have no more */
    ROWS_AT_ONCE = 8
};

typedef struct pass {
    const qkvi_problem *p;
    const qkvi_rectangle *r;
    qkvi_columns_how how;
    qkvi_rules rules;
    int n_threads;
    int64_t begin;           /* of all queries: r->i0, or where its list of blocks begins */
    int64_t first, n_blocks; /* blocks of keys that the queries see */
    int64_t n_kept;          /* pairs of a row and a block of keys */
    int64_t wave;            /* rows */
    double *most, *sum;      /* [row of the wave][block of keys] */
    qkvi_columns_slot *slots;
    int64_t i0, i1; /* of this wave */
    atomic_llong next;
    qkvi_watch watch;
} pass;

/* ---- Plan ------------------------------------------------------------------------------------ */

/* How many pairs are kept of so many rows and blocks of keys: with more of either never fewer. */
static int64_t kept_of(int64_t n_rows, int64_t n_blocks) {
    const int64_t most = qkvi_max_i64(KEPT, QKVI_QUERY_BLOCK * n_blocks);
    return n_rows > most / qkvi_max_i64(n_blocks, 1) ? most : n_rows * n_blocks;
}

static void plan(pass *y, const qkvi_problem *p, const qkv_ctx *ctx, int64_t n_rows,
                 int64_t n_blocks) {
    y->p = p;
    y->how = qkvi_columns_how_of(p, ctx);
    y->n_blocks = n_blocks;
    y->n_threads = qkvi_columns_threads(p, ctx, n_blocks);
    y->n_kept = kept_of(n_rows, n_blocks);
    y->wave = n_blocks > 0 ? y->n_kept / n_blocks : n_rows;
    if (y->wave < n_rows) y->wave = y->wave / QKVI_QUERY_BLOCK * QKVI_QUERY_BLOCK;
}

static void lay_out(qkvi_cutter *cutter, pass *y) {
    qkvi_columns_slot measured;
    y->slots = qkvi_cut(cutter, y->n_threads, sizeof *y->slots);
    for (int n = 0; n < y->n_threads; n++)
        qkvi_columns_lay_out_slot(cutter, &y->how, false, y->slots ? &y->slots[n] : &measured);
    y->most = qkvi_cut(cutter, y->n_kept, sizeof *y->most);
    y->sum = qkvi_cut(cutter, y->n_kept, sizeof *y->sum);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Queries from i0 on against the block of keys in the slot; those before r->i0 are left out. */
static void run_block(const pass *y, const qkvi_columns_slot *slot, int64_t i0, int64_t i1,
                      int64_t block) {
    const qkvi_rectangle *r = y->r;
    const int64_t key0 = (y->first + block) * QKVI_KEY_BLOCK;
    const int64_t j0 = qkvi_max_i64(key0, r->j0), j1 = qkvi_min_i64(key0 + QKVI_KEY_BLOCK, r->j1);
    const int64_t at = (i0 - y->i0) * y->n_blocks + block;
    qkvi_attend a;
    qkvi_columns c;
    if (!qkvi_columns_open(&y->how, slot, &y->rules, r->b, r->h, i0, i1, key0, &a, &c)) {
        for (int64_t i = 0; i < i1 - i0; i++) {
            y->most[at + i * y->n_blocks] = -INFINITY;
            y->sum[at + i * y->n_blocks] = 0;
        }
        return;
    }
    y->how.kernels->columns->weights(&c, y->most + at, y->sum + at, y->n_blocks);
    for (int64_t i = qkvi_max_i64(i0, r->i0); j0 < j1 && i < i1; i++)
        memcpy(r->out + (i - r->i0) * r->row + (j0 - r->j0),
               slot->scratch->s + (i - i0) * QKVI_SCORE_ROW + (j0 - key0),
               (size_t)(j1 - j0) * sizeof *r->out);
}

static void run_blocks(void *argument, int thread) {
    pass *y = argument;
    const qkvi_columns_slot *slot = &y->slots[thread];
    const int64_t g = y->r->h / y->p->heads_per_kv;
    qkvi_columns_begin_slot(slot);
    for (int64_t n; !qkvi_watch_cancelled(&y->watch) &&
                    (n = atomic_fetch_add(&y->next, 1), n < y->n_blocks);) {
        qkvi_columns_keys(&y->how, slot, &y->rules, y->r->b, g, (y->first + n) * QKVI_KEY_BLOCK);
        for (int64_t i = y->i0; i < y->i1; i += QKVI_QUERY_BLOCK)
            run_block(y, slot, i, qkvi_min_i64(i + QKVI_QUERY_BLOCK, y->i1), n);
        qkvi_watch_done_one(&y->watch);
    }
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* What e of each block must be multiplied by, in place of its sum. false: all weights are 0. */
static bool find_factors(const pass *y, const double *most, double *sum) {
    const double sink = y->p->sinks ? (double)y->p->sinks[y->r->h] : -INFINITY;
    double greatest = sink, all = 0;
    for (int64_t n = 0; n < y->n_blocks; n++)
        if (most[n] > greatest) greatest = most[n];
    if (greatest == -INFINITY) return false;
    for (int64_t n = 0; n < y->n_blocks; n++) all += sum[n] * vd_exp_one(most[n] - greatest);
    all += vd_exp_one(sink - greatest);
    for (int64_t n = 0; n < y->n_blocks; n++) sum[n] = vd_exp_one(most[n] - greatest) / all;
    return true;
}

static void finish_row(const pass *y, int64_t i, float *out) {
    const qkvi_rectangle *r = y->r;
    const float lse = y->p->lse[qkvi_q_at(y->p, y->p->lse_stride, r->b, r->h, i)];
    double *factor = y->sum + (i - y->i0) * y->n_blocks;
    if (isnan(lse) || lse == INFINITY) {
        for (int64_t j = r->j0; j < r->j1; j++) out[j - r->j0] = NAN;
        return;
    }
    const bool any =
        lse > -INFINITY && find_factors(y, y->most + (i - y->i0) * y->n_blocks, factor);
    for (int64_t j = r->j0, end; j < r->j1; j = end) {
        const int64_t n = j / QKVI_KEY_BLOCK - y->first;
        const double by = any && n >= 0 && n < y->n_blocks ? factor[n] : 0;
        end = qkvi_min_i64((j / QKVI_KEY_BLOCK + 1) * QKVI_KEY_BLOCK, r->j1);
        for (int64_t t = j - r->j0; t < end - r->j0; t++)
            out[t] = by > 0 ? (float)((double)out[t] * by) : 0;
    }
}

static void finish_rows(void *argument, int thread) {
    pass *y = argument;
    const qkvi_rectangle *r = y->r;
    const int64_t from = qkvi_max_i64(y->i0, r->i0);
    (void)thread;
    for (int64_t n; n = from + atomic_fetch_add(&y->next, ROWS_AT_ONCE), n < y->i1;)
        for (int64_t i = n; i < qkvi_min_i64(n + ROWS_AT_ONCE, y->i1); i++)
            finish_row(y, i, r->out + (i - r->i0) * r->row);
}

/* ---- The call -------------------------------------------------------------------------------- */

static void run(pass *y, qkvi_pool *pool, int64_t end) {
    for (y->i0 = y->begin; y->i0 < end; y->i0 = y->i1) {
        y->i1 = qkvi_min_i64(y->i0 + y->wave, end);
        atomic_store(&y->next, 0);
        qkvi_pool_run(pool, y->n_threads, run_blocks, y);
        if (qkvi_watch_cancelled(&y->watch)) return;
        atomic_store(&y->next, 0);
        qkvi_pool_run(pool, y->n_threads, finish_rows, y);
    }
}

static qkv_status weights(qkv_ctx *ctx, const qkvi_problem *p, const qkvi_rectangle *r,
                          const qkv_call_options *call) {
    const qkvi_rules rules = qkvi_rules_of(p, r->b);
    const int64_t end = qkvi_max_i64(qkvi_min_i64(r->i1, rules.n_queries), r->i0);
    pass y = { .r = r, .rules = rules };
    qkvi_cutter cutter = { 0 };
    qkvi_range keys = { 0, 0 };
    size_t bytes = 0;
    void *block;
    y.begin = p->block_len ? r->i0 / 32 * 32 : r->i0; /* 32 rows have one list */
    if (r->i0 < end) keys = qkvi_keys_of_block(&rules, y.begin, end);
    y.first = keys.begin / QKVI_KEY_BLOCK;
    plan(&y, p, ctx, end - y.begin,
         keys.begin < keys.end ? qkvi_ceil_div(keys.end, QKVI_KEY_BLOCK) - y.first : 0);
    lay_out(&cutter, &y);
    QKV_TRY(qkvi_ctx_measured(ctx, &cutter, &bytes));
    QKV_TRY(qkvi_ctx_workspace(ctx, call, bytes, &block));
    cutter = qkvi_cutter_on(block);
    lay_out(&cutter, &y);
    y.watch =
        qkvi_watch_begin(call, y.n_blocks * qkvi_ceil_div(end - y.begin, qkvi_max_i64(y.wave, 1)));
    if (r->i0 < end) run(&y, ctx->pool, end);
    for (int64_t i = end; i < r->i1 && r->j0 < r->j1; i++) /* not there */
        memset(r->out + (i - r->i0) * r->row, 0, (size_t)(r->j1 - r->j0) * sizeof *r->out);
    return qkvi_watch_end(&y.watch, ctx);
}

qkv_status qkvi_weights_bytes(const qkvi_problem *p, qkv_ctx *ctx, size_t *bytes) {
    pass y = { .r = NULL };
    qkvi_cutter cutter = { 0 };
    plan(&y, p, ctx, p->len_q, qkvi_ceil_div(p->len_k, QKVI_KEY_BLOCK));
    lay_out(&cutter, &y);
    return qkvi_ctx_measured(ctx, &cutter, bytes);
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
