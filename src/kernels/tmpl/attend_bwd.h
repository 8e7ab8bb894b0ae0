/*
 * Attention, backward: the block kernel. kernels/attend_bwd.h has the layout, docs/numerics.md the
 * order.
 *
 * Forward lines, per query i and visible key j:      s = <q_i, k_j> scale,  s = cap tanh(s / cap),
 * s += mask
 *                                                    p = exp(s - lse_i),    o_i += p v_j
 * Backward:                  dv_j += p do_i          dp = <do_i, v_j>       ds = p (dp - delta_i) t
 *                            dq_i += ds k_j scale    dk_j += ds q_i scale         t = 1 - tanh(s / cap)^2
 *
 * With dropout:              dv_j += w do_i           w = keep p / (1 - dropout)
 *                            ds = p (keep dp / (1 - dropout) - delta_i) t
 * where the caller divides the sum of dv.
 *
 * P and dS of a panel of keys: attend_bwd_scores.h; here are the sums over them, and delta in
 * attend_bwd_delta.h. Hidden p and ds are +0, which adds nothing to a chain but perhaps the sign of
 * a zero, and that is lost in the sums, unless its partner is not finite: `select` then walks the
 * visible pairs only.
 */
#ifndef QKVI_TMPL_ATTEND_BWD_H
#define QKVI_TMPL_ATTEND_BWD_H

#include "kernels/tmpl/attend_bwd_delta.h"
#include "kernels/tmpl/attend_bwd_scores.h"

/* ---- What the block mask shows --------------------------------------------------------------- */

/* Queries, or keys, of a block: [from, to) each, in order. */
typedef struct bwd_runs {
    int n;
    int64_t from[4], to[4];
} bwd_runs;

/* Those of [from, to) that lie in shown groups of 32, a bit each, from group 0 on. */
V_INLINE bwd_runs bwd_runs_of(uint32_t groups, int64_t from, int64_t to) {
    bwd_runs runs = { .n = 0 };
    bool open = false;
    for (int64_t g = from / 32; from < to && 32 * g < to; g++) {
        const int64_t end = 32 * (g + 1) < to ? 32 * (g + 1) : to;
        const bool shown = groups >> g & 1;
        if (shown && open) {
            runs.to[runs.n - 1] = end;
        } else if (shown) {
            runs.from[runs.n] = 32 * g > from ? 32 * g : from;
            runs.to[runs.n++] = end;
        }
        open = shown;
    }
    return runs;
}

/* The queries of [from, to) to which the panel from key j on is shown. */
V_INLINE bwd_runs bwd_queries_of_panel(const bwd_block *a, int64_t j, int64_t from, int64_t to) {
    uint32_t groups = 0;
    for (int g = 0; g < QKVI_BWD_QUERIES / 32; g++)
        groups |= (a->panels[g] >> j / QKVI_BWD_PANEL & 1) << g;
    return bwd_runs_of(groups, from, to);
}

V_INLINE bool bwd_shown_to_all(const bwd_block *a, int64_t j) {
    bool all = true;
    for (int g = 0; 32 * g < a->n_queries; g++) all &= a->panels[g] >> j / QKVI_BWD_PANEL & 1;
    return all;
}

/* The end of the queries from i on, the first of a group, that are shown the same. */
V_INLINE int64_t bwd_alike(const bwd_block *a, int64_t i) {
    int64_t g = i / 32 + 1;
    while (32 * g < a->n_queries && a->panels[g] == a->panels[i / 32]) g++;
    return 32 * g < a->n_queries ? 32 * g : a->n_queries;
}

/* ---- dK and dV ------------------------------------------------------------------------------- */

