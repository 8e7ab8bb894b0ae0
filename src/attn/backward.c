/*
 * Backward pass: who computes what, in which order. The products are in kernels/tmpl/attend_bwd.h.
 *
 * One pass over key blocks (Dao et al. 2022, algorithm 4, with the loops over keys outside): a
 * piece of work is one block of
 * 256 keys of one key/value head. It walks the query blocks of all query heads that share the head, recomputes P and dS from
 * lse, sums dK and dV of its keys in scratch, and adds to the dQ of each query block. Different
 * pieces of the same head meet only there, so the dQ of a query block is handed from key block to
 * key block: block c adds only after block c - 1 has. Pieces are drawn in this order, so whoever
 * waits waits for one that runs, and the bits depend on nobody's speed.
 *
 * Memory: per thread the packed blocks and sums, of a size that does not depend on the lengths; and
 * one counter per query block where there is more than one key block. With gradients of 16 bits,
 * sums of d_q of the heads that are under way (d_q_sums.h).
 */
#include <sched.h>
#include <string.h>

#include "attn/backward_mask.h"
#include "attn/backward_rows.h"
#include "attn/blocks.h"
#include "attn/d_q_sums.h"
#include "attn/dropout.h"
#include "attn/explain.h"
#include "attn/mask.h"
#include "attn/seen.h"
#include "attn/watch.h"
#include "kernels/table.h"

enum { SERIAL_PRODUCTS = 100000 }; /* below it waking a thread costs more than it brings */

typedef qkvi_bwd_slot slot;
typedef qkvi_bwd_piece piece;

typedef struct pass {
    const qkvi_problem *p;
    const qkvi_grads *g;
    const struct qkvi_kernels *kernels;
    int64_t n_turns;      /* query blocks of a head, in all batches */
    int64_t n_key_blocks; /* of a key/value head, in all batches */
    int64_t n_pieces;
    bool serial;
    int n_slots;
    slot *slots;
    atomic_llong *turn; /* [head][query block]: 1 + the last key block that added to its d_q */
    qkvi_d_q_sums d_q;
    atomic_llong next;
    qkvi_watch watch; /* of pieces */
} pass;

/* ---- Workspace ------------------------------------------------------------------------------- */

/* Whether some gradient has elements: sizes beside a 0 may be so huge that no loop over them ends. */
static bool has_outputs(const qkvi_problem *p) {
    const bool d_q = p->heads_per_kv && qkvi_rows_q(p) && p->head_dim;
    return d_q || (qkvi_rows_k(p) && (p->head_dim || p->head_dim_v));
}

/* Numbers of the first blocks of a batch: sequence.h. */
static int64_t query_block(const qkvi_problem *p, int64_t b) {
    return qkvi_first_block(p->cu_q, p->len_q, QKVI_BWD_QUERIES, b);
}
static int64_t key_block(const qkvi_problem *p, int64_t b) {
    return qkvi_first_block(p->cu_k, p->len_k, QKVI_BWD_KEYS, b);
}

/* Later keys have later queries only: pieces of several heads take turns. See piece_at. */
static bool takes_turns(const qkvi_problem *p) {
    return p->causal || p->window_left < QKVI_NO_WINDOW;
}

static void plan(pass *x, const qkvi_problem *p, const qkv_ctx *ctx) {
    const double products = qkvi_pairs(p) * (double)(p->head_dim + p->head_dim_v);
    x->serial = products < SERIAL_PRODUCTS;
    const int64_t threads = x->serial ? 1 : qkvi_pool_threads(ctx->pool);
    x->p = p;
    x->kernels = ctx->kernels;
    x->n_turns = qkvi_rows_q(p) ? query_block(p, p->n_batch) : 0;
    x->n_key_blocks = has_outputs(p) ? key_block(p, p->n_batch) : 0;
    x->n_pieces = p->n_kv_heads * x->n_key_blocks;
    x->n_slots = (int)qkvi_min_i64(threads, x->n_pieces);
    if (x->n_slots == 0 && qkvi_adds(p)) x->n_slots = 1; /* d_mask may have elements even so */
}

static void lay_out(qkvi_cutter *cutter, pass *x) {
    const qkvi_problem *p = x->p;
    slot measured;
    x->slots = qkvi_cut(cutter, x->n_slots, sizeof *x->slots);
    for (int n = 0; n < x->n_slots; n++)
        qkvi_bwd_lay_out_slot(cutter, p, x->slots ? &x->slots[n] : &measured);
    x->turn = NULL;
    if (p->len_k > QKVI_BWD_KEYS)
        x->turn = qkvi_cut(cutter, p->n_heads * x->n_turns, sizeof *x->turn);
    const int64_t at_once = (int64_t)x->n_slots * (takes_turns(p) ? 2 : 1); /* d_q_sums.h */
    qkvi_d_q_lay_out(cutter, p, qkvi_min_i64(at_once, p->n_batch * p->n_kv_heads), &x->d_q);
}

