/*
 * Attention, backward: weights P and derivatives of the scores dS of a panel of 32 keys, by the
 * lines of attend_bwd.h.
 *
 * A tile that is wholly visible, without mask or soft cap, has p and ds computed in its registers;
 * any other is stored as scores and finished row by row.
 */
#ifndef QKVI_TMPL_ATTEND_BWD_SCORES_H
#define QKVI_TMPL_ATTEND_BWD_SCORES_H

#include <math.h>

#include "kernels/attend_bwd.h"
#include "kernels/tmpl/dp.h"
#include "kernels/tmpl/dropout.h"
#include "kernels/tmpl/mask_bits.h"
#include "kernels/tmpl/pack.h"

#define BWD_LOG2E 1.44269504f

/*
 * Register tiles have V_MR rows, or two thirds or one third of it at the end of a block: 12, 8, 4
 * or 6, 4, 2.
 */
#define BWD_THIRD (V_MR / 3)

V_INLINE int bwd_tile_rows(int64_t n) {
    return n >= V_MR ? V_MR : (int)((n + BWD_THIRD - 1) / BWD_THIRD) * BWD_THIRD;
}

/* Calls f(rows as a constant, …). */
#define BWD_TILE(rows, f, ...)                                                                     \
    do {                                                                                           \
        if ((rows) == V_MR)                                                                        \
            f(V_MR, __VA_ARGS__);                                                                  \
        else if ((rows) == 2 * BWD_THIRD)                                                          \
            f(2 * BWD_THIRD, __VA_ARGS__);                                                         \
        else                                                                                       \
            f(BWD_THIRD, __VA_ARGS__);                                                             \
    } while (0)

typedef struct qkvi_bwd_block bwd_block;

/* Row i of dS from key j on: of the key block, or of the one panel that there is room for. */
V_INLINE float *bwd_d_s(const bwd_block *a, int64_t i, int64_t j) {
    return a->d_s + i * QKVI_BWD_DS_ROW + (a->whole ? j : 0);
}

/* Q or dO, by rows where the class has pairs, and the keys that they meet. */
typedef struct bwd_factors {
    const float *panels;
    const uint16_t *rows;
    int64_t row;
    const float *b;
    int64_t dim;
} bwd_factors;

/* c = rows [i, i + mr) of X times the panel from key j on, columns from `half` on. */
V_INLINE void bwd_scores(const bool dp, const int mr, const bwd_factors *f, int64_t i, int64_t j,
                         int half, vf c[V_MR][V_NV]) {
    const int64_t dim = f->dim;
    tile_zero(c);
    if (dp) {
        const uint32_t *pairs = (const uint32_t *)f->b + j * ((dim + 1) / 2) + half;
        dp_product(mr, dim, f->rows + i * f->row, 2 * f->row, pairs, c, NULL);
        return;
    }
    const float *const x = f->panels, *const b = f->b + j * dim + half;
    for (int64_t d = 0; d < dim; d += QKVI_BWD_PANEL) {
        const int64_t n = dim - d < QKVI_BWD_PANEL ? dim - d : QKVI_BWD_PANEL;
        tile_product(mr, n, x + d * QKVI_BWD_QUERIES + i * QKVI_BWD_PANEL, QKVI_BWD_PANEL, 1,
                     b + d * QKVI_BWD_PANEL, c);
    }
}

/* ---- Weights: P ------------------------------------------------------------------------------ */

/*
 * A tile of P whose keys all rows see, p = exp2((s - lse) log2e), or with finish false the tile of
 * s.
 */
V_INLINE void bwd_p_tile(const int mr, const bool dp, const bwd_block *a, int64_t i, int64_t j,
                         const bool finish) {
    const vf scale = vf_set1(a->scale), log2e = vf_set1(BWD_LOG2E);
    const bwd_factors f = { a->q, a->q_rows, a->q_row, a->k_t, a->head_dim };
    for (int half = 0; half < 2; half += V_NV) {
        vf c[V_MR][V_NV];
        bwd_scores(dp, mr, &f, i, j, 16 * half, c);
        float *p = a->p + i * QKVI_BWD_P_ROW + 16 * half;
        V_UNROLL(12) for (int r = 0; r < mr; r++, p += QKVI_BWD_P_ROW) {
            const vf lse = vf_set1(a->lse[i + r]);
            V_UNROLL(2) for (int v = 0; v < V_NV; v++) {
                const vf x = vf_mul(c[r][v], scale);
                vf_store(p + 16 * v, finish ? vf_exp2(vf_mul(vf_sub(x, lse), log2e)) : x);
            }
        }
    }
}

