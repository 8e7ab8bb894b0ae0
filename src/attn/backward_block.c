/* See backward_block.h. */
#include "attn/backward_block.h"

#include <string.h>

#include "attn/backward_rows.h"
#include "attn/blocks.h"
#include "attn/dropout.h"
#include "attn/seen.h"

/*
 * Channel panels have a fixed number of rows, so that a panel's place is the same for every block.
 */
void qkvi_bwd_lay_out_slot(qkvi_cutter *cutter, const qkvi_problem *p, qkvi_bwd_slot *s) {
    const int64_t dim = qkvi_round_up(p->head_dim, QKVI_BWD_PANEL);
    const int64_t dim_v = qkvi_round_up(p->head_dim_v, QKVI_BWD_PANEL);
    const int64_t n_queries = QKVI_BWD_QUERIES, n_keys = QKVI_BWD_KEYS;
    s->q = qkvi_cut(cutter, n_queries * dim, sizeof(float));
    s->d_o = qkvi_cut(cutter, n_queries * dim_v, sizeof(float));
    s->k_t = qkvi_cut(cutter, n_keys * dim, sizeof(float));
    s->v_t = qkvi_cut(cutter, n_keys * dim_v, sizeof(float));
    s->k = qkvi_cut(cutter, n_keys * dim, sizeof(float));
    s->d_k = qkvi_cut(cutter, n_keys * dim, sizeof(float));
    s->d_v = qkvi_cut(cutter, n_keys * dim_v, sizeof(float));
    s->p = qkvi_cut(cutter, n_queries * QKVI_BWD_P_ROW, sizeof(float));
    s->t = p->has_softcap ? qkvi_cut(cutter, n_queries * QKVI_BWD_P_ROW, sizeof(float)) : NULL;
    s->d_s = qkvi_cut(cutter, n_queries * QKVI_BWD_DS_ROW, sizeof(float));
    const int64_t pairs = p->grads_dp ? n_queries / 2 * QKVI_BWD_P_ROW : 0;
    s->p_pairs = qkvi_cut(cutter, pairs, sizeof(uint32_t));
    s->d_s_pairs = qkvi_cut(cutter, pairs, sizeof(uint32_t));
    s->d_s_rows = qkvi_cut(cutter, p->grads_dp ? n_queries * QKVI_BWD_DS_ROW : 0, sizeof(uint16_t));
    s->lse = qkvi_cut(cutter, n_queries, sizeof(float));
    s->delta = qkvi_cut(cutter, n_queries, sizeof(float));
    s->begin = qkvi_cut(cutter, n_queries, sizeof(int32_t));
    s->end = qkvi_cut(cutter, n_queries, sizeof(int32_t));
    s->see = qkvi_cut(cutter, n_queries * (n_keys / QKVI_BWD_PANEL), sizeof(uint32_t));
    s->keep = p->has_dropout ? qkvi_cut(cutter, n_queries, sizeof(uint32_t)) : NULL;
}

/* Pairs take half the room of floats. */
static void pack_key_pairs(const qkvi_problem *p, const qkvi_kernels *kernels, qkvi_bwd_piece *w,
                           const void *k, const void *v, const uint32_t *see,
                           const qkvi_bwd_slot *s) {
    const int64_t pairs = (p->head_dim + 1) / 2, pairs_v = (p->head_dim_v + 1) / 2;
    kernels->rows->pack_key_pairs(k, p->k_stride[2], w->n_keys, p->head_dim, pairs, see,
                                  (uint32_t *)s->k_t);
    kernels->rows->pack_key_pairs(v, p->v_stride[2], w->n_keys, p->head_dim_v, pairs_v, see,
                                  (uint32_t *)s->v_t);
    w->finite = kernels->rows->pack_channel_pairs(k, p->k_stride[2], w->n_keys, p->head_dim,
                                                  QKVI_BWD_KEYS, see, (uint32_t *)s->k);
}