/* ---- One block of queries against one of keys ------------------------------------------------ */

static void zero_rows(void *x, qkv_dtype type, int64_t stride, int64_t n, int64_t dim) {
    const int64_t bytes = qkvi_dtype_bytes(type);
    if (dim == 0) return; /* x may be NULL */
    for (int64_t i = 0; i < n; i++)
        memset((char *)x + i * stride * bytes, 0, (size_t)(dim * bytes));
}

static void wait_for_turn(atomic_llong *turn, int64_t mine) {
    for (int spins = 0; atomic_load_explicit(turn, memory_order_acquire) != mine;)
        if (++spins > 64) sched_yield();
}

/* d_q of the block from query i0 on: the caller's rows, or sums of the head. */
static void place_d_q(const pass *x, const piece *w, int64_t h, int64_t i0,
                      struct qkvi_bwd_block *a) {
    const qkvi_problem *p = x->p;
    const qkvi_grads *g = x->g;
    if (w->sums) {
        const int64_t row = (h - w->g * p->heads_per_kv) * p->len_q + i0;
        a->d_q = w->sums->rows + row * p->head_dim;
        a->d_q_stride = p->head_dim;
    } else {
        a->d_q = qkvi_elem(g->d_q, QKV_F32, qkvi_q_at(p, g->d_q_stride, w->b, h, i0));
        a->d_q_stride = g->d_q_stride[2];
    }
}

/*
 * Queries [i0, i0 + n) of head h against the piece's keys. before: the last key block before this
 * one that meets them, -1: none; is_last: there is none after it.
 */
static void run_block(const pass *x, const piece *w, slot *s, int64_t h, int64_t i0, int64_t n,
                      int64_t before, bool is_last) {
    const qkvi_problem *p = x->p;
    const qkvi_grads *g = x->g;
    qkvi_dropout dropout;
    struct qkvi_bwd_block a = qkvi_bwd_open(p, g, x->kernels, w, s, h, i0, n, &dropout);
    place_d_q(x, w, h, i0, &a);
    x->kernels->bwd.keys(&a);
    atomic_llong *const turn =
        x->turn ? x->turn + h * x->n_turns + query_block(p, w->b) + i0 / QKVI_BWD_QUERIES : NULL;
    if (turn) wait_for_turn(turn, before + 1);
    if (before < 0) zero_rows(a.d_q, QKV_F32, a.d_q_stride, n, p->head_dim);
    x->kernels->bwd.queries(&a);
    if (w->sums && is_last)
        x->kernels->store_rows[p->dtype](
            a.d_q, a.d_q_stride, n, p->head_dim, 1,
            qkvi_elem(g->d_q, p->dtype, qkvi_q_at(p, g->d_q_stride, w->b, h, i0)),
            g->d_q_stride[2]);
    if (turn) atomic_store_explicit(turn, w->block + 1, memory_order_release);
}

/* ---- A piece: one block of keys -------------------------------------------------------------- */

/*
 * Does the block mask show queries [i0, i1) nothing at all of the key blocks first to last? Asked
 * for the first piece of a head.
 */
static bool meets_none(const qkvi_problem *p, const piece *w, int64_t h, int64_t i0, int64_t i1,
                       int64_t first, int64_t last) {
    if (!p->block_len || w->block > 0) return false;
    const int64_t shown = qkvi_blocks_from(p, w->b, h, i0, i1, first);
    return shown < 0 || shown > last;
}

/* run_block, if the block mask lets it. Position lets the queries meet key blocks first to last. */
static void meet(const pass *x, const piece *w, slot *s, int64_t h, int64_t i0, int64_t n,
                 int64_t first, int64_t last) {
    const qkvi_problem *p = x->p;
    int64_t before = w->block - 1, after = w->block + 1;
    if (p->block_len) {
        if (qkvi_blocks_from(p, w->b, h, i0, i0 + n, w->block) != w->block) return;
        before = qkvi_blocks_before(p, w->b, h, i0, i0 + n, w->block);
        after = qkvi_blocks_from(p, w->b, h, i0, i0 + n, after);
    }
    run_block(x, w, s, h, i0, n, before < first ? -1 : before, after < 0 || after > last);
}

