/* See backward_part.h. */
#include "attn/backward_part.h"

#include <string.h>

#include "attn/backward_block.h"
#include "attn/backward_rows.h"
#include "attn/dropout.h"
#include "attn/watch.h"

typedef struct pass {
    const qkvi_backward_part *part;
    const qkvi_kernels *kernels;
    int n_threads;
    qkvi_bwd_slot *slots;
    int64_t n_tasks, n_blocks; /* of all heads, of one */
    atomic_llong next;
    qkvi_watch watch; /* of tasks */
} pass;

/* ---- Sums of keys ---------------------------------------------------------------------------- */

void qkvi_key_sums_lay_out(const qkvi_problem *p, int64_t first, int64_t end, qkvi_cutter *cutter,
                           qkvi_key_sums *s) {
    s->first = first;
    s->end = end;
    s->n_heads = p->n_batch * p->n_kv_heads;
    s->n_blocks = first < end ? qkvi_ceil_div(end, QKVI_BWD_KEYS) - first / QKVI_BWD_KEYS : 0;
    s->k_elems = QKVI_BWD_KEYS * qkvi_round_up(p->head_dim, QKVI_BWD_PANEL);
    s->v_elems = QKVI_BWD_KEYS * qkvi_round_up(p->head_dim_v, QKVI_BWD_PANEL);
    s->d_k = qkvi_cut(cutter, s->n_heads * s->n_blocks, (size_t)s->k_elems * sizeof *s->d_k);
    s->d_v = qkvi_cut(cutter, s->n_heads * s->n_blocks, (size_t)s->v_elems * sizeof *s->d_v);
}

void qkvi_key_sums_begin(const qkvi_key_sums *s) {
    const int64_t n = s->n_heads * s->n_blocks;
    if (n > 0 && s->k_elems > 0) memset(s->d_k, 0, (size_t)(n * s->k_elems) * sizeof *s->d_k);
    if (n > 0 && s->v_elems > 0) memset(s->d_v, 0, (size_t)(n * s->v_elems) * sizeof *s->d_v);
}

/* ---- Queries of one block -------------------------------------------------------------------- */

/* 32 queries from a multiple of 32 on share a list of blocks: a first group may be shorter. */
static int64_t rows_before_seam(const qkvi_problem *p) {
    if (!p->block_len) return 0;
    return qkvi_min_i64(qkvi_round_up(p->first_q, 32) - p->first_q, p->len_q);
}

static int64_t count_query_blocks(const qkvi_problem *p) {
    const int64_t before = rows_before_seam(p);
    return (before > 0) + qkvi_ceil_div(p->len_q - before, QKVI_BWD_QUERIES);
}

/* Rows of block n. */
static qkvi_range query_block(const qkvi_problem *p, const qkvi_rules *rules, int64_t n) {
    const int64_t before = rows_before_seam(p);
    if (before > 0 && n == 0) return (qkvi_range){ 0, qkvi_min_i64(before, rules->n_queries) };
    const int64_t begin = before + (n - (before > 0)) * QKVI_BWD_QUERIES;
    return (qkvi_range){ begin, qkvi_min_i64(begin + QKVI_BWD_QUERIES, rules->n_queries) };
}

static bool meets(const qkvi_bwd_piece *w, qkvi_range rows) {
    if (rows.begin >= rows.end) return false;
    const qkvi_range keys = qkvi_keys_of_block(&w->rules, rows.begin, rows.end);
    return keys.begin < w->key + w->n_keys && keys.end > qkvi_max_i64(w->key, w->first);
}

/* The block of keys that has key `key`, packed; of no keys n_keys is 0. */
static qkvi_bwd_piece pack(const pass *x, const qkvi_bwd_slot *slot, int64_t b, int64_t g,
                           int64_t block) {
    const qkvi_backward_part *const part = x->part;
    qkvi_bwd_piece w = { .b = b,
                         .g = g,
                         .block = block,
                         .key = block * QKVI_BWD_KEYS,
                         .first = part->begin,
                         .limit = part->end,
                         .rules = qkvi_rules_of(part->p, b) };
    qkvi_bwd_pack_keys(part->p, x->kernels, &w, slot);
    return w;
}

/* ---- d_q ------------------------------------------------------------------------------------- */

static void add_to_d_q(const pass *x, const qkvi_bwd_piece *w, const qkvi_bwd_slot *slot, int64_t h,
                       qkvi_range rows) {
    const qkvi_problem *const p = x->part->p;
    qkvi_dropout dropout;
    struct qkvi_bwd_block a = qkvi_bwd_open(p, x->part->g, x->kernels, w, slot, h, rows.begin,
                                            rows.end - rows.begin, &dropout);
    a.d_q = x->part->d_q + ((w->b * p->n_heads + h) * p->len_q + rows.begin) * p->head_dim;
    a.d_q_stride = p->head_dim;
    x->kernels->bwd->mask(&a, false, false);
    x->kernels->bwd->queries(&a);
}