void qkvi_bwd_pack_keys(const qkvi_problem *p, const qkvi_kernels *kernels, qkvi_bwd_piece *w,
                        const qkvi_bwd_slot *s) {
    const int64_t end = w->limit ? qkvi_min_i64(w->limit, w->rules.n_keys) : w->rules.n_keys;
    w->n_keys = qkvi_max_i64(0, qkvi_min_i64(QKVI_BWD_KEYS, end - w->key));
    const void *const k = qkvi_elem(p->k, p->dtype, qkvi_k_at(p, p->k_stride, w->b, w->g, w->key));
    const void *const v = qkvi_elem(p->v, p->dtype, qkvi_k_at(p, p->v_stride, w->b, w->g, w->key));
    uint32_t see[QKVI_SEEN_WORDS];
    qkvi_seen(p, kernels, &w->rules, w->b, w->g, w->key, w->n_keys, see);
    qkvi_seen_from(see, w->first - w->key);
    if (p->grads_dp) {
        pack_key_pairs(p, kernels, w, k, v, see, s);
        return;
    }
    kernels->rows->pack_keys[p->dtype](k, p->k_stride[2], w->n_keys, p->head_dim, see, s->k_t);
    kernels->rows->pack_keys[p->dtype](v, p->v_stride[2], w->n_keys, p->head_dim_v, see, s->v_t);
    w->finite = kernels->rows->pack_channels[p->dtype](k, p->k_stride[2], w->n_keys, p->head_dim,
                                                       QKVI_BWD_KEYS, see, s->k);
}

/* The keys of the piece that each query sees. */
static void fill_rows(const qkvi_bwd_piece *w, const qkvi_bwd_slot *s, int64_t i0, int64_t n) {
    const int64_t first = qkvi_max_i64(w->key, w->first), end = w->key + w->n_keys;
    for (int64_t r = 0; r < n; r++) {
        const int64_t i = i0 + r;
        const qkvi_range keys = qkvi_keys_of(&w->rules, i);
        s->begin[r] = (int32_t)(qkvi_min_i64(qkvi_max_i64(keys.begin, first), end) - w->key);
        s->end[r] = (int32_t)(qkvi_min_i64(qkvi_max_i64(keys.end, first), end) - w->key);
    }
}

/* Channel panels of n rows: zeros up to the next multiple of 4, which tiles may read. */
static void zero_beyond(float *panels, int64_t n, int64_t dim) {
    const size_t bytes = (size_t)(qkvi_round_up(n, 4) - n) * QKVI_BWD_PANEL * sizeof *panels;
    for (int64_t d = 0; d < dim && bytes; d += QKVI_BWD_PANEL)
        memset(panels + d * QKVI_BWD_QUERIES + n * QKVI_BWD_PANEL, 0, bytes);
}

/* Rows of Q or dO, and pairs of them, in half of the room of a panel of floats each. */
static uint16_t *rows_of(float *panels, int64_t dim) {
    const int64_t words = QKVI_BWD_QUERIES / 2 * qkvi_round_up(dim, QKVI_BWD_PANEL);
    return (uint16_t *)(panels + words);
}

static bool pack_query_pairs(const qkvi_kernels *kernels, const uint16_t *x, int64_t stride,
                             int64_t n, int64_t dim, float *panels) {
    const int64_t row = qkvi_round_up(dim, QKVI_BWD_PANEL);
    uint16_t *const rows = rows_of(panels, dim);
    for (int64_t r = 0; dim > 0 && r < n; r++)
        memcpy(rows + r * row, x + r * stride, (size_t)dim * sizeof *rows);
    const int64_t beyond = qkvi_round_up(n, 4) - n;
    if (beyond * row > 0) memset(rows + n * row, 0, (size_t)(beyond * row) * sizeof *rows);
    return kernels->rows->pack_channel_pairs(x, stride, n, dim, QKVI_BWD_QUERIES, NULL,
                                             (uint32_t *)panels);
}

/* Returns whether all are finite. */
static bool pack_queries(const qkvi_problem *p, const qkvi_kernels *kernels, qkv_dtype type,
                         const void *x, int64_t stride, int64_t n, int64_t dim, float *panels) {
    if (p->grads_dp) return pack_query_pairs(kernels, x, stride, n, dim, panels);
    const bool finite =
        kernels->rows->pack_channels[type](x, stride, n, dim, QKVI_BWD_QUERIES, NULL, panels);
    zero_beyond(panels, n, dim);
    return finite;
}

/* What the block mask shows the 32 queries of a group; groups beyond the last see as it does. */
static uint32_t panels_of(const qkvi_problem *p, const qkvi_bwd_piece *w, int64_t h, int64_t i0,
                          int64_t n, int group) {
    const int64_t i = i0 + qkvi_min_i64(32 * group, (n - 1) / 32 * 32);
    return p->block_len ? qkvi_blocks_panels(p, w->b, h, i, w->key) : UINT32_MAX;
}

