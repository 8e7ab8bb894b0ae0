/*
 * Backward pass: who computes what, in which order. What a piece of work does is in
 * backward_piece.c, the products are in kernels/tmpl/attend_bwd.h.
 *
 * One pass over key blocks (Dao et al. 2022, algorithm 4, with the loops over keys outside): a
 * piece is one block of 256 keys of one key/value head. The dQ of a query block is handed from key
 * block to key block: block c adds only after block c - 1 has. Pieces are drawn in this order, so a
 * piece that waits waits for one that runs, and the bits depend on no thread's speed.
 *
 * Memory: per thread the packed blocks and sums, of a size that does not depend on the lengths; and
 * one counter per query block where there is more than one key block. With gradients of 16 bits,
 * sums of d_q of the heads that are under way (d_q_sums.h).
 */
#include "attn/backward_mask.h"
#include "attn/backward_piece.h"
#include "attn/backward_rows.h"
#include "attn/explain.h"
#include "attn/piece.h"
#include "attn/problem.h"
#include "attn/watch.h"

enum { SERIAL_PRODUCTS = 100000 }; /* below it waking a thread costs more than it brings */

typedef qkvi_bwd_slot slot;

typedef struct pass {
    qkvi_bwd_pass of;     /* what a piece sees */
    int64_t n_key_blocks; /* of a key/value head, in all batches */
    int64_t n_pieces;
    bool serial;
    int n_slots;
    slot *slots;
    atomic_llong next;
    qkvi_watch watch; /* of pieces */
} pass;

/* ---- Workspace ------------------------------------------------------------------------------- */

/*
 * Whether some gradient has elements: sizes beside a 0 may be so huge that no loop over them ends.
 */
static bool has_outputs(const qkvi_problem *p) {
    const bool d_q = p->heads_per_kv && qkvi_rows_q(p) && p->head_dim;
    return p->n_kv_heads && (d_q || (qkvi_rows_k(p) && (p->head_dim || p->head_dim_v)));
}

/* The number of the first block of a batch: sequence.h. */
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
    x->of.p = p;
    x->of.kernels = ctx->kernels;
    x->of.n_turns = qkvi_rows_q(p) && p->n_heads ? qkvi_bwd_first_queries(p, p->n_batch) : 0;
    x->n_key_blocks = has_outputs(p) ? key_block(p, p->n_batch) : 0;
    x->n_pieces = p->n_kv_heads * x->n_key_blocks;
    x->n_slots = (int)qkvi_min_i64(threads, x->n_pieces);
    const bool biased = qkvi_adds(p) || p->distance_bias;
    if (x->n_slots == 0 && biased) x->n_slots = 1; /* their gradients may have elements even so */
}

static void lay_out(qkvi_cutter *cutter, pass *x) {
    const qkvi_problem *p = x->of.p;
    slot measured;
    x->slots = qkvi_cut(cutter, x->n_slots, sizeof *x->slots);
    for (int n = 0; n < x->n_slots; n++)
        qkvi_bwd_lay_out_slot(cutter, p, x->slots ? &x->slots[n] : &measured);
    x->of.turn = NULL;
    if (p->len_k > QKVI_BWD_KEYS)
        x->of.turn = qkvi_cut(cutter, p->n_heads * x->of.n_turns, sizeof *x->of.turn);
    const int64_t at_once = (int64_t)x->n_slots * (takes_turns(p) ? 2 : 1); /* d_q_sums.h */
    qkvi_d_q_lay_out(cutter, p, qkvi_min_i64(at_once, p->n_batch * p->n_kv_heads), &x->of.d_q);
}

/* ---- All pieces ------------------------------------------------------------------------------ */

/*
 * Pieces go by batch, then key/value head, then block of keys. Where later keys have later queries
 * only, neighbours of one head would begin together, and the second wait for the first from then
 * on: there, as many heads as there are threads take turns (causal, H4 L2048 D128, two threads: 71
 * -> 78 % of the peak; without causality it costs 2 %, since Q and dO are read twice).
 */