static void run_head(const pass *x, const piece *w, slot *s, int64_t h) {
    const qkvi_grads *g = x->g;
    for (int64_t i0 = 0; i0 < w->rules.n_queries; i0 += QKVI_BWD_QUERIES) {
        const int64_t n = qkvi_min_i64(QKVI_BWD_QUERIES, w->rules.n_queries - i0);
        const qkvi_range keys = qkvi_keys_of_block(&w->rules, i0, i0 + n);
        const int64_t first = keys.begin / QKVI_BWD_KEYS, last = (keys.end - 1) / QKVI_BWD_KEYS;
        if (keys.begin == keys.end || meets_none(x->p, w, h, i0, i0 + n, first, last)) {
            const qkvi_problem *p = x->p;
            const qkv_dtype type = p->dtype;
            if (w->block == 0) /* nobody else will come by */
                zero_rows(qkvi_elem(g->d_q, type, qkvi_q_at(p, g->d_q_stride, w->b, h, i0)), type,
                          g->d_q_stride[2], n, x->p->head_dim);
        } else if (keys.begin < w->key + w->n_keys && keys.end > w->key) {
            meet(x, w, s, h, i0, n, first, last);
        }
    }
}

static void clear_sums(const piece *w, float *sums, int64_t dim) {
    const size_t rows = (size_t)qkvi_round_up(w->n_keys, QKVI_BWD_PANEL);
    for (int64_t d = 0; d < dim; d += QKVI_BWD_PANEL)
        memset(sums + d * QKVI_BWD_KEYS, 0, rows * QKVI_BWD_PANEL * sizeof *sums);
}

/*
 * Sums in channel panels, times scale, become rows of the caller's; keys that are hidden from all
 * get zeros.
 */
static void store_keys(const pass *x, const piece *w, const float *sums, float scale, void *array,
                       const int64_t stride[3], int64_t dim) {
    const qkvi_problem *p = x->p;
    const qkv_dtype type = p->dtype;
    char *y = qkvi_elem(array, type, qkvi_k_at(p, stride, w->b, w->g, w->key));
    for (int64_t d = 0; d < dim; d += QKVI_BWD_PANEL)
        x->kernels->store_rows[type](sums + d * QKVI_BWD_KEYS, QKVI_BWD_PANEL, w->n_keys,
                                     qkvi_min_i64(QKVI_BWD_PANEL, dim - d), scale,
                                     y + d * qkvi_dtype_bytes(type), stride[2]);
    const int64_t hidden = qkvi_min_i64(QKVI_BWD_KEYS, qkvi_len_k(p, w->b) - w->key) - w->n_keys;
    if (hidden > 0)
        zero_rows(y + w->n_keys * stride[2] * qkvi_dtype_bytes(type), type, stride[2], hidden, dim);
}

/*
 * Pieces go by batch, then key/value head, then block of keys. Where later keys have later queries
 * only, neighbours of one head would begin together, and the second wait for the first from then
 * on: there, as many heads as there are threads take turns (causal, H4 L2048 D128, two threads: 71
 * -> 78 % of the peak; without causality it costs 2 %, since Q and dO are read twice).
 */
static piece piece_at(const pass *x, int64_t index) {
    const qkvi_problem *p = x->p;
    const int64_t b =
        qkvi_batch_of_block(p->cu_k, p->len_k, QKVI_BWD_KEYS, p->n_batch, index / p->n_kv_heads);
    const int64_t first = key_block(p, b), n = key_block(p, b + 1) - first;
    const int64_t most = takes_turns(p) ? x->n_slots : 1;
    index -= first * p->n_kv_heads;
    const int64_t g = index / (most * n) * most;
    const int64_t together = qkvi_min_i64(most, p->n_kv_heads - g);
    index -= g * n;
    return (piece){ .b = b,
                    .g = g + index % together,
                    .block = index / together,
                    .key = index / together * QKVI_BWD_KEYS,
                    .rules = qkvi_rules_of(p, b) };
}

/* Of the pieces of a head, those have a part that have a key; the first has one in any case. */
static qkvi_d_q_place *enter_d_q(const pass *x, const piece *w) {
    const qkvi_problem *p = x->p;
    const int64_t n_blocks = qkvi_ceil_div(qkvi_len_k(p, w->b), QKVI_BWD_KEYS);
    return qkvi_d_q_enter(&x->d_q, w->b * p->n_kv_heads + w->g, w->block,
                          qkvi_max_i64(n_blocks, 1));
}

