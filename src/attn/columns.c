/*
 * The pass over columns: who computes what. A block against a block is columns_block.c's and the
 * kernel's (kernels/tmpl/columns.h), the order of sums docs/numerics.md's.
 *
 * A task is a block of 256 keys of one key/value head, or with diagonals every eighth, from the
 * lane's first on: its keys are packed once, met by all blocks of 96 queries in order, and
 * finished, so what is of a key needs no other piece. Diagonals and tiles have sums of each lane
 * and each block, which are added in order when the head is done (columns_map.c). So heads go in
 * waves, which bounds these sums.
 */
#include "attn/columns.h"

#include <string.h>

#include "attn/problem.h"
#include "attn/watch.h"

enum { WAVE_BYTES = 1 << 22 }; /* sums of heads that are under way, where one has few */

typedef struct pass {
    const qkvi_columns_problem *x;
    qkvi_columns_how how;
    int n_threads;
    int64_t n_heads; /* key/value heads of all batches */
    int64_t n_wave;  /* of them that are under way together */
    int64_t n_parts; /* tasks of a head */
    qkvi_columns_slot *slots;
    qkvi_columns_map map;
    int64_t first, n_now; /* heads under way */
    atomic_llong next;
    qkvi_watch watch; /* of tasks */
} pass;

/* ---- Plan ------------------------------------------------------------------------------------ */

static bool works(const qkvi_columns_problem *x) {
    return x->p.n_batch > 0 && x->p.heads_per_kv > 0;
}

/* Heads that are under way together: as many as threads, or as have small sums. */
static int64_t wave_of(const pass *y) {
    const qkvi_columns_problem *x = y->x;
    const qkv_attention_columns *want = &x->want;
    const double n_pairs = (double)x->p.len_k / QKVI_KEY_BLOCK + (double)want->n_tiles_k;
    const double tiles = (double)want->n_tiles_q * (8 + (x->tiles ? 12 * n_pairs : 0));
    const double bytes = tiles + 16 * QKVI_COLUMN_LANES * (double)want->n_diagonals +
                         (x->p.sinks ? (double)x->p.len_q : 0);
    const double n = WAVE_BYTES / (1 + bytes * (double)x->p.heads_per_kv);
    const int64_t most = n < (double)y->n_heads ? (int64_t)n : y->n_heads;
    return qkvi_min_i64(y->n_heads, qkvi_max_i64(y->n_threads, most));
}

static void plan(pass *y, const qkvi_columns_problem *x, const qkv_ctx *ctx) {
    const qkvi_problem *p = &x->p;
    const bool scores = x->all || x->want.received || p->sinks; /* else rows are only counted */
    const int64_t n_blocks =
        x->by_key || (qkvi_rows_q(p) > 0 && scores) ? qkvi_ceil_div(p->len_k, QKVI_KEY_BLOCK) : 0;
    y->x = x;
    y->how = qkvi_columns_how_of(p, ctx);
    y->n_heads = works(x) ? p->n_batch * p->n_kv_heads : 0;
    y->n_parts = x->diagonals ? qkvi_min_i64(n_blocks, QKVI_COLUMN_LANES) : n_blocks;
    const double tasks = (double)y->n_heads * (double)y->n_parts;
    y->n_threads = qkvi_columns_threads(p, ctx, tasks < 1e6 ? (int64_t)tasks : 1000000);
    y->n_wave = wave_of(y);
}

static void lay_out(qkvi_cutter *cutter, pass *y) {
    qkvi_columns_slot measured;
    y->slots = qkvi_cut(cutter, y->n_threads, sizeof *y->slots);
    for (int n = 0; n < y->n_threads; n++)
        qkvi_columns_lay_out_slot(cutter, &y->how, y->x->tiles,
                                  y->slots ? &y->slots[n] : &measured);
    qkvi_columns_lay_out_map(cutter, y->x, y->n_wave * y->x->p.heads_per_kv, &y->map);
    y->map.has_sums = y->n_parts > 0;
}

static qkv_status size_of(pass *y, qkv_ctx *ctx, size_t *bytes) {
    qkvi_cutter cutter = { 0 };
    lay_out(&cutter, y);
    return qkvi_ctx_measured(ctx, &cutter, bytes);
}

/* ---- A block of keys ------------------------------------------------------------------------- */

