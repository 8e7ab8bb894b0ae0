/* Attention, backward: P and dS of a block, and what they add to dK and dV. See attend_bwd.h. */
#ifndef QKVI_TMPL_ATTEND_BWD_KEYS_H
#define QKVI_TMPL_ATTEND_BWD_KEYS_H

#include "kernels/tmpl/attend_bwd_runs.h"

/* c += X^T B through these queries: x[key + query * x_row], or in class dp pairs of queries. */
V_INLINE void bwd_key_product(const bool dp, const int mr, const float *x, int64_t x_row,
                              const float *b, const bwd_runs *runs, vf c[V_MR][V_NV]) {
    for (int n = 0; n < runs->n; n++) {
        const int64_t from = runs->from[n], to = runs->to[n], pair = from / 2;
        if (dp)
            dp_product_by(mr, 0, 2 * bwd_n_pairs(from, to), x + pair * x_row, sizeof *x,
                          x_row * (int64_t)sizeof *x, (const uint32_t *)b + pair * QKVI_BWD_PANEL,
                          c, NULL);
        else
            tile_product(mr, to - from, x + from * x_row, 1, x_row, b + from * QKVI_BWD_PANEL, c);
    }
}

/* y[rows][32] += X^T B: rows are keys. */
V_INLINE void bwd_key_tile(const int mr, const bool dp, const float *x, int64_t x_row,
                           const float *b, const bwd_runs *runs, float *y) {
    for (int half = 0; half < 2; half += V_NV) {
        vf c[V_MR][V_NV];
        tile_zero(c);
        bwd_key_product(dp, mr, x, x_row, b + 16 * half, runs, c);
        float *to = y + 16 * half;
        V_UNROLL(12) for (int r = 0; r < mr; r++, to += QKVI_BWD_PANEL) {
            V_UNROLL(2) for (int v = 0; v < V_NV; v++) {
                vf_store(to + 16 * v, vf_add(vf_load(to + 16 * v), c[r][v]));
            }
        }
    }
}

/* Does query i see the key and, with keep, keep its weight? */
V_INLINE bool bwd_takes(const bwd_block *a, int64_t i, int64_t key, const uint32_t *keep) {
    uint32_t see = a->see[i * (QKVI_BWD_KEYS / QKVI_BWD_PANEL) + key / 32];
    if (keep) see &= keep[i];
    return see >> key % 32 & 1;
}

/* The same for one key, over the queries that take it. */
static void bwd_key_selected(const bwd_block *a, int64_t key, const float *x, int64_t x_row,
                             const float *b, const uint32_t *keep, const bwd_runs *runs, float *y) {
    for (int half = 0; half < 32; half += 16) {
        vf c = vf_set1(0);
        for (int n = 0; n < runs->n; n++)
            for (int64_t i = runs->from[n]; i < runs->to[n]; i++) {
                if (bwd_takes(a, i, key, keep))
                    c = vf_fma(vf_set1(x[i * x_row]), vf_load(b + i * QKVI_BWD_PANEL + half), c);
            }
        vf_store(y + half, vf_add(vf_load(y + half), c));
    }
}

/* In class dp: of a pair of queries those that take it, the other is a pair of zeros. */
static void bwd_key_selected_dp(const bwd_block *a, int64_t key, const float *x, int64_t x_row,
                                const float *b, const uint32_t *keep, const bwd_runs *runs,
                                float *y) {
    for (int half = 0; half < 32; half += 16) {
        vf c = vf_set1(0);
        for (int n = 0; n < runs->n; n++)
            for (int64_t i = runs->from[n] / 2 * 2; i < runs->to[n]; i += 2) {
                const bool first = i >= runs->from[n] && bwd_takes(a, i, key, keep);
                const bool second = i + 1 < runs->to[n] && bwd_takes(a, i + 1, key, keep);
                const vi taken = vi_set1((int32_t)dp_half((first ? 1u : 0) | (second ? 2u : 0)));
                if (first || second)
                    c = v_dp(c, vi_and(dp_set1(x + i / 2 * x_row), taken),
                             vi_and(dp_load(b + i / 2 * QKVI_BWD_PANEL + half), taken));
            }
        vf_store(y + half, vf_add(vf_load(y + half), c));
    }
}

