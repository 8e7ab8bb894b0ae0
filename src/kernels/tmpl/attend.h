/*
 * Attention, forward: the block kernel. kernels/attend.h has the layout, docs/numerics.md the
 * order, whose steps are quoted.
 *
 *     for each block of 256 keys:   scores S (attend_scores.h)   m, P = 2^(S - m), l   O = O alpha + P V
 *     at the end:                   o = O / l,   lse
 *
 * A hidden key has the score -inf and so p = 0 exactly. It adds 0 v to the sums of a row, which is
 * nothing as long as v is finite; a partly visible tile of a key block with other values in V walks
 * the visible keys only.
 */
#ifndef QKVI_TMPL_ATTEND_H
#define QKVI_TMPL_ATTEND_H

#include <string.h>

#include "kernels/tmpl/attend_exp.h"
#include "kernels/tmpl/attend_stats.h"
#include "kernels/tmpl/attend_stats_end.h"
#include "kernels/tmpl/dropout.h"

/* ---- Softmax: steps 4 to 6 ------------------------------------------------------------------- */

/* Step 4 for 16 rows whose greatest u is `top`: *m becomes their new reference; returns alpha. */
V_INLINE vf attend_raise(bool edits, vf top, vf *m) {
    const vf rise_by = vf_set1(edits ? ATTEND_RISE * ATTEND_LN2 : ATTEND_RISE);
    const vf to_log2 = vf_set1(edits ? ATTEND_LOG2E : 1), before = *m;
    const vm rise = vm_lt(vf_add(before, rise_by), top);
    *m = vf_select(rise, top, before);
    const vf fall = vf_mul(vf_sub(before, *m), to_log2);
    return vf_select(rise, vf_exp2_below_128(fall), vf_set1(1));
}

/* 16 rows at a time: new references, weights, sums. */
static void attend_softmax(const attend *a) {
    qkvi_attend_scratch *w = a->scratch;
    const float factor = attend_factor(a);
    const bool edits = attend_edits(a);
    const vf unit = vf_set1(edits ? 1 : factor);
    for (int g = 0; g < a->n_queries; g += 16) {
        const int end = g + 16 < a->n_queries ? g + 16 : a->n_queries;
        bool any = false;
        for (int i = g; i < end; i += V_TOPS) {
            const bool active = w->tile[i / V_MR].panels;
            if (!active) attend_no_max(w, i, i + 1);
            any |= active;
        }
        if (!any) continue;
        const vf score = attend_max_rows(w, g), top = vf_mul(score, unit);
        vf m = vf_load(w->m + g);
        const vf before = m, alpha = attend_raise(edits, top, &m);
        vf_store(w->m + g, m);
        vf_store(w->alpha + g, alpha);
        vf_store(w->shift + g, attend_shift(m));
        if (a->stats) {
            attend_stats_raise(a, g, score, before);
            attend_stats_rows(a, g, end, factor);
        } else {
            attend_exp_rows(a, g, end, factor, attend_exp_of[a->dp]);
        }
        vf_store(w->l + g, vf_fma(vf_load(w->l + g), alpha, vf_sum_rows(w->sum + 16 * g)));
        if (a->dp)
            vf_store(w->l_dp + g, vf_fma(vf_load(w->l_dp + g), alpha, vf_sum_rows(w->rounded)));
    }
}

/* ---- Dropout --------------------------------------------------------------------------------- */

/* n pairs of weights of row i from key j on, likewise; n a multiple of 16. */
static void dp_drop_row(const qkvi_dropout *d, int64_t i, int64_t j, int n, float *p) {
    for (int e = 0; e < n; e += 16) {
        uint32_t kept = dropout_bits(d, i, j + 2 * e);
        for (int w = e; w < e + 16; w++, kept >>= 2) dp_keep(p + w, kept & 3);
    }
}

/* Dropped weights become 0, after their sum; where a value is not finite they are left out. */
static void attend_drop(const attend *a, int64_t key0) {
    qkvi_attend_scratch *w = a->scratch;
    for (int i = 0; i < a->n_queries; i++) {
        qkvi_attend_tile *tile = &w->tile[i / V_MR];
        tile->partial |= tile->panels != 0;
        for (uint32_t panels = tile->panels; panels;) {
            const attend_run run = attend_next_run(&panels);
            const int64_t key = key0 + run.from;
            const int n = (run.to - run.from) >> a->dp;
            (a->dp ? dp_drop_row : dropout_row)(a->dropout, i, key, n,
                                                w->s + i * QKVI_SCORE_ROW + (run.from >> a->dp));
        }
    }
}