/* y[rows][32] += X^T B: rows are keys, through these queries. x[key + query * x_row] */
V_INLINE void bwd_key_tile(const int mr, const float *x, int64_t x_row, const float *b,
                           const bwd_runs *runs, float *y) {
    for (int half = 0; half < 2; half += V_NV) {
        vf c[V_MR][V_NV];
        tile_zero(c);
        for (int n = 0; n < runs->n; n++)
            tile_product(mr, runs->to[n] - runs->from[n], x + runs->from[n] * x_row, 1, x_row,
                         b + runs->from[n] * QKVI_BWD_PANEL + 16 * half, c);
        float *to = y + 16 * half;
        V_UNROLL(12) for (int r = 0; r < mr; r++, to += QKVI_BWD_PANEL) {
            V_UNROLL(2) for (int v = 0; v < V_NV; v++) {
                vf_store(to + 16 * v, vf_add(vf_load(to + 16 * v), c[r][v]));
            }
        }
    }
}

/* The same for one key, over the queries that see it and, with keep, keep its weight. */
static void bwd_key_selected(const bwd_block *a, int64_t key, const float *x, int64_t x_row,
                             const float *b, const uint32_t *keep, const bwd_runs *runs, float *y) {
    for (int half = 0; half < 32; half += 16) {
        vf c = vf_set1(0);
        for (int n = 0; n < runs->n; n++)
            for (int64_t i = runs->from[n]; i < runs->to[n]; i++) {
                uint32_t see = a->see[i * (QKVI_BWD_KEYS / QKVI_BWD_PANEL) + key / 32];
                if (keep) see &= keep[i];
                if (see >> key % 32 & 1)
                    c = vf_fma(vf_set1(x[i * x_row]), vf_load(b + i * QKVI_BWD_PANEL + half), c);
            }
        vf_store(y + half, vf_add(vf_load(y + half), c));
    }
}

/*
 * d_k or d_v of the panel from key j on, through these queries. x: P or dS at key j; b:
 * channel panels; keep: which of P are kept, or NULL.
 */
static void bwd_keys(const bwd_block *a, const float *x, int64_t x_row, const float *b, int64_t dim,
                     const uint32_t *keep, const bwd_runs *runs, int64_t j, float *y) {
    const int64_t n_keys = a->n_keys - j < QKVI_BWD_PANEL ? a->n_keys - j : QKVI_BWD_PANEL;
    for (int64_t d = 0; d < dim; d += QKVI_BWD_PANEL) {
        const float *panel = b + d * QKVI_BWD_QUERIES;
        float *sums = y + d * QKVI_BWD_KEYS + j * QKVI_BWD_PANEL;
        for (int64_t r = 0, rows; r < n_keys; r += rows) {
            rows = a->select ? 1 : bwd_tile_rows(n_keys - r);
            if (a->select)
                bwd_key_selected(a, j + r, x + r, x_row, panel, keep, runs,
                                 sums + r * QKVI_BWD_PANEL);
            else
                BWD_TILE(rows, bwd_key_tile, x + r, x_row, panel, runs, sums + r * QKVI_BWD_PANEL);
        }
    }
}

/* P and dS of the block, and what they add to d_k and d_v. */
static void bwd_block_keys(const bwd_block *a) {
    for (int64_t j = 0; j < a->n_keys; j += QKVI_BWD_PANEL) {
        int64_t from = 0, to = a->n_queries; /* the rows that see a key of this panel */
        while (from < to && a->end[from] <= j) from++;
        while (to > from && a->begin[to - 1] >= j + QKVI_BWD_PANEL) to--;
        const bwd_runs runs = bwd_queries_of_panel(a, j, from, to);
        if (runs.n == 0) continue;
        if (bwd_alike(a, 0) ==
            a->n_queries) { /* whole tiles, as bwd_block_queries will take them */
            const int64_t first = from / V_MR * V_MR, last = (to + V_MR - 1) / V_MR * V_MR;
            bwd_weights(a, first, last < a->n_queries ? last : a->n_queries, j);
        } else {
            const bwd_runs shown = bwd_queries_of_panel(a, j, 0, a->n_queries);
            for (int n = 0; n < shown.n; n++) bwd_weights(a, shown.from[n], shown.to[n], j);
        }
        bwd_keys(a, a->p, QKVI_BWD_P_ROW, a->d_o, a->head_dim_v, a->dropout ? a->keep : NULL, &runs,
                 j, a->d_v);
        bwd_keys(a, a->d_s + j, QKVI_BWD_DS_ROW, a->q, a->head_dim, NULL, &runs, j, a->d_k);
    }
}

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