/* A block of queries of all heads of a group, against all keys of the part. */
static void run_queries(const pass *x, const qkvi_bwd_slot *slot, int64_t head, int64_t n) {
    const qkvi_backward_part *const part = x->part;
    const qkvi_problem *const p = part->p;
    const int64_t b = head / p->n_kv_heads, g = head % p->n_kv_heads;
    const qkvi_rules rules = qkvi_rules_of(p, b);
    const qkvi_range rows = query_block(p, &rules, n);
    if (rows.begin >= rows.end) return;
    const qkvi_range all = qkvi_keys_of_block(&rules, rows.begin, rows.end);
    const int64_t end = qkvi_min_i64(all.end, part->end);
    const int64_t first = qkvi_max_i64(all.begin, part->begin) / QKVI_BWD_KEYS;
    for (int64_t block = first; block * QKVI_BWD_KEYS < end; block++) {
        const qkvi_bwd_piece w = pack(x, slot, b, g, block);
        if (!meets(&w, rows)) continue;
        for (int64_t e = 0; e < p->heads_per_kv; e++)
            add_to_d_q(x, &w, slot, g * p->heads_per_kv + e, rows);
    }
}

/* ---- d_k and d_v ----------------------------------------------------------------------------- */

/* A block of keys against all queries of the part. */
static void run_keys(const pass *x, const qkvi_bwd_slot *slot, int64_t head, int64_t n) {
    const qkvi_backward_part *const part = x->part;
    const qkvi_problem *const p = part->p;
    const qkvi_key_sums *const sums = part->sums;
    const int64_t n_query_blocks = count_query_blocks(p);
    const qkvi_bwd_piece w =
        pack(x, slot, head / p->n_kv_heads, head % p->n_kv_heads, part->begin / QKVI_BWD_KEYS + n);
    for (int64_t block = 0; block < n_query_blocks; block++) {
        const qkvi_range rows = query_block(p, &w.rules, block);
        qkvi_dropout dropout;
        if (!meets(&w, rows)) continue;
        struct qkvi_bwd_block a = qkvi_bwd_open(p, part->g, x->kernels, &w, slot, w.g, rows.begin,
                                                rows.end - rows.begin, &dropout);
        a.d_k = sums->d_k + (head * sums->n_blocks + n) * sums->k_elems;
        a.d_v = sums->d_v + (head * sums->n_blocks + n) * sums->v_elems;
        x->kernels->bwd->keys(&a);
    }
}

/* ---- The call -------------------------------------------------------------------------------- */

static void run_task(void *argument, int thread) {
    pass *const x = argument;
    for (int64_t n; n = atomic_fetch_add(&x->next, 1), n < x->n_tasks;) {
        const int64_t head = n / x->n_blocks, block = n % x->n_blocks;
        if (x->part->d_q)
            run_queries(x, &x->slots[thread], head, block);
        else
            run_keys(x, &x->slots[thread], head, block);
        qkvi_watch_done_one(&x->watch);
    }
}

static void lay_out(qkvi_cutter *cutter, const qkvi_problem *p, int n_threads, pass *x) {
    qkvi_bwd_slot measured;
    x->n_threads = n_threads;
    x->slots = qkvi_cut(cutter, n_threads, sizeof *x->slots);
    for (int n = 0; n < n_threads; n++)
        qkvi_bwd_lay_out_slot(cutter, p, x->slots ? &x->slots[n] : &measured);
}

qkv_status qkvi_backward_part_workspace(qkv_ctx *ctx, const qkvi_problem *p, size_t *bytes) {
    qkvi_cutter cutter = { 0 };
    pass x;
    lay_out(&cutter, p, qkvi_pool_threads(ctx->pool), &x);
    return qkvi_ctx_measured(ctx, &cutter, bytes);
}

qkv_status qkvi_backward_run_part(qkv_ctx *ctx, const qkvi_backward_part *part,
                                  const qkv_call_options *call) {
    const qkvi_problem *const p = part->p;
    pass x = { .part = part, .kernels = ctx->kernels };
    size_t bytes;
    void *block;
    QKV_TRY(qkvi_backward_part_workspace(ctx, p, &bytes));
    QKV_TRY(qkvi_ctx_workspace(ctx, call, bytes, &block));
    qkvi_cutter cutter = qkvi_cutter_on(block);
    lay_out(&cutter, p, qkvi_pool_threads(ctx->pool), &x);
    x.n_blocks = part->d_q ? count_query_blocks(p) : part->sums->n_blocks;
    x.n_tasks = p->heads_per_kv ? p->n_batch * p->n_kv_heads * x.n_blocks : 0;
    if (part->begin >= part->end || p->len_q == 0) return QKV_OK;
    x.watch = qkvi_watch_begin(call, x.n_tasks);
    if (x.n_tasks > 0) qkvi_pool_run(ctx->pool, x.n_threads, run_task, &x);
    return QKV_OK;
}