struct qkvi_bwd_block qkvi_bwd_open(const qkvi_problem *p, const qkvi_grads *g,
                                    const qkvi_kernels *kernels, const qkvi_bwd_piece *w,
                                    const qkvi_bwd_slot *s, int64_t h, int64_t i0, int64_t n,
                                    qkvi_dropout *dropout) {
    const void *const q = qkvi_elem(p->q, p->dtype, qkvi_q_at(p, p->q_stride, w->b, h, i0));
    const void *const d_o = qkvi_elem(g->d_o, p->o_dtype, qkvi_q_at(p, g->d_o_stride, w->b, h, i0));
    const bool q_finite =
        pack_queries(p, kernels, p->dtype, q, p->q_stride[2], n, p->head_dim, s->q);
    const bool d_o_finite =
        pack_queries(p, kernels, p->o_dtype, d_o, g->d_o_stride[2], n, p->head_dim_v, s->d_o);
    fill_rows(w, s, i0, n);
    qkvi_backward_rows(p, g, kernels, w->b, h, i0, n, s->lse, s->delta);
    const bool all =
        !qkvi_hides(p) && !p->has_dropout && s->begin[n - 1] == 0 && s->end[0] == w->n_keys;
    struct qkvi_bwd_block a = {
        .head_dim = p->head_dim,
        .head_dim_v = p->head_dim_v,
        .n_queries = (int)n,
        .n_keys = (int)w->n_keys,
        .q = s->q,
        .d_o = s->d_o,
        .k_t = s->k_t,
        .v_t = s->v_t,
        .k = s->k,
        .dp = p->grads_dp,
        .q_rows = rows_of(s->q, p->head_dim),
        .d_o_rows = rows_of(s->d_o, p->head_dim_v),
        .q_row = qkvi_round_up(p->head_dim, QKVI_BWD_PANEL),
        .d_o_row = qkvi_round_up(p->head_dim_v, QKVI_BWD_PANEL),
        .begin = s->begin,
        .end = s->end,
        .lse = s->lse,
        .delta = s->delta,
        .scale = p->scale,
        .softcap = p->softcap,
        .mask = qkvi_mask_from(p, w->b, h, i0, w->key),
        .dropout = qkvi_dropout_from(p, w->b, h, i0, w->key, dropout),
        .select = !all && !(q_finite && d_o_finite && w->finite),
        .p = s->p,
        .t = s->t,
        .d_s = s->d_s,
        .whole = !p->grads_dp,
        .p_pairs = s->p_pairs,
        .d_s_pairs = s->d_s_pairs,
        .d_s_rows = s->d_s_rows,
        .see = s->see,
        .keep = s->keep,
        .d_k = s->d_k,
        .d_v = s->d_v,
    };
    for (int group = 0; group < QKVI_BWD_QUERIES / 32; group++)
        a.panels[group] = panels_of(p, w, h, i0, n, group);
    return a;
}

bool qkvi_bwd_scores(const qkvi_problem *p, const qkvi_grads *g, const qkvi_kernels *kernels,
                     const qkvi_bwd_slot *s, qkvi_bwd_piece *packed, int64_t b, int64_t h,
                     int64_t query, int64_t key, bool sum_queries, bool sum_keys, int64_t *n,
                     int64_t *n_keys) {
    const qkvi_rules rules = qkvi_rules_of(p, b);
    const int64_t i0 = query * QKVI_BWD_QUERIES, j0 = key * QKVI_BWD_KEYS;
    *n = qkvi_min_i64(QKVI_BWD_QUERIES, rules.n_queries - i0);
    *n_keys = qkvi_min_i64(QKVI_BWD_KEYS, rules.n_keys - j0);
    if (*n <= 0 || *n_keys <= 0) return false;
    const qkvi_range keys = qkvi_keys_of_block(&rules, i0, i0 + *n);
    if (keys.begin >= j0 + *n_keys || keys.end <= j0) return false;
    const qkvi_bwd_piece w = { .b = b, .g = h / p->heads_per_kv, .key = j0, .rules = rules };
    if (packed->b != w.b || packed->g != w.g || packed->key != w.key) {
        *packed = w;
        qkvi_bwd_pack_keys(p, kernels, packed, s);
    }
    qkvi_dropout dropout;
    struct qkvi_bwd_block a = qkvi_bwd_open(p, g, kernels, packed, s, h, i0, *n, &dropout);
    a.capped = true;
    kernels->bwd->mask(&a, sum_queries, sum_keys);
    return true;
}
