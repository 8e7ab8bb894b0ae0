/* See columns.h. */
#include "attn/columns.h"

#include <string.h>

#include "attn/blocks.h"
#include "attn/pack.h"
#include "attn/seen.h"

enum { THREAD_WORK = 1 << 20 }; /* products that are worth a thread: as in plan.c */

qkvi_columns_how qkvi_columns_how_of(const qkvi_problem *p, const qkv_ctx *ctx) {
    qkvi_columns_how how = { .p = p,
                             .kernels = ctx->kernels,
                             .class = qkvi_arithmetic_of(p, ctx),
                             .there = { 0, INT64_MAX } };
    how.copied_q = qkvi_copied_q_of(p, how.class);
    how.k_words = qkvi_key_words(how.class, p->head_dim);
    qkvi_split_scale(p->scale, &how.k_factor, &how.scale);
    return how;
}

int qkvi_columns_threads(const qkvi_problem *p, const qkv_ctx *ctx, int64_t n_tasks) {
    const double worth = 1 + qkvi_pairs(p) * (double)p->head_dim / THREAD_WORK;
    const int threads = qkvi_pool_threads(ctx->pool);
    const int64_t most = qkvi_max_i64(1, qkvi_min_i64(threads, n_tasks));
    return worth < (double)most ? (int)worth : (int)most;
}

void qkvi_columns_lay_out_slot(qkvi_cutter *cutter, const qkvi_columns_how *how, bool tiles,
                               qkvi_columns_slot *slot) {
    const qkvi_copied_q *const q = &how->copied_q;
    slot->scratch = qkvi_cut(cutter, 1, sizeof *slot->scratch);
    slot->own = qkvi_cut(cutter, 1, sizeof *slot->own);
    slot->tiles = tiles ? qkvi_cut(cutter, 1, sizeof *slot->tiles) : NULL;
    slot->k = qkvi_cut(cutter, QKVI_KEY_BLOCK, (size_t)how->k_words * sizeof(uint32_t));
    slot->q =
        q->copied ? qkvi_cut(cutter, QKVI_QUERY_BLOCK, (size_t)(q->row * q->element_bytes)) : NULL;
}

void qkvi_columns_begin_slot(const qkvi_columns_slot *slot) {
    const size_t bytes = (QKVI_SCORE_ROW - QKVI_KEY_BLOCK) * sizeof *slot->scratch->s;
    for (int i = 0; i < QKVI_QUERY_BLOCK; i++)
        memset(slot->scratch->s + i * QKVI_SCORE_ROW + QKVI_KEY_BLOCK, 0, bytes);
    memset(slot->own->sees, 0, sizeof slot->own->sees);
    memset(slot->own->lanes, 0, sizeof slot->own->lanes);
}

void qkvi_columns_keys(const qkvi_columns_how *how, const qkvi_columns_slot *slot,
                       const qkvi_rules *rules, int64_t b, int64_t g, int64_t key0) {
    const int64_t end = qkvi_min_i64(rules->n_keys, how->there.end);
    const int64_t n = qkvi_min_i64(QKVI_KEY_BLOCK, end - key0);
    uint32_t see[QKVI_SEEN_WORDS];
    if (n <= 0) return;
    qkvi_seen(how->p, how->kernels, rules, b, g, key0, n, see);
    qkvi_seen_from(see, how->there.begin - key0);
    qkvi_pack_keys(how->p, how->kernels, b, g, key0, n, see, how->class, how->k_factor, slot->k);
}

/* Which keys every query may see, and which panels of 32 keys. false: none. */
static bool place_rows(const qkvi_columns_how *how, const qkvi_columns_slot *slot,
                       const qkvi_rules *rules, int64_t b, int64_t h, int64_t i0, int64_t i1,
                       int64_t key0) {
    const qkvi_problem *p = how->p;
    uint32_t any = 0;
    for (int64_t i = i0; i < i1; i += 32) {
        const uint32_t panels = p->block_len ? qkvi_blocks_panels(p, b, h, i, key0) : UINT32_MAX;
        slot->scratch->panels[(i - i0) / 32] = panels;
        any |= panels;
    }
    for (int64_t i = i0; any && i < i1; i++) {
        const qkvi_range keys = qkvi_keys_of(rules, i), there = how->there;
        const int64_t begin = qkvi_max_i64(keys.begin, there.begin);
        slot->scratch->begin[i - i0] = begin;
        slot->scratch->end[i - i0] = qkvi_max_i64(begin, qkvi_min_i64(keys.end, there.end));
    }
    return any;
}

bool qkvi_columns_open(const qkvi_columns_how *how, const qkvi_columns_slot *slot,
                       const qkvi_rules *rules, int64_t b, int64_t h, int64_t i0, int64_t i1,
                       int64_t key0, qkvi_attend *a, qkvi_columns *c) {
    const qkvi_problem *p = how->p;
    const qkvi_range keys = qkvi_keys_of_block(rules, i0, i1);
    const int64_t begin = qkvi_max_i64(keys.begin, how->there.begin);
    const int64_t end = qkvi_min_i64(keys.end, how->there.end);
    const int64_t from = qkvi_max_i64(begin / QKVI_PANEL * QKVI_PANEL, key0);
    const int64_t to = qkvi_min_i64(end, key0 + QKVI_KEY_BLOCK);
    if (from >= to || !place_rows(how, slot, rules, b, h, i0, i1, key0)) return false;
    const void *q = qkvi_elem(p->q, p->dtype, qkvi_q_at(p, p->q_stride, b, h, i0));
    *a = (qkvi_attend){
        .class = how->class,
        .head_dim = p->head_dim,
        .k_words = how->k_words,
        .n_queries = (int)(i1 - i0),
        .q = q,
        .q_row = p->q_stride[2],
        .k = slot->k,
        .v = slot->k, /* not read: no channels */
        .first_key = key0,
        .scratch = slot->scratch,
        .mask = qkvi_mask_from(p, b, h, i0, 0),
        .block_len = p->block_len,
        .scale = how->scale,
        .softcap = p->has_softcap ? p->softcap : 0,
        .has_sink = p->sinks,
    };
    if (slot->q) {
        qkvi_copy_queries(p, how->kernels, &how->copied_q, q, a->n_queries, slot->q);
        a->q = slot->q;
        a->q_row = how->copied_q.row;
    }
    *c = (qkvi_columns){
        .a = a,
        .own = slot->own,
        .i0 = i0,
        .key0 = key0,
        .from = from,
        .to = to,
        .lse = p->lse + qkvi_q_at(p, p->lse_stride, b, h, i0),
        .lse_row = p->lse_stride[2],
    };
    return true;
}