/* ---- Values: step 7 -------------------------------------------------------------------------- */

/*
 * O = fma(O, alpha, P V) for R rows and 32 channels, over the keys of the panels that lie in `in`;
 * in class dp its ends are even.
 */
V_INLINE void attend_value_tile(const bool dp, const int R, const float *p, uint32_t panels,
                                attend_run in, const float *v, const float *alpha, float *o,
                                int64_t o_row, bool begin, tile_ahead ahead) {
    for (int at = 0; at < 32; at += 16 * V_NV) {
        vf c[V_MR][V_NV];
        tile_zero(c);
        for (uint32_t left = panels; left;) {
            const attend_run run = attend_clip(attend_next_run(&left), in);
            if (dp)
                dp_product(R, run.to - run.from, p + run.from / 2,
                           QKVI_SCORE_ROW * (int64_t)sizeof *p,
                           (const uint32_t *)v + 16 * run.from + at, c, ahead);
            else
                tile_product_ahead(R, run.to - run.from, p + run.from, QKVI_SCORE_ROW, 1,
                                   v + 32 * run.from + at, c, 1, ahead);
        }
        V_UNROLL(12) for (int r = 0; r < R; r++) {
            const vf x = vf_set1(alpha[r]);
            V_UNROLL(2) for (int u = 0; u < V_NV; u++) {
                float *to = o + r * o_row + at + 16 * u;
                vf_store(to, begin ? c[r][u] : vf_fma(vf_load(to), x, c[r][u]));
            }
        }
    }
}

#define ATTEND_VALUES(R)                                                                           \
    static void attend_values_##R(const float *p, uint32_t panels, attend_run in, const float *v,  \
                                  const float *alpha, float *o, int64_t o_row, bool begin,         \
                                  tile_ahead ahead) {                                              \
        attend_value_tile(false, R, p, panels, in, v, alpha, o, o_row, begin, ahead);              \
    }                                                                                              \
    static void dp_values_##R(const float *p, uint32_t panels, attend_run in, const float *v,      \
                              const float *alpha, float *o, int64_t o_row, bool begin,             \
                              tile_ahead ahead) {                                                  \
        attend_value_tile(true, R, p, panels, in, v, alpha, o, o_row, begin, ahead);               \
    }
TILE_EACH(ATTEND_VALUES)
#define ATTEND_VALUES_NAME(R) attend_values_##R,
#define DP_VALUES_NAME(R)     dp_values_##R,
static void (*const attend_values_of[2][V_MR + 1])(
    const float *, uint32_t, attend_run, const float *, const float *, float *, int64_t, bool,
    tile_ahead) = { { NULL, TILE_EACH(ATTEND_VALUES_NAME) }, { NULL, TILE_EACH(DP_VALUES_NAME) } };

/* Which of the 32 keys from j on take part in the sum of values of row i. */
V_INLINE uint32_t attend_takes(const attend *a, int i, int64_t j) {
    const uint32_t see = attend_sees(a, i, j);
    return see && a->dropout ? see & dropout_bits(a->dropout, i, j) : see;
}

/* c + P V over those of 32 keys that take part. */
V_INLINE vf attend_selected(uint32_t take, const float *p, const float *v, vf c) {
    for (; take; take &= take - 1) {
        const int key = __builtin_ctz(take);
        c = vf_fma(vf_set1(p[key]), vf_load(v + 32 * key), c);
    }
    return c;
}

/* The same of pairs: of one that takes part by half, the other half is a zero. */
V_INLINE vf dp_selected(uint32_t take, const float *p, const float *v, vf c) {
    for (int pair = 0; take; pair++, take >>= 2) {
        if (!(take & 3)) continue;
        const vi half = vi_set1((int32_t)dp_half(take));
        c = v_dp(c, dp_set1(p + pair), vi_and(dp_load(v + 32 * pair), half));
    }
    return c;
}

