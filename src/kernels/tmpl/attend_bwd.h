/*
 * Attention, backward: the block kernel. kernels/attend_bwd.h has the layout, docs/numerics.md the
 * order.
 *
 * Forward lines, per query i and visible key j:
 *     s = <q_i, k_j> scale,  s = cap tanh(s / cap),  s += mask,  p = exp(s - lse_i),  o_i += p v_j
 * Backward:
 *     dp = <do_i, v_j>   ds = p (dp - delta_i) t   t = 1 - tanh(s / cap)^2
 *     dv_j += p do_i     dq_i += ds k_j scale      dk_j += ds q_i scale
 *
 * With dropout:              dv_j += w do_i           w = keep p / (1 - dropout)
 *                            ds = p (keep dp / (1 - dropout) - delta_i) t
 * where the caller divides the sum of dv.
 *
 * P and dS of a panel of keys are in attend_bwd_scores.h, sums over queries in attend_bwd_keys.h,
 * delta in attend_bwd_delta.h, sums over keys here. Hidden p and ds are +0, which adds nothing to a
 * chain but perhaps the sign of a zero, and that is lost in the sums, unless its partner is not
 * finite: `select` then walks the visible pairs only.
 */
#ifndef QKVI_TMPL_ATTEND_BWD_H
#define QKVI_TMPL_ATTEND_BWD_H

#include "kernels/tmpl/attend_bwd_delta.h"
#include "kernels/tmpl/attend_bwd_keys.h"

/* ---- The gradient of the mask ---------------------------------------------------------------- */

V_INLINE void bwd_zero_panel(const bwd_block *a, int64_t from, int64_t to, int64_t j) {
    for (int64_t i = from; i < to; i++)
        for (int v = 0; v < 32; v += 16) vf_store(a->d_s + i * QKVI_BWD_DS_ROW + j + v, vf_set1(0));
}

/* Row i becomes its sum: 32 partial sums, then a tree. */
V_INLINE void bwd_sum_row(const bwd_block *a, int64_t i) {
    float *row = a->d_s + i * QKVI_BWD_DS_ROW;
    vf sum0 = vf_load(row), sum1 = vf_load(row + 16);
    for (int64_t j = QKVI_BWD_PANEL; j < a->n_keys; j += QKVI_BWD_PANEL) {
        sum0 = vf_add(sum0, vf_load(row + j));
        sum1 = vf_add(sum1, vf_load(row + j + 16));
    }
    row[0] = vf_sum(vf_add(sum0, sum1));
}

static void bwd_any_weights(const bwd_block *a, int64_t from, int64_t to, int64_t j) {
    if (a->dp)
        bwd_weights(true, a, from, to, j);
    else
        bwd_weights(false, a, from, to, j);
}

/* d_s of the panel from key j on, where the block mask shows it to some queries only. */
static void bwd_shown_panel(const bwd_block *a, int64_t j) {
    const bwd_runs shown = bwd_queries_of_panel(a, j, 0, a->n_queries);
    bwd_zero_panel(a, 0, a->n_queries, j);
    for (int n = 0; n < shown.n; n++) bwd_any_weights(a, shown.from[n], shown.to[n], j);
}

/* d_s of the panel from key j on. */
static void bwd_whole_panel(const bwd_block *a, int64_t j) {
    int64_t from = 0, to = a->n_queries; /* the rows that see a key of this panel */
    while (from < to && a->end[from] <= j) from++;
    while (to > from && a->begin[to - 1] >= j + QKVI_BWD_PANEL) to--;
    const int64_t first = from / V_MR * V_MR;
    if (from < to) bwd_any_weights(a, first, to, j);
    bwd_zero_panel(a, 0, from < to ? first : a->n_queries, j);
    if (from < to) bwd_zero_panel(a, to, a->n_queries, j);
}