static void run_piece(const pass *x, slot *s, int64_t index) {
    const qkvi_problem *p = x->p;
    piece w = piece_at(x, index);
    if (w.key > 0 && w.key >= qkvi_len_k(p, w.b)) return;
    qkvi_bwd_pack_keys(p, x->kernels, &w, s);
    w.sums = enter_d_q(x, &w);
    clear_sums(&w, s->d_k, p->head_dim);
    clear_sums(&w, s->d_v, p->head_dim_v);
    for (int64_t n = 0; n < p->heads_per_kv; n++) run_head(x, &w, s, w.g * p->heads_per_kv + n);
    qkvi_d_q_leave(w.sums);
    store_keys(x, &w, s->d_k, p->scale, x->g->d_k, x->g->d_k_stride, p->head_dim);
    store_keys(x, &w, s->d_v, qkvi_dropout_factor(p), x->g->d_v, x->g->d_v_stride, p->head_dim_v);
}

/* ---- All pieces ------------------------------------------------------------------------------ */

/* A piece once drawn is always done: others may wait for it. */
static void run_task(void *argument, int index) {
    pass *x = argument;
    while (!qkvi_watch_cancelled(&x->watch)) {
        const long long index_of_piece = atomic_fetch_add(&x->next, 1);
        if (index_of_piece >= x->n_pieces) return;
        run_piece(x, &x->slots[index], index_of_piece);
        qkvi_watch_done_one(&x->watch);
    }
}

static qkv_status size_of(pass *x, qkv_ctx *ctx, size_t *bytes) {
    qkvi_cutter cutter = { 0 };
    lay_out(&cutter, x);
    if (cutter.overflow)
        return qkvi_ctx_fail(ctx, QKV_ERR_MEMORY, "the workspace does not fit the address space");
    *bytes = cutter.used_bytes;
    return QKV_OK;
}

qkv_status qkvi_backward_plan_of(qkv_ctx *ctx, const qkvi_problem *p, qkvi_backward_plan *made) {
    pass x = { .g = NULL };
    plan(&x, p, ctx);
    made->n_threads = x.n_slots;
    made->n_pieces = x.n_pieces;
    made->serial = x.serial;
    return size_of(&x, ctx, &made->bytes);
}

static qkv_status backward(qkv_ctx *ctx, const qkvi_problem *p, const qkvi_grads *g,
                           const qkv_call_options *call) {
    pass x = { .g = g };
    size_t bytes = 0;
    void *block;
    plan(&x, p, ctx);
    QKV_TRY(size_of(&x, ctx, &bytes));
    QKV_TRY(qkvi_ctx_workspace(ctx, call, bytes, &block));
    qkvi_cutter cutter = qkvi_cutter_on(block);
    lay_out(&cutter, &x);
    const int64_t n_turns = x.turn ? p->n_heads * x.n_turns : 0;
    for (int64_t n = 0; n < n_turns; n++) atomic_init(&x.turn[n], 0);
    qkvi_d_q_begin(&x.d_q);
    x.watch = qkvi_watch_begin(call, x.n_pieces + qkvi_backward_mask_pieces(g));
    qkvi_pool_run(ctx->pool, x.n_slots, run_task, &x);
    qkvi_backward_mask(ctx->pool, p, g, x.kernels, x.n_slots, x.slots, &x.watch);
    if (!qkvi_watch_cancelled(&x.watch)) qkvi_backward_sinks(p, g, x.kernels);
    return qkvi_watch_end(&x.watch, ctx);
}

qkv_status qkv_attention_backward(qkv_ctx *ctx, const qkv_attention_desc *desc, const void *q,
                                  const void *k, const void *v, const void *o, const float *lse,
                                  const qkv_attention_grads *grads, const qkv_call_options *call) {
    qkvi_problem problem;
    qkvi_grads g;
    qkv_call_options options;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = qkvi_call_read(call, &options, &ctx->error);
    if (status == QKV_OK)
        status = qkvi_problem_backward(desc, q, k, v, o, lse, grads, &options, &problem, &g,
                                       &ctx->error);
    if (status == QKV_OK) status = backward(ctx, &problem, &g, &options);
    return qkvi_ctx_end(ctx, status);
}

qkv_status qkv_attention_backward_workspace(qkv_ctx *ctx, const qkv_attention_desc *desc,
                                            size_t *bytes) {
    qkvi_problem problem;
    QKV_TRY(qkvi_ctx_begin(ctx));
    qkv_status status = qkvi_problem_shape(desc, false, &problem, &ctx->error);
    if (status == QKV_OK && !bytes) status = qkvi_ctx_fail(ctx, QKV_ERR_ARGUMENT, "bytes is NULL");
    qkvi_backward_plan made = { 0 };
    if (status == QKV_OK) status = qkvi_backward_plan_of(ctx, &problem, &made);
    if (status == QKV_OK) *bytes = made.bytes;
    return qkvi_ctx_end(ctx, status);
}