/* The same in class amx, a panel at a step. */
V_INLINE vf amx_selected(uint32_t take, const float *p, const float *v, vf c) {
    return take ? amx_step(c, take, p, (const uint32_t *)v) : c;
}

/* The same for one row, over the keys of the panels that take part. */
static void attend_values_selected(const attend *a, int i, int64_t key0, uint32_t panels,
                                   const float *v, float *o, bool begin) {
    const float *p = a->scratch->s + i * QKVI_SCORE_ROW;
    for (int at = 0; at < 32; at += 16) {
        vf c = vf_set1(0);
        for (uint32_t left = panels; left; left &= left - 1) {
            const int first = 32 * __builtin_ctz(left);
            const uint32_t take = attend_takes(a, i, key0 + first);
            if (a->amx)
                c = amx_selected(take, p + first / 2, v + 16 * first + at, c);
            else if (a->dp)
                c = dp_selected(take, p + first / 2, v + 16 * first + at, c);
            else
                c = attend_selected(take, p + first, v + 32 * first + at, c);
        }
        if (!begin) c = vf_fma(vf_load(o + at), vf_set1(a->scratch->alpha[i]), c);
        vf_store(o + at, c);
    }
}

/* P V of 16 rows, those of `rows` at the place of row i: their sums. */
static const float *amx_value_sums(const attend *a, int i, int rows, uint32_t panels,
                                   const float *v, tile_ahead ahead, float sums[16 * 32]) {
    enum { LAST = QKVI_QUERY_BLOCK - 16 };
    const int first = i < LAST ? i : LAST; /* beyond the scores there are no rows */
    const uint16_t *p =
        (const uint16_t *)(a->scratch->s + (a->by_tiles ? first : i) * QKVI_SCORE_ROW);
    const uint32_t *pairs = (const uint32_t *)v;
    if (a->by_tiles) {
        qkvi_amx_values(panels, p, 2 * QKVI_SCORE_ROW, pairs, sums, ahead.at, ahead.step);
        return sums + 32 * (i - first);
    }
    memset(sums, 0, 16 * 32 * sizeof *sums);
    for (; panels; panels &= panels - 1) {
        const int panel = __builtin_ctz(panels);
        amx_tile(rows, 32, 32, p + 32 * panel, 2 * QKVI_SCORE_ROW, pairs + 512 * panel, sums, 32);
    }
    return sums;
}

/* O = fma(O, alpha, P V) for 16 rows at most and 32 channels. */
static void amx_value_rows(const attend *a, int i, int rows, const float *v, int64_t d,
                           tile_ahead ahead) {
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
    return a->by_tiles;
}

static void amx_values(const attend *a, int64_t key0, int64_t end) {
    qkvi_attend_scratch *w = a->scratch;
    const bool finite = a->v_finite[(key0 - a->first_key) / QKVI_KEY_BLOCK];
    const int step = finite && amx_is_uniform(a) ? 16 : V_MR;
    for (int64_t d = 0; d < a->head_dim_v; d += 32) {
        const float *v = attend_v(a, key0) + d * QKVI_KEY_BLOCK / 2;
        for (int i = 0; i < a->n_queries; i += step) {
            const qkvi_attend_tile *tile = &w->tile[i / V_MR];
            const int rows = a->n_queries - i < step ? a->n_queries - i : step;
            tile_ahead ahead = { (const char *)w, 0 };
            if (!tile->panels) continue;
            if (key0 + QKVI_KEY_BLOCK >= end)
                ahead = attend_fetch(w, 16 * __builtin_popcount(tile->panels));
            if (finite || !tile->partial)
                amx_value_rows(a, i, rows, v, d, ahead);
            else
                for (int r = i; r < i + rows; r++)
                    attend_values_selected(a, r, key0, tile->panels, v,
                                           a->o_sum + r * a->o_sum_row + d, !tile->started);
        }
    }
}