/* table.h */
static void bwd_block_mask(const bwd_block *given, bool sum_queries, bool sum_keys) {
    bwd_block whole = *given;
    const bwd_block *const a = &whole;
    whole.whole = true;
    for (int64_t j = 0; j < a->n_keys; j += QKVI_BWD_PANEL) {
        (bwd_shown_to_all(a, j) ? bwd_whole_panel : bwd_shown_panel)(a, j);
        if (a->dp) bwd_round(a, 0, a->n_queries, j);
    }
    for (int64_t i = 0; sum_keys && i < a->n_queries; i++) bwd_sum_row(a, i);
    const int64_t n = sum_keys ? 1 : qkvi_round_up(a->n_keys, 16);
    for (int64_t i = 1; sum_queries && i < a->n_queries; i++)
        for (int64_t j = 0; j < n; j += 16) {
            float *sum = a->d_s + j;
            vf_store(sum, vf_add(vf_load(sum), vf_load(sum + i * QKVI_BWD_DS_ROW)));
        }
}

/* ---- dQ -------------------------------------------------------------------------------------- */

/* y = y + c scale + 0: a zero is positive, whatever was skipped. */
V_INLINE vf bwd_added(vf y, vf c, vf scale) { return vf_add(vf_fma(c, scale, y), vf_set1(0)); }

/* The first n of 16 elements of the caller's row. */
V_INLINE void bwd_add_row(float *y, vf c, vf scale, int64_t n) {
    if (n >= 16)
        vf_storeu(y, bwd_added(vf_loadu(y), c, scale));
    else if (n > 0)
        vf_store_n(y, bwd_added(vf_load_n(y, (int)n), c, scale), (int)n);
}

/* c += dS K of rows from i on, through these keys; k: channels from d on of key 0. */
V_INLINE void bwd_q_product(const bool dp, const int mr, const bwd_block *a, int64_t i,
                            const float *k, const bwd_runs *runs, vf c[V_MR][V_NV]) {
    for (int n = 0; n < runs->n; n++) {
        const int64_t from = runs->from[n], to = runs->to[n], pair = from / 2;
        if (dp)
            dp_product(mr, 2 * bwd_n_pairs(from, to), a->d_s_rows + i * QKVI_BWD_DS_ROW + 2 * pair,
                       QKVI_BWD_DS_ROW * sizeof *a->d_s_rows,
                       (const uint32_t *)k + pair * QKVI_BWD_PANEL, c, NULL);
        else
            tile_product(mr, to - from, a->d_s + i * QKVI_BWD_DS_ROW + from, QKVI_BWD_DS_ROW, 1,
                         k + from * QKVI_BWD_PANEL, c);
    }
}

/*
 * dQ of rows [i, i + mr) of which `used` exist, through these keys of the block, channels [d,
 * d + 32).
 */
V_INLINE void bwd_q_tile(const int mr, const bool dp, const bwd_block *a, int64_t i, int64_t used,
                         const bwd_runs *runs, int64_t d) {
    for (int half = 0; half < 2; half += V_NV) {
        vf c[V_MR][V_NV];
        tile_zero(c);
        bwd_q_product(dp, mr, a, i, a->k + (d * QKVI_BWD_KEYS >> dp) + 16 * half, runs, c);
        float *y = a->d_q + i * a->d_q_stride + d + 16 * half;
        V_UNROLL(12) for (int r = 0; r < mr; r++, y += a->d_q_stride) {
            if (r >= used) continue;
            V_UNROLL(2) for (int v = 0; v < V_NV; v++) {
                const int64_t left = a->head_dim - d - 16 * (half + v);
                bwd_add_row(y + 16 * v, c[r][v], vf_set1(a->scale), left);
            }
        }
    }
}