/* Row i of P from its scores, 32 keys from j on: every rule; hidden weights are 0. */
V_INLINE uint32_t bwd_p_row(const bwd_block *a, int64_t i, int64_t j, float *p, float *t) {
    const int n = (int)(a->n_keys - j < 32 ? a->n_keys - j : 32);
    const bool biases = mask_biases(&a->mask);
    uint32_t see = mask_range(a->begin[i] - j, a->end[i] - j);
    vf bias[2] = { vf_set1(0), vf_set1(0) };
    if (see && mask_hides(&a->mask)) see &= mask_bits(&a->mask, i, j, n);
    if (biases) mask_adds(&a->mask, i, j, n, bias);
    for (int v = 0; v < 2; v++) {
        vf s = vf_loadu(p + 16 * v);
        if (a->softcap > 0) {
            const vf cap = vf_set1(a->softcap), h = vf_tanh(vf_div(s, cap));
            vf_storeu(t + 16 * v, vf_fnma(h, h, vf_set1(1)));
            s = vf_mul(cap, h);
        }
        if (biases) s = vf_add(s, bias[v]);
        const vf x = vf_mul(vf_sub(s, vf_set1(a->lse[i])), vf_set1(BWD_LOG2E));
        const vm seen = vm_of_bits(see >> 16 * v & 0xFFFF);
        vf_storeu(p + 16 * v, vf_select(seen, vf_exp2(x), vf_set1(0)));
    }
    return see;
}

/* ---- Derivatives of the scores: dS ----------------------------------------------------------- */

/*
 * A tile of dS whose keys all rows see, ds = p (dp - delta), or with finish false the tile of dp -
 * delta; with dropout that of dp.
 */
V_INLINE void bwd_ds_tile(const int mr, const bool dp, const bwd_block *a, int64_t i, int64_t j,
                          const bool finish) {
    const bwd_factors f = { a->d_o, a->d_o_rows, a->d_o_row, a->v_t, a->head_dim_v };
    for (int half = 0; half < 2; half += V_NV) {
        vf c[V_MR][V_NV];
        bwd_scores(dp, mr, &f, i, j, 16 * half, c);
        const float *p = a->p + i * QKVI_BWD_P_ROW + 16 * half;
        float *d_s = bwd_d_s(a, i, j) + 16 * half;
        V_UNROLL(12) for (int r = 0; r < mr; r++, p += QKVI_BWD_P_ROW, d_s += QKVI_BWD_DS_ROW) {
            const vf delta = vf_set1(a->dropout ? 0 : a->delta[i + r]);
            V_UNROLL(2) for (int v = 0; v < V_NV; v++) {
                const vf d_p = vf_sub(c[r][v], delta);
                vf_store(d_s + 16 * v, finish ? vf_mul(d_p, vf_load(p + 16 * v)) : d_p);
            }
        }
    }
}

V_INLINE bool bwd_through_cap(const bwd_block *a) { return a->softcap > 0 && !a->capped; }

V_INLINE void bwd_ds_row(const bwd_block *a, uint32_t see, const float *p, const float *t,
                         float *d_s) {
    vf x = vf_mul(vf_loadu(d_s), vf_loadu(p));
    if (bwd_through_cap(a)) x = vf_mul(x, vf_loadu(t));
    vf_storeu(d_s, vf_select(vm_of_bits(see), x, vf_set1(0)));
}

/*
 * The same with dropout, ds = p (keep dp / (1 - dropout) - delta), for row i and 32 keys from j on;
 * then weights that are not kept become 0.
 */
V_INLINE void bwd_drop_row(const bwd_block *a, int64_t i, int64_t j, uint32_t see, float *p,
                           const float *t, float *d_s) {
    const vf factor = vf_set1(a->dropout->factor), delta = vf_set1(a->delta[i]), zero = vf_set1(0);
    vm kept[2];
    dropout_keeps(a->dropout, i, j, kept);
    a->keep[i] = vm_to_bits(kept[0]) | vm_to_bits(kept[1]) << 16;
    for (int v = 0; v < 2; v++) {
        const vf weight = vf_loadu(p + 16 * v), d_p = vf_loadu(d_s + 16 * v);
        vf x = vf_mul(vf_fms(vf_select(kept[v], d_p, zero), factor, delta), weight);
        if (bwd_through_cap(a)) x = vf_mul(x, vf_loadu(t + 16 * v));
        vf_storeu(d_s + 16 * v, vf_select(vm_of_bits(see >> 16 * v & 0xFFFF), x, zero));
        vf_storeu(p + 16 * v, vf_select(kept[v], weight, zero));
    }
}

/* ---- Both, of a panel ------------------------------------------------------------------------ */

/*
 * Do rows [i, i + rows) see all of the panel's keys from j on, with nothing to be done row by row?
 */