static void attend_values(const attend *a, int64_t key0, int64_t end) {
    qkvi_attend_scratch *w = a->scratch;
    const bool finite = a->v_finite[(key0 - a->first_key) / QKVI_KEY_BLOCK];
    const float *block = attend_v(a, key0);
    const bool last_block = key0 + QKVI_KEY_BLOCK >= end;
    tile_ahead ahead = attend_next_keys(a, key0, end);
    for (int64_t d = 0; d < a->head_dim_v; d += 32) {
        const float *v = block + (d * QKVI_KEY_BLOCK >> a->dp);
        for (int i = 0; i < a->n_queries; i += V_MR) {
            const qkvi_attend_tile *tile = &w->tile[i / V_MR];
            if (!tile->panels) continue;
            const int rows = attend_rows(a, i);
            float *o = a->o_sum + i * a->o_sum_row + d;
            if (finite || !tile->partial) {
                attend_run in = attend_within(w->begin[i], w->end[i + rows - 1], key0);
                if (a->dp) in.from -= in.from % 2, in.to += in.to % 2; /* others have weight 0 */
                const int64_t n = attend_depth(tile->panels, in) >> a->dp;
                if (last_block) ahead = attend_fetch(w, n);
                attend_values_of[a->dp][rows](w->s + i * QKVI_SCORE_ROW, tile->panels, in, v,
                                              w->alpha + i, o, a->o_sum_row, !tile->started, ahead);
                ahead.at += ahead.step * n * (2 / V_NV);
            } else {
                for (int r = 0; r < rows; r++)
                    attend_values_selected(a, i + r, key0, tile->panels, v, o + r * a->o_sum_row,
                                           !tile->started);
            }
        }
    }
}

/* ---- The block ------------------------------------------------------------------------------- */

static void attend_begin(const attend *a) {
    qkvi_attend_scratch *w = a->scratch;
    const int end = (a->n_queries + 15) / 16 * 16;
    for (int i = 0; i < end; i += 16) {
        vf_store(w->m + i, vf_set1(-INFINITY));
        vf_store(w->l + i, vf_set1(0));
        vf_store(w->l_dp + i, vf_set1(0));
    }
    /* rows that only fill the last group */
    attend_no_max(w, (a->n_queries + V_TOPS - 1) / V_TOPS * V_TOPS, end);
    for (int i = a->n_queries; i < end; i++) {
        vf_store(w->sum + 16 * i, vf_set1(0));
        vf_store(w->rounded + i % 16 * 16, vf_set1(0));
    }
    for (int t = 0; t * V_MR < a->n_queries; t++) w->tile[t].started = false;
    if (a->stats) attend_stats_begin(a);
}

/* Step 8: the sink is a last block of one score and no value. m and alpha of 16 rows become its. */
V_INLINE vf attend_sink_weight(bool edits, float sink, vf *m, vf *alpha) {
    const vf u = vf_set1(edits ? sink : sink * ATTEND_LOG2E);
    *alpha = attend_raise(edits, u, m);
    const vf to_log2 = vf_set1(edits ? ATTEND_LOG2E : 1);
    return vf_exp2_below_128(vf_mul(vf_sub(u, attend_shift(*m)), to_log2));
}

/* And l; returns alpha. */
V_INLINE vf attend_sink(bool edits, float sink, vf *m, vf *l) {
    vf alpha;
    const vf p = attend_sink_weight(edits, sink, m, &alpha);
    *l = vf_fma(*l, alpha, p);
    return alpha;
}

/* Step 9: lse of 16 rows. */
V_INLINE vf attend_lse(bool edits, vf m, vf l) {
    const vf ln2 = vf_set1(ATTEND_LN2), log_l = vf_log2(l);
    return edits ? vf_fma(log_l, ln2, m) : vf_mul(vf_add(m, log_l), ln2);
}

/* o = O alpha / l + 0: a zero is positive, whoever skipped what. */
static void attend_finish_row(const attend *a, int i, const float *sum, float alpha, float l) {
    float *o = a->o + i * a->o_row;
    for (int64_t d = 0; d < a->head_dim_v; d += 16) {
        vf x = vf_load(sum + d);
        if (a->has_sink) x = vf_mul(x, vf_set1(alpha));
        x = vf_add(vf_div(x, vf_set1(l)), vf_set1(0));
        if (a->head_dim_v - d >= 16)
            vf_storeu(o + d, x);
        else
            vf_store_n(o + d, x, (int)(a->head_dim_v - d));
    }
}

static void attend_fill_row(const attend *a, int i, float x) {
    for (int64_t d = 0; d < a->head_dim_v; d++) a->o[i * a->o_row + d] = x;
}

