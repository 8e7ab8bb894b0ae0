/*
 * Attention, forward, in class amx: 16 rows at a time, so scores are finished where they are
 * stored, not in registers. Without the instruction, tile by tile.
 */
#ifndef QKVI_TMPL_ATTEND_AMX_H
#define QKVI_TMPL_ATTEND_AMX_H

#include "kernels/amx.h"
#include "kernels/tmpl/amx.h"
#include "kernels/tmpl/attend.h"

/* ---- Scores ---------------------------------------------------------------------------------- */

/*
 * All rows that may see keys of the panel from key j on: more scores than are needed where a mask
 * hides some, but whole tiles of 16.
 */
static void amx_sweep(const attend *a, int64_t key0, int64_t j) {
    qkvi_attend_scratch *w = a->scratch;
    int from = 0, to = a->n_queries;
    while (from < to && w->end[from] <= j) from++;
    while (from < to && w->begin[to - 1] >= j + 32) to--;
    from -= from % 16;
    if (from < to)
        qkvi_amx_scores(to - from, 2 * a->k_words, (const uint16_t *)a->q + from * a->q_row,
                        a->q_row, attend_k(a, j), w->s + from * QKVI_SCORE_ROW + (j - key0),
                        QKVI_SCORE_ROW);
}

/* Without the instruction: tile by tile. */
static void amx_products(const attend *a, int i, int rows, const uint32_t *panel, float *s) {
    for (int r = 0; r < rows; r++) memset(s + r * QKVI_SCORE_ROW, 0, 32 * sizeof *s);
    amx_tile(rows, 32, 2 * a->k_words, (const uint16_t *)a->q + i * a->q_row, a->q_row, panel, s,
             QKVI_SCORE_ROW);
}

/* What attend_score_tile does with a tile in registers. */
static void amx_scores(const attend *a, int i, const uint32_t *panel, float *s, float *max,
                       attend_end end, const mask_sight *sight, bool begin, qkvi_ahead *ahead) {
    const int rows = attend_rows(a, i);
    const vf scale = vf_set1(a->scale);
    vf top[V_MR];
    (void)ahead;
    if (a->class != QKVI_CLASS_AMX_TILES) amx_products(a, i, rows, panel, s);
    if (end == ATTEND_EDIT) return;
    for (int r = 0; r < rows; r++, s += QKVI_SCORE_ROW) {
        vf x0 = vf_load(s), x1 = vf_load(s + 16);
        if (end != ATTEND_AS_IT_IS) {
            x0 = attend_end_of(x0, sight, r, 0, scale, end);
            x1 = attend_end_of(x1, sight, r, 16, scale, end);
            vf_store(s, x0);
            vf_store(s + 16, x1);
        }
        top[r] = vf_max(x0, x1);
    }
    for (int r = rows; r < V_MR; r++) top[r] = vf_set1(0);
    for (int r = 0; r < rows; r += V_TOPS) attend_keep_max(top + r, max + 16 / V_TOPS * r, begin);
}

static void amx_scores_whole(const attend *a, attend_run rows, const uint32_t *panel, float *s,
                             bool begin, qkvi_ahead *ahead) {
    for (int i = rows.from; i < rows.to; i += V_MR)
        amx_scores(a, i, panel, s + i * QKVI_SCORE_ROW, attend_max(a->scratch, i), ATTEND_AS_IT_IS,
                   NULL, begin, ahead);
}

#define AMX_SCORES_NAME(R) amx_scores,
static attend_scores_function *const amx_scores_of[] = { NULL, TILE_EACH(AMX_SCORES_NAME) };

/* ---- Values ---------------------------------------------------------------------------------- */

/* c + P V over those of 32 keys that take part, at one step. */
static vf amx_selected(uint32_t take, const float *p, const uint32_t *v, vf c) {
    return take ? amx_step(c, take, p, v) : c;
}

/*
 * The step at which qkvi_amx_values announces its n lines, 0 for none. Of a stretch with fewer,
 * they are announced here.
 */
