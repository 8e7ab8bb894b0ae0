/* See forward_head.h. */
#include "attn/forward_head.h"

#include <string.h>

#include "attn/blocks.h"
#include "attn/dropout.h"
#include "attn/pack.h"
#include "attn/seen.h"
#include "attn/stats.h"

qkvi_forward_head qkvi_forward_head_at(const qkvi_forward_call *x, int64_t index) {
    const qkvi_problem *const p = x->p;
    qkvi_forward_head w = { .b = index / p->n_kv_heads, .g = index % p->n_kv_heads };
    w.rules = qkvi_rules_of(p, w.b);
    if (w.rules.n_queries > 0) w.keys = qkvi_keys_of_block(&w.rules, 0, w.rules.n_queries);
    if (x->part) w.keys = qkvi_part_keys(x->part, w.keys);
    w.first_key = w.keys.begin / QKVI_KEY_BLOCK * QKVI_KEY_BLOCK;
    return w;
}

/* ---- Packing --------------------------------------------------------------------------------- */

void qkvi_forward_pack_block(const qkvi_forward_call *x, const qkvi_forward_head *w, int64_t index,
                             const qkvi_packed *to) {
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
        to->v_finite[index] = x->kernels->rows->pack_channel_pairs(
            v, p->v_stride[2], rows, p->head_dim_v, QKVI_KEY_BLOCK, see, values);
        return;
    }
    for (int word, end = 0; qkvi_seen_next(see, end, &word, &end);) { /* the others are not read */
        const int64_t j = 32 * word, rows = qkvi_min_i64(32 * end, n) - j;
        to->v_finite[index] &= x->kernels->rows->pack_channels[p->dtype](
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

static qkvi_ahead fetch_rows(const void *x, qkv_dtype type, int64_t stride, int64_t n,
                             int64_t dim) {
    const int64_t size = qkvi_dtype_bytes(type);
    const bool few = n <= MOST_FETCHED / qkvi_max_i64(dim * size, 1);
    return qkvi_ahead_rows(x, few ? n : 0, stride * size, dim * size);
}

void qkvi_forward_announce(const qkvi_forward_call *x, int64_t index,
                           qkvi_attend_scratch *scratch) {
    const qkvi_problem *p = x->p;
    memset(scratch->fetch, 0, sizeof scratch->fetch);
    if (index >= x->plan.n_private || qkvi_forward_shared(p, &x->plan, index)) return;
    const qkvi_forward_head w = qkvi_forward_head_at(x, index);
    const int64_t key = w.keys.begin, n_keys = w.keys.end - key, h = w.g * p->heads_per_kv;
    const void *k = qkvi_elem(p->k, p->dtype, qkvi_k_at(p, p->k_stride, w.b, w.g, key));
    const void *v = qkvi_elem(p->v, p->dtype, qkvi_k_at(p, p->v_stride, w.b, w.g, key));
    const void *q = qkvi_elem(p->q, p->dtype, qkvi_q_at(p, p->q_stride, w.b, h, 0));
    if (!qkvi_hides(p)) { /* it is not known yet which of them will be read */
        scratch->fetch[1] = fetch_rows(k, p->dtype, p->k_stride[2], n_keys, p->head_dim);
        scratch->fetch[2] = fetch_rows(v, p->dtype, p->v_stride[2], n_keys, p->head_dim_v);
    }
    scratch->fetch[3] = fetch_rows(q, p->dtype, p->q_stride[2], w.rules.n_queries, p->head_dim);
}

/* ---- A block of queries ---------------------------------------------------------------------- */

/* Queries are copied into the slot if the plan says so; o of 16 bits is finished in o_sum. */
static void place_queries(const qkvi_forward_call *x, const qkvi_forward_slot *slot, const void *q,
                          void *o, qkvi_attend *a) {
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

/*
 * Sums of the block from query i0 of head h on, where they outlive the call; NULL: they need not.
 */
static const qkvi_attend_state *state_of(const qkvi_forward_call *x, int64_t b, int64_t h,
                                         int64_t i0, qkvi_attend_state *state, float **o_sum) {
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

void qkvi_forward_attend_queries(const qkvi_forward_call *x, const qkvi_forward_head *w,
                                 const qkvi_packed *from, int thread, int64_t h, int64_t block) {
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
    slot->scratch->fetch[0] = fetch_rows(
        o, p->o_dtype, p->o_stride[2], !x->part || x->part->last ? a.n_queries : 0, p->head_dim_v);
    x->kernels->attend->block(&a);
    if (a.stats) qkvi_stats_count(p, w->b, h, &stats);
    if (p->o_dtype != QKV_F32 && (!x->part || x->part->last))
        x->kernels->rows->store[p->o_dtype](a.o, a.o_row, a.n_queries, p->head_dim_v, 1, o,
                                            p->o_stride[2]);
}
