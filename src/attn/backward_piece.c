/* See backward_piece.h. */
#include "attn/backward_piece.h"

#include <string.h>

#include "attn/blocks.h"
#include "attn/dropout.h"
#include "attn/mask.h"
#include "core/os.h"
#include "kernels/table.h"

/* ---- One block of queries against one of keys ------------------------------------------------ */

static void zero_rows(void *x, qkv_dtype type, int64_t stride, int64_t n, int64_t dim) {
    const int64_t bytes = qkvi_dtype_bytes(type);
    if (dim == 0) return; /* x may be NULL */
    for (int64_t i = 0; i < n; i++)
        memset((char *)x + i * stride * bytes, 0, (size_t)(dim * bytes));
}

static void wait_for_turn(atomic_llong *turn, int64_t mine) {
    for (int spins = 0; atomic_load_explicit(turn, memory_order_acquire) != mine;)
        if (++spins > 64) qkvi_os_yield();
}

/* d_q of the block from query i0 on: the caller's rows, or sums of the head. */
static void place_d_q(const qkvi_bwd_pass *x, const qkvi_bwd_piece *w, int64_t h, int64_t i0,
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
static void run_block(const qkvi_bwd_pass *x, const qkvi_bwd_piece *w, qkvi_bwd_slot *s, int64_t h,
                      int64_t i0, int64_t n, int64_t before, bool is_last) {
    const qkvi_problem *p = x->p;
    const qkvi_grads *g = x->g;
    qkvi_dropout dropout;
    struct qkvi_bwd_block a = qkvi_bwd_open(p, g, x->kernels, w, s, h, i0, n, &dropout);
    place_d_q(x, w, h, i0, &a);
    x->kernels->bwd->keys(&a);
    atomic_llong *const turn =
        x->turn ? x->turn + h * x->n_turns + qkvi_bwd_first_queries(p, w->b) + i0 / QKVI_BWD_QUERIES
                : NULL;
    if (turn) wait_for_turn(turn, before + 1);
    if (before < 0) zero_rows(a.d_q, QKV_F32, a.d_q_stride, n, p->head_dim);
    x->kernels->bwd->queries(&a);
    if (w->sums && is_last)
        x->kernels->rows->store[p->dtype](
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
static bool meets_none(const qkvi_problem *p, const qkvi_bwd_piece *w, int64_t h, int64_t i0,
                       int64_t i1, int64_t first, int64_t last) {
    if (!p->block_len || w->block > 0) return false;
    const int64_t shown = qkvi_blocks_from(p, w->b, h, i0, i1, first);
    return shown < 0 || shown > last;
}

/* run_block, if the block mask lets it. Position lets the queries meet key blocks first to last. */
static void meet(const qkvi_bwd_pass *x, const qkvi_bwd_piece *w, qkvi_bwd_slot *s, int64_t h,
                 int64_t i0, int64_t n, int64_t first, int64_t last) {
    const qkvi_problem *p = x->p;
    int64_t before = w->block - 1, after = w->block + 1;
    if (p->block_len) {
        if (qkvi_blocks_from(p, w->b, h, i0, i0 + n, w->block) != w->block) return;
        before = qkvi_blocks_before(p, w->b, h, i0, i0 + n, w->block);
        after = qkvi_blocks_from(p, w->b, h, i0, i0 + n, after);
    }
    run_block(x, w, s, h, i0, n, before < first ? -1 : before, after < 0 || after > last);
}

static void run_head(const qkvi_bwd_pass *x, const qkvi_bwd_piece *w, qkvi_bwd_slot *s, int64_t h) {
    const qkvi_grads *g = x->g;
    for (int64_t i0 = 0; i0 < w->rules.n_queries; i0 += QKVI_BWD_QUERIES) {
        const int64_t n = qkvi_min_i64(QKVI_BWD_QUERIES, w->rules.n_queries - i0);
        const qkvi_range keys = qkvi_keys_of_block(&w->rules, i0, i0 + n);
        const int64_t first = keys.begin / QKVI_BWD_KEYS, last = (keys.end - 1) / QKVI_BWD_KEYS;
        if (keys.begin == keys.end || meets_none(x->p, w, h, i0, i0 + n, first, last)) {
            const qkvi_problem *p = x->p;
            const qkv_dtype type = p->dtype;
            if (w->block == 0) /* no other block writes these rows */
                zero_rows(qkvi_elem(g->d_q, type, qkvi_q_at(p, g->d_q_stride, w->b, h, i0)), type,
                          g->d_q_stride[2], n, x->p->head_dim);
        } else if (keys.begin < w->key + w->n_keys && keys.end > w->key) {
            meet(x, w, s, h, i0, n, first, last);
        }
    }
}

static void clear_sums(const qkvi_bwd_piece *w, float *sums, int64_t dim) {
    const size_t rows = (size_t)qkvi_round_up(w->n_keys, QKVI_BWD_PANEL);
    for (int64_t d = 0; d < dim; d += QKVI_BWD_PANEL)
        memset(sums + d * QKVI_BWD_KEYS, 0, rows * QKVI_BWD_PANEL * sizeof *sums);
}

/*
 * Sums in channel panels, times scale, become rows of the caller's; keys that are hidden from all
 * get zeros.
 */
static void store_keys(const qkvi_bwd_pass *x, const qkvi_bwd_piece *w, const float *sums,
                       float scale, void *array, const int64_t stride[3], int64_t dim) {
    const qkvi_problem *p = x->p;
    const qkv_dtype type = p->dtype;
    char *y = qkvi_elem(array, type, qkvi_k_at(p, stride, w->b, w->g, w->key));
    if (!y) return; /* without keys there need not be an array */
    for (int64_t d = 0; d < dim; d += QKVI_BWD_PANEL)
        x->kernels->rows->store[type](sums + d * QKVI_BWD_KEYS, QKVI_BWD_PANEL, w->n_keys,
                                      qkvi_min_i64(QKVI_BWD_PANEL, dim - d), scale,
                                      y + d * qkvi_dtype_bytes(type), stride[2]);
    const int64_t hidden = qkvi_min_i64(QKVI_BWD_KEYS, qkvi_len_k(p, w->b) - w->key) - w->n_keys;
    if (hidden > 0)
        zero_rows(y + w->n_keys * stride[2] * qkvi_dtype_bytes(type), type, stride[2], hidden, dim);
}

/* Of the pieces of a head, those have a part that have a key; the first has one in any case. */
static qkvi_d_q_place *enter_d_q(const qkvi_bwd_pass *x, const qkvi_bwd_piece *w) {
    const qkvi_problem *p = x->p;
    const int64_t n_blocks = qkvi_ceil_div(qkvi_len_k(p, w->b), QKVI_BWD_KEYS);
    return qkvi_d_q_enter(&x->d_q, w->b * p->n_kv_heads + w->g, w->block,
                          qkvi_max_i64(n_blocks, 1));
}

void qkvi_bwd_run_piece(const qkvi_bwd_pass *x, qkvi_bwd_slot *s, qkvi_bwd_piece w) {
    const qkvi_problem *p = x->p;
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