void qkvi_backward_part_deltas(const qkv_ctx *ctx, const qkvi_problem *p, const qkvi_grads *g,
                               float *delta) {
    qkvi_backward_deltas(p, g, ctx->kernels, delta);
}

void qkvi_backward_part_sinks(const qkv_ctx *ctx, const qkvi_problem *p, const qkvi_grads *g,
                              const float *sinks, float *blocks, int64_t row) {
    _Alignas(64) float lse[QKVI_BWD_QUERIES], delta[QKVI_BWD_QUERIES];
    for (int64_t head = 0; head < p->n_batch * p->n_heads; head++) {
        const int64_t b = head / p->n_heads, h = head % p->n_heads;
        const qkvi_rules rules = qkvi_rules_of(p, b);
        for (int64_t i0 = 0, n; i0 < rules.n_queries; i0 += QKVI_BWD_QUERIES) {
            n = qkvi_min_i64(QKVI_BWD_QUERIES, rules.n_queries - i0);
            qkvi_backward_rows(p, g, ctx->kernels, b, h, i0, n, lse, delta);
            blocks[head * row + i0 / QKVI_BWD_QUERIES] =
                ctx->kernels->bwd->sink((int)n, sinks[h], lse, delta);
        }
    }
}

/* ---- Results --------------------------------------------------------------------------------- */

void qkvi_backward_store_d_q(const qkv_ctx *ctx, const qkvi_problem *p, const qkvi_grads *g,
                             const float *d_q) {
    for (int64_t head = 0; p->len_q && p->head_dim && head < p->n_batch * p->n_heads; head++) {
        const int64_t b = head / p->n_heads, h = head % p->n_heads;
        const int64_t n = qkvi_rows_that_count(p, b);
        if (n > 0)
            ctx->kernels->rows->store[p->dtype](
                d_q + head * p->len_q * p->head_dim, p->head_dim, n, p->head_dim, 1,
                qkvi_elem(g->d_q, p->dtype, qkvi_q_at(p, g->d_q_stride, b, h, 0)),
                g->d_q_stride[2]);
    }
}

/*
 * Rows [begin, end) of a block of sums, times scale; those from n_keys on, which no query sees, are
 * 0.
 */
static void store_block(const qkv_ctx *ctx, qkv_dtype type, const float *sums, int64_t begin,
                        int64_t end, int64_t n_keys, int64_t dim, float scale, char *to,
                        int64_t stride) {
    const int64_t bytes = qkvi_dtype_bytes(type), seen = qkvi_min_i64(end, n_keys);
    for (int64_t d = 0; d < dim && begin < seen; d += QKVI_BWD_PANEL)
        ctx->kernels->rows->store[type](
            sums + d * QKVI_BWD_KEYS + begin * QKVI_BWD_PANEL, QKVI_BWD_PANEL, seen - begin,
            qkvi_min_i64(QKVI_BWD_PANEL, dim - d), scale, to + d * bytes, stride);
    for (int64_t j = qkvi_max_i64(begin, seen); j < end; j++)
        memset(to + (j - begin) * stride * bytes, 0, (size_t)(dim * bytes));
}

void qkvi_backward_store_keys(const qkv_ctx *ctx, const qkvi_problem *p, const qkvi_grads *g,
                              const qkvi_key_sums *s) {
    const float factor = qkvi_dropout_factor(p);
    for (int64_t n = 0; n < s->n_heads * s->n_blocks; n++) {
        const int64_t head = n / s->n_blocks, b = head / p->n_kv_heads, kv = head % p->n_kv_heads;
        const int64_t key = (s->first / QKVI_BWD_KEYS + n % s->n_blocks) * QKVI_BWD_KEYS;
        const int64_t begin = qkvi_max_i64(key, s->first) - key;
        const int64_t end = qkvi_min_i64(key + QKVI_BWD_KEYS, s->end) - key;
        const int64_t n_keys = qkvi_max_i64(qkvi_rules_of(p, b).n_keys - key, 0);
        const int64_t k_at = qkvi_k_at(p, g->d_k_stride, b, kv, key + begin);
        const int64_t v_at = qkvi_k_at(p, g->d_v_stride, b, kv, key + begin);
        if (p->head_dim)
            store_block(ctx, p->dtype, s->d_k + n * s->k_elems, begin, end, n_keys, p->head_dim,
                        p->scale, qkvi_elem(g->d_k, p->dtype, k_at), g->d_k_stride[2]);
        if (p->head_dim_v)
            store_block(ctx, p->dtype, s->d_v + n * s->v_elems, begin, end, n_keys, p->head_dim_v,
                        factor, qkvi_elem(g->d_v, p->dtype, v_at), g->d_v_stride[2]);
    }
}