V_INLINE bool bwd_plain(const bwd_block *a, int64_t i, int64_t j, int rows) {
    const int64_t last_row = i + rows < a->n_queries ? i + rows - 1 : a->n_queries - 1;
    const int64_t last_key = j + QKVI_BWD_PANEL < a->n_keys ? j + QKVI_BWD_PANEL : a->n_keys;
    return !a->select && !(a->softcap > 0) && !mask_hides(&a->mask) && !mask_biases(&a->mask) &&
           a->begin[last_row] <= j && a->end[i] >= last_key;
}

V_INLINE void bwd_rows_of_tile(const bwd_block *a, int64_t i, int64_t j, int rows, bool weights) {
    for (int64_t r = i; r < i + rows && r < a->n_queries; r++) {
        uint32_t *see = a->see + r * (QKVI_BWD_KEYS / QKVI_BWD_PANEL) + j / QKVI_BWD_PANEL;
        float *p = a->p + r * QKVI_BWD_P_ROW, *t = a->t ? a->t + r * QKVI_BWD_P_ROW : NULL;
        float *d_s = bwd_d_s(a, r, j);
        if (weights)
            *see = bwd_p_row(a, r, j, p, t);
        else
            for (int v = 0; v < 32; v += 16)
                bwd_ds_row(a, *see >> v & 0xFFFF, p + v, t ? t + v : NULL, d_s + v);
    }
}

/* dS and kept P of the rows [i, i + rows); plain: every weight is seen. */
static void bwd_drop_rows(const bwd_block *a, int64_t i, int64_t j, int rows, bool plain) {
    for (int64_t r = i; r < i + rows && r < a->n_queries; r++) {
        const uint32_t see = a->see[r * (QKVI_BWD_KEYS / QKVI_BWD_PANEL) + j / QKVI_BWD_PANEL];
        bwd_drop_row(a, r, j, plain ? UINT32_MAX : see, a->p + r * QKVI_BWD_P_ROW,
                     a->t ? a->t + r * QKVI_BWD_P_ROW : NULL, bwd_d_s(a, r, j));
    }
}

/* P and dS of rows [from, to) and the panel from key j on. */
V_INLINE void bwd_weights(const bool dp, const bwd_block *a, int64_t from, int64_t to, int64_t j) {
    for (int64_t i = from, rows; i < to; i += rows) {
        rows = bwd_tile_rows(to - i);
        const bool plain = bwd_plain(a, i, j, (int)rows);
        BWD_TILE(rows, bwd_p_tile, dp, a, i, j, plain);
        if (!plain) bwd_rows_of_tile(a, i, j, (int)rows, true);
    }
    for (int64_t i = from, rows; i < to; i += rows) {
        rows = bwd_tile_rows(to - i);
        const bool plain = bwd_plain(a, i, j, (int)rows);
        BWD_TILE(rows, bwd_ds_tile, dp, a, i, j, plain && !a->dropout);
        if (a->dropout)
            bwd_drop_rows(a, i, j, (int)rows, plain);
        else if (!plain)
            bwd_rows_of_tile(a, i, j, (int)rows, false);
    }
}

/* ---- Class dp: rounded ----------------------------------------------------------------------- */

/*
 * P and dS of rows [from, to), from even, and the panel from key j on: pairs, and rows of dS.
 * Beyond the last key p may be anything, so that dS is made 0 there: it may be half of a pair.
 */
static void bwd_round(const bwd_block *a, int64_t from, int64_t to, int64_t j) {
    const uint32_t there = mask_range(0, a->n_keys - j);
    for (int64_t i = from; i < to; i += 2) {
        const bool second = i + 1 < a->n_queries;
        const float *const p = a->p + i * QKVI_BWD_P_ROW, *const d_s = bwd_d_s(a, i, j);
        uint16_t *const row = a->d_s_rows + i * QKVI_BWD_DS_ROW + j;
        for (int v = 0; v < 32; v += 16) {
            const vf p1 = second ? vf_load(p + QKVI_BWD_P_ROW + v) : vf_set1(0);
            const vf s0 = vf_load(d_s + v);
            const vf s1 = second ? vf_load(d_s + QKVI_BWD_DS_ROW + v) : vf_set1(0);
            const vm key = vm_of_bits(there >> v & 0xFFFF);
            const vi rounded =
                dp_round(vf_select(key, s0, vf_set1(0)), vf_select(key, s1, vf_set1(0)));
            const int64_t at = i / 2 * QKVI_BWD_P_ROW + v;
            vf_store((float *)a->p_pairs + at, vi_as_vf(dp_weave(dp_round(vf_load(p + v), p1))));
            vf_store((float *)a->d_s_pairs + at, vi_as_vf(dp_weave(rounded)));
            dp_part(rounded, row + v, row + v + QKVI_BWD_DS_ROW);
        }
    }
}

#endif