/* A row whose every score is -inf, or that has none. Returns its lse. */
static float attend_finish_empty(const attend *a, int i) {
    const bool seen = attend_sees_any(a, i), sink = a->has_sink && !(a->sink == -INFINITY);
    attend_fill_row(a, i, seen && !sink ? NAN : 0);
    return sink ? a->sink : seen ? NAN : -INFINITY;
}

/* Step 9. */
static void attend_finish(const attend *a) {
    qkvi_attend_scratch *w = a->scratch;
    for (int g = 0; g < a->n_queries; g += 16) {
        float lse[16], sums[16], alphas[16];
        vf l = vf_load(w->l + g), m = vf_load(w->m + g), alpha = vf_set1(1);
        vf sum = a->dp ? vf_load(w->l_dp + g) : l; /* what o is divided by */
        if (a->has_sink) {
            const vf p = attend_sink_weight(attend_edits(a), a->sink, &m, &alpha);
            l = vf_fma(l, alpha, p);
            sum = vf_fma(sum, alpha, p);
        }
        vf_storeu(alphas, alpha);
        vf_storeu(sums, a->dropout ? vf_mul(sum, vf_set1(a->dropout->kept)) : sum);
        vf_storeu(lse, attend_lse(attend_edits(a), m, l));
        for (int i = g; i < g + 16 && i < a->n_queries; i++) {
            if (w->m[i] == -INFINITY && w->l[i] == 0)
                lse[i - g] = attend_finish_empty(a, i);
            else
                attend_finish_row(a, i, a->o_sum + i * a->o_sum_row, alphas[i - g], sums[i - g]);
            if (a->dropout && a->dropout->kept == 0) attend_fill_row(a, i, 0);
            if (a->lse) a->lse[i * a->lse_row] = lse[i - g];
        }
        if (a->stats) attend_stats_end(a, g, m, l, alpha, lse);
    }
}

/*
 * What the block mask shows of the block of keys from key0 on. Returns the first key from which on
 * it shows something: key0, or that of a later block.
 */
static int64_t attend_next_shown(const attend *a, qkvi_block_list *blocks, int64_t key0) {
    int64_t next = INT64_MAX;
    bool any = false;
    for (int g = 0; 32 * g < a->n_queries; g++) {
        attend_panels(a, &blocks[g], g, key0);
        any |= a->scratch->panels[g] != 0;
        if (a->block_len && blocks[g].at < blocks[g].end && *blocks[g].at * a->block_len < next)
            next = *blocks[g].at * a->block_len;
    }
    return any ? key0 : next;
}

static void attend_block(const qkvi_attend *a) {
    qkvi_block_list blocks[QKVI_QUERY_BLOCK / 32];
    const int64_t begin = a->scratch->begin[0] / 32 * 32, end = a->scratch->end[a->n_queries - 1];
    attend_begin(a);
    if (a->by_tiles) qkvi_amx_begin();
    memcpy(blocks, a->blocks, sizeof blocks);
    for (int64_t key0 = begin / QKVI_KEY_BLOCK * QKVI_KEY_BLOCK; key0 < end;
         key0 += QKVI_KEY_BLOCK) {
        const int64_t from = begin > key0 ? begin : key0;
        const int64_t to = end < key0 + QKVI_KEY_BLOCK ? end : key0 + QKVI_KEY_BLOCK;
        const int64_t shown = attend_next_shown(a, blocks, key0);
        if (shown >= end) break;
        if (shown > key0) {
            key0 = shown / QKVI_KEY_BLOCK * QKVI_KEY_BLOCK - QKVI_KEY_BLOCK;
            continue;
        }
        for (int t = 0; t * V_MR < a->n_queries; t++) {
            a->scratch->tile[t].panels = 0;
            a->scratch->tile[t].partial = false;
        }
        attend_scores(a, key0, from, to);
        if (a->stats) attend_stats_block(a, key0, from, to);
        attend_softmax(a);
        if (a->dropout) attend_drop(a, key0);
        (a->amx ? amx_values : attend_values)(a, key0, end);
        for (int t = 0; t * V_MR < a->n_queries; t++)
            a->scratch->tile[t].started |= a->scratch->tile[t].panels != 0;
    }
    if (a->by_tiles) qkvi_amx_end();
    attend_finish(a);
}

#endif