/* Rows beside a sink: the only ones whose lse does not tell whether they saw a key. */
static void note_rows(const pass *y, const qkvi_columns *c, int64_t n) {
    uint8_t *seen = y->map.row_seen + n * y->x->p.len_q + c->i0;
    for (int i = 0; i < c->a->n_queries; i++)
        if (c->own->saw[i / 32] >> i % 32 & 1) __atomic_store_n(&seen[i], 1, __ATOMIC_RELAXED);
}

/* Head h of batch b, number n of those under way, against the keys in the slot. */
static void run_block(const pass *y, const qkvi_columns_slot *slot, const qkvi_rules *rules,
                      int64_t n, int64_t b, int64_t h, int64_t key0) {
    const qkvi_columns_problem *x = y->x;
    const qkv_attention_columns *want = &x->want;
    const qkvi_problem *p = &x->p;
    const int64_t all_keys = qkvi_min_i64(key0 + QKVI_KEY_BLOCK, qkvi_len_k(p, b));
    const int64_t end = qkvi_min_i64(key0 + QKVI_KEY_BLOCK, rules->n_keys);
    qkvi_range rows = { 0, 0 };
    qkvi_columns_begin_keys(slot->own);
    if (x->tiles) qkvi_columns_begin_tiles(x, &y->map, n, b, key0, slot->tiles);
    if (key0 < end) rows = qkvi_queries_of_block(rules, key0, end);
    for (int64_t i0 = rows.begin / QKVI_QUERY_BLOCK * QKVI_QUERY_BLOCK; i0 < rows.end;
         i0 += QKVI_QUERY_BLOCK) {
        const int64_t i1 = qkvi_min_i64(i0 + QKVI_QUERY_BLOCK, rules->n_queries);
        qkvi_attend a;
        qkvi_columns c;
        if (!qkvi_columns_open(&y->how, slot, rules, b, h, i0, i1, key0, &a, &c)) continue;
        c.all = x->all;
        c.tiny = want->tiny;
        if (want->row_weights) {
            c.weights = want->row_weights + qkvi_q_at(p, want->row_weights_stride, b, h, i0);
            c.weights_row = want->row_weights_stride[2];
        }
        if (x->tiles && slot->tiles->n_cols > 0) {
            qkvi_columns_tile_rows(x, rules, &y->map, i0, i1, slot->tiles);
            c.tiles = slot->tiles;
        }
        if (x->diagonals) {
            const int64_t lane = key0 / QKVI_KEY_BLOCK % QKVI_COLUMN_LANES;
            const int64_t at = (n * QKVI_COLUMN_LANES + lane) * want->n_diagonals;
            c.diagonal = y->map.diagonal + at;
            c.diagonal_rows = y->map.diagonal_rows + at;
            c.n_diagonals = want->n_diagonals;
            c.first = i0 + rules->offset - key0 - want->first_diagonal;
        }
        y->how.kernels->columns->block(&c);
        if (y->map.row_seen) note_rows(y, &c, n);
    }
    qkvi_columns_end_keys(x, y->how.kernels, slot->own, b, h, key0, (qkvi_range){ key0, all_keys });
}

/* ---- All tasks ------------------------------------------------------------------------------- */

static void clear_diagonals(const pass *y, int64_t n, int64_t lane) {
    const int64_t n_diagonals = y->x->want.n_diagonals;
    const int64_t at = (n * QKVI_COLUMN_LANES + lane) * n_diagonals;
    memset(y->map.diagonal + at, 0, (size_t)n_diagonals * sizeof *y->map.diagonal);
    memset(y->map.diagonal_rows + at, 0, (size_t)n_diagonals * sizeof *y->map.diagonal_rows);
}

/* Part `part` of key/value head number `head`, the n-th of those under way. */
static void run_part(pass *y, const qkvi_columns_slot *slot, int64_t head, int64_t part) {
    const qkvi_problem *p = &y->x->p;
    const int64_t b = head / p->n_kv_heads, g = head % p->n_kv_heads;
    const int64_t n = (head - y->first) * p->heads_per_kv, h0 = g * p->heads_per_kv;
    const int64_t step = y->x->diagonals ? QKVI_COLUMN_LANES : INT64_MAX / QKVI_KEY_BLOCK;
    const qkvi_rules rules = qkvi_rules_of(p, b);
    for (int64_t e = 0; y->x->diagonals && e < p->heads_per_kv; e++)
        clear_diagonals(y, n + e, part);
    for (int64_t key0 = part * QKVI_KEY_BLOCK; key0 < qkvi_len_k(p, b);) {
        qkvi_columns_keys(&y->how, slot, &rules, b, g, key0);
        for (int64_t e = 0; e < p->heads_per_kv; e++)
            run_block(y, slot, &rules, n + e, b, h0 + e, key0);
        if (!y->x->diagonals || qkvi_watch_cancelled(&y->watch)) return;
        key0 += step * QKVI_KEY_BLOCK;
    }
}