static qkvi_bwd_piece piece_at(const pass *x, int64_t index) {
    const qkvi_problem *p = x->of.p;
    const int64_t b =
        qkvi_batch_of_block(p->cu_k, p->len_k, QKVI_BWD_KEYS, p->n_batch, index / p->n_kv_heads);
    const int64_t first = key_block(p, b), n = key_block(p, b + 1) - first;
    const int64_t most = takes_turns(p) ? x->n_slots : 1;
    index -= first * p->n_kv_heads;
    const int64_t g = index / (most * n) * most;
    const int64_t together = qkvi_min_i64(most, p->n_kv_heads - g);
    index -= g * n;
    return (qkvi_bwd_piece){ .b = b,
                             .g = g + index % together,
                             .block = index / together,
                             .key = index / together * QKVI_BWD_KEYS,
                             .rules = qkvi_rules_of(p, b) };
}

/* A piece once drawn is always done: others may wait for it. */
static void run_task(void *argument, int index) {
    pass *x = argument;
    while (!qkvi_watch_cancelled(&x->watch)) {
        const long long index_of_piece = atomic_fetch_add(&x->next, 1);
        if (index_of_piece >= x->n_pieces) return;
        qkvi_bwd_run_piece(&x->of, &x->slots[index], piece_at(x, index_of_piece));
        qkvi_watch_done_one(&x->watch);
    }
}

static qkv_status size_of(pass *x, qkv_ctx *ctx, size_t *bytes) {
    qkvi_cutter cutter = { 0 };
    lay_out(&cutter, x);
    return qkvi_ctx_measured(ctx, &cutter, bytes);
}

qkv_status qkvi_backward_plan_of(qkv_ctx *ctx, const qkvi_problem *p, qkvi_backward_plan *made) {
    pass x = { .of = { .g = NULL } };
    plan(&x, p, ctx);
    made->n_threads = x.n_slots;
    made->n_pieces = x.n_pieces;
    made->serial = x.serial;
    return size_of(&x, ctx, &made->bytes);
}

static qkv_status backward(qkv_ctx *ctx, const qkvi_problem *p, const qkvi_grads *g,
                           const qkv_call_options *call) {
    pass x = { .of = { .g = g } };
    size_t bytes = 0;
    void *block;
    plan(&x, p, ctx);
    QKV_TRY(size_of(&x, ctx, &bytes));
    QKV_TRY(qkvi_ctx_workspace(ctx, call, bytes, &block));
    qkvi_cutter cutter = qkvi_cutter_on(block);
    lay_out(&cutter, &x);
    const int64_t n_turns = x.of.turn ? p->n_heads * x.of.n_turns : 0;
    for (int64_t n = 0; n < n_turns; n++) atomic_init(&x.of.turn[n], 0);
    qkvi_d_q_begin(&x.of.d_q);
    x.watch = qkvi_watch_begin(call, x.n_pieces + qkvi_backward_mask_pieces(g) +
                                         qkvi_backward_distance_pieces(g));
    qkvi_pool_run(ctx->pool, x.n_slots, run_task, &x);
    qkvi_backward_mask(ctx->pool, p, g, x.of.kernels, x.n_slots, x.slots, &x.watch);
    qkvi_backward_distance(ctx->pool, p, g, x.of.kernels, x.n_slots, x.slots, &x.watch);
    if (!qkvi_watch_cancelled(&x.watch)) qkvi_backward_sinks(p, g, x.of.kernels);
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
    if (status == QKV_OK) qkvi_problem_choose_gradients(&problem, ctx);
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
    if (status == QKV_OK) qkvi_problem_choose_gradients(&problem, ctx);
    if (status == QKV_OK) status = qkvi_backward_plan_of(ctx, &problem, &made);
    if (status == QKV_OK) *bytes = made.bytes;
    return qkvi_ctx_end(ctx, status);
}