/* d_s of the panel from key j on, where the block mask shows it to some queries only. */
static void bwd_shown_panel(const bwd_block *a, int64_t j) {
    const bwd_runs shown = bwd_queries_of_panel(a, j, 0, a->n_queries);
    bwd_zero_panel(a, 0, a->n_queries, j);
    for (int n = 0; n < shown.n; n++) bwd_weights(a, shown.from[n], shown.to[n], j);
}

/* table.h */
static void bwd_block_mask(const bwd_block *a, bool sum_queries, bool sum_keys) {
    for (int64_t j = 0; j < a->n_keys; j += QKVI_BWD_PANEL) {
        int64_t from = 0, to = a->n_queries; /* the rows that see a key of this panel */
        if (!bwd_shown_to_all(a, j)) {
            bwd_shown_panel(a, j);
            continue;
        }
        while (from < to && a->end[from] <= j) from++;
        while (to > from && a->begin[to - 1] >= j + QKVI_BWD_PANEL) to--;
        const int64_t first = from / V_MR * V_MR;
        if (from < to) bwd_weights(a, first, to, j);
        bwd_zero_panel(a, 0, from < to ? first : a->n_queries, j);
        if (from < to) bwd_zero_panel(a, to, a->n_queries, j);
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

/*
 * dQ of rows [i, i + mr) of which `used` exist, through these keys of the block, channels [d,
 * d + 32).
 */
V_INLINE void bwd_q_tile(const int mr, const bwd_block *a, int64_t i, int64_t used,
                         const bwd_runs *runs, int64_t d) {
    for (int half = 0; half < 2; half += V_NV) {
        vf c[V_MR][V_NV];
        tile_zero(c);
        for (int n = 0; n < runs->n; n++)
            tile_product(mr, runs->to[n] - runs->from[n],
                         a->d_s + i * QKVI_BWD_DS_ROW + runs->from[n], QKVI_BWD_DS_ROW, 1,
                         a->k + d * QKVI_BWD_KEYS + runs->from[n] * QKVI_BWD_PANEL + 16 * half, c);
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

/* Queries [first, end), which are shown the same panels, and the keys of a chain from h on. */
static void bwd_queries_alike(const bwd_block *a, int64_t first, int64_t end, int64_t h) {
    for (int64_t i = first, rows; i < end; i += rows) {
        rows = a->select ? 1 : bwd_tile_rows(end - i);
        const int64_t used = rows < end - i ? rows : end - i;
        const int64_t from = a->begin[i] > h ? a->begin[i] : h;
        const int64_t last = a->end[i + used - 1];
        const int64_t to = last < h + QKVI_BWD_DEPTH ? last : h + QKVI_BWD_DEPTH;
        const bwd_runs runs = bwd_runs_of(a->panels[first / 32], from, to);
        for (int64_t d = 0; runs.n > 0 && d < a->head_dim; d += QKVI_BWD_PANEL)
            if (a->select)
                bwd_q_selected(a, i, &runs, d);
            else
                BWD_TILE(rows, bwd_q_tile, a, i, used, &runs, d);
    }
}

static void bwd_block_queries(const bwd_block *a) {
    for (int64_t h = 0; h < a->n_keys; h += QKVI_BWD_DEPTH)
        for (int64_t i = 0, end; i < a->n_queries; i = end) {
            end = bwd_alike(a, i);
            bwd_queries_alike(a, i, end, h);
        }
}

#define BWD_KERNELS                                                                                \
    {                                                                                              \
        .delta = EACH_TYPE(bwd_delta), .sink = bwd_sink, .keys = bwd_block_keys,                   \
        .queries = bwd_block_queries, .mask = bwd_block_mask                                       \
    }

#endif