/* Early blocks of keys first: under a causal mask they are the longest. */
static void run_task(void *argument, int thread) {
    pass *y = argument;
    const qkvi_columns_slot *slot = &y->slots[thread];
    qkvi_columns_begin_slot(slot);
    while (!qkvi_watch_cancelled(&y->watch)) {
        const int64_t nth = atomic_fetch_add(&y->next, 1);
        if (nth >= y->n_now * y->n_parts) return;
        run_part(y, slot, y->first + nth % y->n_now, nth / y->n_now);
        qkvi_watch_done_one(&y->watch);
    }
}

static void finish_task(void *argument, int thread) {
    pass *y = argument;
    const qkvi_problem *p = &y->x->p;
    (void)thread;
    for (int64_t n; n = atomic_fetch_add(&y->next, 1), n < y->n_now * p->heads_per_kv;) {
        const int64_t head = y->first + n / p->heads_per_kv;
        const int64_t h = head % p->n_kv_heads * p->heads_per_kv + n % p->heads_per_kv;
        qkvi_columns_finish_head(y->x, &y->map, n, head / p->n_kv_heads, h);
    }
}

static void run_wave(pass *y, qkvi_pool *pool) {
    const qkvi_problem *p = &y->x->p;
    if (y->map.row_seen)
        memset(y->map.row_seen, 0, (size_t)(y->n_now * p->heads_per_kv * p->len_q));
    atomic_store(&y->next, 0);
    if (y->n_parts > 0) qkvi_pool_run(pool, y->n_threads, run_task, y);
    atomic_store(&y->next, 0);
    if (!qkvi_watch_cancelled(&y->watch)) qkvi_pool_run(pool, y->n_threads, finish_task, y);
}

/* ---- The call -------------------------------------------------------------------------------- */

static qkv_status columns(qkv_ctx *ctx, const qkvi_columns_problem *x,
                          const qkv_call_options *call) {
    pass y = { .n_heads = 0 };
    size_t bytes = 0;
    void *block;
    plan(&y, x, ctx);
    QKV_TRY(size_of(&y, ctx, &bytes));
    QKV_TRY(qkvi_ctx_workspace(ctx, call, bytes, &block));
    qkvi_cutter cutter = qkvi_cutter_on(block);
    lay_out(&cutter, &y);
    y.watch = qkvi_watch_begin(call, y.n_heads * y.n_parts);
    qkvi_columns_begin_counts(x);
    for (y.first = 0; y.first < y.n_heads; y.first += y.n_wave) {
        y.n_now = qkvi_min_i64(y.n_wave, y.n_heads - y.first);
        run_wave(&y, ctx->pool);
    }
    return qkvi_watch_end(&y.watch, ctx);
}

qkv_status qkv_attention_columns_pass(qkv_ctx *ctx, const qkv_attention_desc *desc, const void *q,
                                      const void *k, const float *lse,
                                      const qkv_attention_columns *given,
                                      const qkv_call_options *call) {
    qkvi_columns_problem x;
    qkv_call_options options;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = qkvi_call_read(call, &options, &ctx->error);
    if (status == QKV_OK)
        status = qkvi_columns_read(desc, q, k, lse, given, &options, &x, &ctx->error);
    if (status == QKV_OK) status = columns(ctx, &x, &options);
    return qkvi_ctx_end(ctx, status);
}

qkv_status qkv_attention_columns_workspace(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                           const qkv_attention_columns *given, size_t *bytes) {
    qkvi_columns_problem x;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = qkvi_columns_shape(desc, given, &x, &ctx->error);
    if (status == QKV_OK && !bytes) status = qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "bytes is NULL");
    if (status == QKV_OK && qkvi_columns_asks_nothing(&x)) {
        status = qkvi_weights_bytes(&x.p, ctx, bytes);
    } else if (status == QKV_OK) {
        pass y = { .n_heads = 0 };
        plan(&y, &x, ctx);
        status = size_of(&y, ctx, bytes);
    }
    return qkvi_ctx_end(ctx, status);
}