/*
 * d_k or d_v of the panel from key j on, through these queries. x: P or dS at key j; b:
 * channel panels; keep: which of P are kept, or NULL.
 */
V_INLINE void bwd_keys(const bool dp, const bwd_block *a, const float *x, int64_t x_row,
                       const float *b, int64_t dim, const uint32_t *keep, const bwd_runs *runs,
                       int64_t j, float *y) {
    const int64_t n_keys = a->n_keys - j < QKVI_BWD_PANEL ? a->n_keys - j : QKVI_BWD_PANEL;
    for (int64_t d = 0; d < dim; d += QKVI_BWD_PANEL) {
        const float *panel = b + (d * QKVI_BWD_QUERIES >> dp);
        float *sums = y + d * QKVI_BWD_KEYS + j * QKVI_BWD_PANEL;
        for (int64_t r = 0, rows; r < n_keys; r += rows) {
            rows = a->select ? 1 : bwd_tile_rows(n_keys - r);
            if (a->select)
                (dp ? bwd_key_selected_dp : bwd_key_selected)(a, j + r, x + r, x_row, panel, keep,
                                                              runs, sums + r * QKVI_BWD_PANEL);
            else
                BWD_TILE(rows, bwd_key_tile, dp, x + r, x_row, panel, runs,
                         sums + r * QKVI_BWD_PANEL);
        }
    }
}

/* P and dS of rows [from, to) and the panel from key j on, as the products take them. */
V_INLINE void bwd_operands(const bool dp, const bwd_block *a, int64_t from, int64_t to, int64_t j) {
    bwd_weights(dp, a, from, to, j);
    if (dp) bwd_round(a, from, to, j);
}

/* P and dS of the block, and what they add to d_k and d_v. */
V_INLINE void bwd_keys_by(const bool dp, const bwd_block *a) {
    for (int64_t j = 0; j < a->n_keys; j += QKVI_BWD_PANEL) {
        int64_t from = 0, to = a->n_queries; /* the rows that see a key of this panel */
        while (from < to && a->end[from] <= j) from++;
        while (to > from && a->begin[to - 1] >= j + QKVI_BWD_PANEL) to--;
        const bwd_runs runs = bwd_queries_of_panel(a, j, from, to);
        if (runs.n == 0) continue;
        if (bwd_alike(a, 0) ==
            a->n_queries) { /* whole tiles, as bwd_block_queries will take them */
            const int64_t first = from / V_MR * V_MR, last = (to + V_MR - 1) / V_MR * V_MR;
            bwd_operands(dp, a, first, last < a->n_queries ? last : a->n_queries, j);
        } else {
            const bwd_runs shown = bwd_queries_of_panel(a, j, 0, a->n_queries);
            for (int n = 0; n < shown.n; n++) bwd_operands(dp, a, shown.from[n], shown.to[n], j);
        }
        const float *const p = dp ? (const float *)a->p_pairs : a->p;
        const float *const d_s = dp ? (const float *)a->d_s_pairs : a->d_s + j;
        bwd_keys(dp, a, p, QKVI_BWD_P_ROW, a->d_o, a->head_dim_v, a->dropout ? a->keep : NULL,
                 &runs, j, a->d_v);
        bwd_keys(dp, a, d_s, dp ? QKVI_BWD_P_ROW : QKVI_BWD_DS_ROW, a->q, a->head_dim, NULL, &runs,
                 j, a->d_k);
    }
}

static void bwd_keys_in_floats(const bwd_block *a) { bwd_keys_by(false, a); }
static void bwd_keys_in_pairs(const bwd_block *a) { bwd_keys_by(true, a); }

/* table.h */
static void bwd_block_keys(const bwd_block *a) {
    if (a->dp)
        bwd_keys_in_pairs(a);
    else if (ISA_SHARES)
        SHARED(bwd).keys(a);
    else
        bwd_keys_in_floats(a);
}

#endif