static int64_t amx_announce(qkvi_ahead *ahead, int64_t n) {
    qkvi_ahead_turn(ahead);
    if (ahead->left >= n) {
        ahead->left -= n;
        return ahead->step;
    }
    for (; ahead->left > 0; ahead->left--, ahead->at += ahead->step) v_prefetch(ahead->at);
    return 0;
}

/* P V of 16 rows, those of `rows` at the place of row i: their sums. */
static const float *amx_value_sums(const attend *a, int i, int rows, uint32_t panels,
                                   const uint32_t *v, qkvi_ahead *ahead, float sums[16 * 32]) {
    enum { LAST = QKVI_QUERY_BLOCK - 16 };
    const int first = i < LAST ? i : LAST; /* beyond the scores there are no rows */
    const bool by_tiles = a->class == QKVI_CLASS_AMX_TILES;
    const uint16_t *p = (const uint16_t *)(a->scratch->s + (by_tiles ? first : i) * QKVI_SCORE_ROW);
    if (by_tiles) {
        const int64_t step = amx_announce(ahead, 16 * __builtin_popcount(panels));
        qkvi_amx_values(panels, p, 2 * QKVI_SCORE_ROW, v, sums, ahead->at, step);
        ahead->at += step * 16 * __builtin_popcount(panels);
        return sums + 32 * (i - first);
    }
    memset(sums, 0, 16 * 32 * sizeof *sums);
    for (; panels; panels &= panels - 1) {
        const int panel = __builtin_ctz(panels);
        amx_tile(rows, 32, 32, p + 32 * panel, 2 * QKVI_SCORE_ROW, v + 512 * panel, sums, 32);
    }
    return sums;
}

/* O = fma(O, alpha, P V) for 16 rows at most and 32 channels. */
static void amx_value_rows(const attend *a, int i, int rows, const uint32_t *v, int64_t d,
                           qkvi_ahead *ahead) {
    _Alignas(64) float sums[16 * 32];
    const qkvi_attend_scratch *w = a->scratch;
    const qkvi_attend_tile *tile = &w->tile[i / V_MR];
    const float *c = amx_value_sums(a, i, rows, tile->panels, v, ahead, sums);
    float *o = a->o_sum + i * a->o_sum_row + d;
    for (int r = 0; r < rows; r++, c += 32, o += a->o_sum_row) {
        const vf x = vf_set1(w->alpha[i + r]);
        for (int at = 0; at < 32; at += 16) {
            const vf sum = vf_load(c + at);
            vf_store(o + at, tile->started ? vf_fma(vf_load(o + at), x, sum) : sum);
        }
    }
}

/* Do all rows take the same panels, so that 16 of them are as good as a tile? */
static bool amx_is_uniform(const attend *a) {
    const qkvi_attend_tile *tile = a->scratch->tile;
    for (int t = 1; t * V_MR < a->n_queries; t++)
        if (tile[t].panels != tile[0].panels || tile[t].started != tile[0].started) return false;
    return a->class == QKVI_CLASS_AMX_TILES;
}

static void amx_values(const attend *a, int64_t key0, int64_t end) {
    qkvi_attend_scratch *w = a->scratch;
    const bool finite = a->v_finite[(key0 - a->first_key) / QKVI_KEY_BLOCK];
    const int step = finite && amx_is_uniform(a) ? 16 : V_MR;
    for (int64_t d = 0; d < a->head_dim_v; d += 32) {
        const uint32_t *v = attend_v(a, key0) + d * QKVI_KEY_BLOCK / 2;
        for (int i = 0; i < a->n_queries; i += step) {
            const qkvi_attend_tile *tile = &w->tile[i / V_MR];
            const int rows = a->n_queries - i < step ? a->n_queries - i : step;
            qkvi_ahead none = { .at = (const char *)w };
            qkvi_ahead *const ahead = key0 + QKVI_KEY_BLOCK >= end ? attend_fetch(w) : &none;
            if (!tile->panels) continue;
            if (finite || !tile->partial)
                amx_value_rows(a, i, rows, v, d, ahead);
            else
                for (int r = i; r < i + rows; r++)
                    attend_values_selected(a, r, key0, tile->panels, v,
                                           a->o_sum + r * a->o_sum_row + d, !tile->started);
        }
    }
}

#endif