static void bwd_q_selected(const bwd_block *a, int64_t i, const bwd_runs *runs, int64_t d) {
    for (int half = 0; half < 32; half += 16) {
        vf c = vf_set1(0);
        for (int n = 0; n < runs->n; n++)
            for (int64_t j = runs->from[n]; j < runs->to[n]; j++) {
                const uint32_t see = a->see[i * (QKVI_BWD_KEYS / QKVI_BWD_PANEL) + j / 32];
                const float *k = a->k + d * QKVI_BWD_KEYS + j * QKVI_BWD_PANEL + half;
                if (see >> j % 32 & 1)
                    c = vf_fma(vf_set1(a->d_s[i * QKVI_BWD_DS_ROW + j]), vf_load(k), c);
            }
        bwd_add_row(a->d_q + i * a->d_q_stride + d + half, c, vf_set1(a->scale),
                    a->head_dim - d - half);
    }
}

/* In class dp: of a pair of keys those that are seen, the other is a pair of zeros. */
static void bwd_q_selected_dp(const bwd_block *a, int64_t i, const bwd_runs *runs, int64_t d) {
    const uint32_t *const see = a->see + i * (QKVI_BWD_KEYS / QKVI_BWD_PANEL);
    for (int half = 0; half < 32; half += 16) {
        const float *const k = a->k + d * QKVI_BWD_KEYS / 2 + half;
        vf c = vf_set1(0);
        for (int n = 0; n < runs->n; n++)
            for (int64_t j = runs->from[n] / 2 * 2; j < runs->to[n]; j += 2) {
                const uint32_t seen = see[j / 32] >> j % 32 & 3;
                const vi taken = vi_set1((int32_t)dp_half(seen));
                if (seen)
                    c = v_dp(c, vi_and(dp_set1(a->d_s_rows + i * QKVI_BWD_DS_ROW + j), taken),
                             vi_and(dp_load(k + j / 2 * QKVI_BWD_PANEL), taken));
            }
        bwd_add_row(a->d_q + i * a->d_q_stride + d + half, c, vf_set1(a->scale),
                    a->head_dim - d - half);
    }
}

/* Queries [first, end), which are shown the same panels, and the keys of a chain from h on. */
V_INLINE void bwd_queries_alike(const bool dp, const bwd_block *a, int64_t first, int64_t end,
                                int64_t h) {
    for (int64_t i = first, rows; i < end; i += rows) {
        rows = a->select ? 1 : bwd_tile_rows(end - i);
        const int64_t used = rows < end - i ? rows : end - i;
        const int64_t from = a->begin[i] > h ? a->begin[i] : h;
        const int64_t last = a->end[i + used - 1];
        const int64_t to = last < h + QKVI_BWD_DEPTH ? last : h + QKVI_BWD_DEPTH;
        const bwd_runs runs = bwd_runs_of(a->panels[first / 32], from, to);
        for (int64_t d = 0; runs.n > 0 && d < a->head_dim; d += QKVI_BWD_PANEL)
            if (a->select)
                (dp ? bwd_q_selected_dp : bwd_q_selected)(a, i, &runs, d);
            else
                BWD_TILE(rows, bwd_q_tile, dp, a, i, used, &runs, d);
    }
}

V_INLINE void bwd_queries_by(const bool dp, const bwd_block *a) {
    for (int64_t h = 0; h < a->n_keys; h += QKVI_BWD_DEPTH)
        for (int64_t i = 0, end; i < a->n_queries; i = end) {
            end = bwd_alike(a, i);
            bwd_queries_alike(dp, a, i, end, h);
        }
}

static void bwd_queries_in_floats(const bwd_block *a) { bwd_queries_by(false, a); }
static void bwd_queries_in_pairs(const bwd_block *a) { bwd_queries_by(true, a); }

/* table.h */
static void bwd_block_queries(const bwd_block *a) {
    if (a->dp)
        bwd_queries_in_pairs(a);
    else if (ISA_SHARES)
        SHARED(bwd).queries(a);
    else
        bwd_queries_in_floats(a);
}

#define BWD_KERNELS                                                                                \
    {                                                                                              \
        .delta = EACH_TYPE(bwd_delta), .delta_pairs = bwd_delta_pairs, .sink = bwd_sink,           \
        .keys = bwd_block_keys, .queries = bwd_block_queries, .mask = bwd_block_mask               \
    }

#endif
