/*
 * Attention, forward, with statistics of the weights: what is summed while they are in registers or
 * in L1. docs/numerics.md, Statistics, has the order; include/qkv/stats.h what the sums mean.
 *
 * Weights and their sums are computed as attend_exp.h does, so o and lse have the bits of a call
 * without statistics. Two rows at a time; their scores are kept beside the weights that replace them.
 */
#ifndef QKVI_TMPL_ATTEND_STATS_H
#define QKVI_TMPL_ATTEND_STATS_H

#include "kernels/tmpl/attend_exp.h"
#include "kernels/tmpl/stats_mass.h"
#include "kernels/tmpl/stats_top.h"

V_INLINE void stats_keep(const attend_stats *t, qkvi_stats_sum which, int i, vf lanes) {
    vf_store(t->own.scratch->lanes[which] + i % 16 * 16, lanes);
}

/* ---- Weights, and the sums of p x and p p ---------------------------------------------------- */

V_INLINE void stats_exp_row(const bool dp, const attend_kind kind, const attend *a, int i,
                            float factor) {
    qkvi_attend_scratch *w = a->scratch;
    const attend_stats *t = a->stats;
    float *s = w->s + i * QKVI_SCORE_ROW, *scores = t->own.scratch->scores[i % 2];
    float *full = t->own.scratch->p[i % 2];
    const vf c = vf_set1(factor), m = vf_set1(w->shift[i]), least = vf_set1(-128);
    vf sum0 = vf_set1(0), sum1 = sum0, rounded = sum0;
    vf px0 = sum0, px1 = sum0, pp0 = sum0, pp1 = sum0;
    for (uint32_t panels = w->tile[i / V_MR].panels; panels;) {
        const attend_run run = attend_next_run(&panels);
        V_UNROLL_BY(2) for (int j = run.from; j < run.to; j += 32) {
            const vf s0 = vf_load(s + j), s1 = vf_load(s + j + 16);
            const vf x0 = attend_exponent(s0, c, m, kind), x1 = attend_exponent(s1, c, m, kind);
            const vf p0 = dp ? dp_exp2_below_128(x0) : vf_exp2_below_128(x0);
            const vf p1 = dp ? dp_exp2_below_128(x1) : vf_exp2_below_128(x1);
            vf_store(scores + j, s0);
            vf_store(scores + j + 16, s1);
            if (dp) rounded = v_dp(rounded, dp_store((uint16_t *)s + j, p0, p1), vi_set1(DP_ONES));
            vf_store((dp ? full : s) + j, p0);
            vf_store((dp ? full : s) + j + 16, p1);
            sum0 = vf_add(sum0, p0);
            sum1 = vf_add(sum1, p1);
            /* p is 0 below -126: x may be anything but an infinity */
            px0 = vf_fma(p0, vf_max(x0, least), px0);
            px1 = vf_fma(p1, vf_max(x1, least), px1);
            pp0 = vf_fma(p0, p0, pp0);
            pp1 = vf_fma(p1, p1, pp1);
        }
    }
    vf_store(w->sum + 16 * i, vf_add(sum0, sum1));
    if (dp) vf_store(w->rounded + i % 16 * 16, rounded);
    stats_keep(t, QKVI_SUM_PX, i, vf_add(px0, px1));
    stats_keep(t, QKVI_SUM_PP, i, vf_add(pp0, pp1));
}

#define STATS_EXP(name, dp, kind)                                                                  \
    static __attribute__((noinline)) void name(const attend *a, int i, float factor) {             \
        stats_exp_row(dp, kind, a, i, factor);                                                     \
    }
STATS_EXP(stats_exp_raw, false, ATTEND_RAW)
STATS_EXP(stats_exp_large, false, ATTEND_RAW_LARGE)
STATS_EXP(stats_exp_finished, false, ATTEND_FINISHED)
STATS_EXP(stats_dp_exp_raw, true, ATTEND_RAW)
STATS_EXP(stats_dp_exp_large, true, ATTEND_RAW_LARGE)
STATS_EXP(stats_dp_exp_finished, true, ATTEND_FINISHED)
static void (*const stats_exp_of[2][3])(const attend *, int, float) = {
    { stats_exp_raw, stats_exp_large, stats_exp_finished },
    { stats_dp_exp_raw, stats_dp_exp_large, stats_dp_exp_finished }
};

V_INLINE attend_kind stats_kind(const attend *a, int i) {
    if (attend_edits(a)) return ATTEND_FINISHED;
    return fabsf(a->scratch->shift[i]) < ATTEND_LARGE ? ATTEND_RAW : ATTEND_RAW_LARGE;
}

/* ---- Distances ------------------------------------------------------------------------------- */

/* Sums of p d, and of p d d. */
V_INLINE void stats_distances(const attend *a, const stats_row *r, int64_t key0,
                              const bool square) {
    const attend_stats *t = a->stats;
    const vf here = vf_set1((float)(t->position + r->i - key0));
    vf pd = vf_set1(0), pdd = pd;
    for (uint32_t panels = r->panels; panels;) {
        const attend_run run = attend_next_run(&panels);
        for (int j = run.from; j < run.to; j += 16) {
            const vf p = vf_load(r->p + j);
            const vf d = vf_abs(vf_sub(here, vf_load(t->own.scratch->place + j)));
            if (square) {
                const vf x = vf_mul(p, d);
                pd = vf_add(pd, x);
                pdd = vf_fma(x, d, pdd);
            } else {
                pd = vf_fma(p, d, pd);
            }
        }
    }
    stats_keep(t, QKVI_SUM_PD, r->i, pd);
    if (square) stats_keep(t, QKVI_SUM_PDD, r->i, pdd);
}

static __attribute__((noinline)) void stats_distance(const attend *a, const stats_row *r,
                                                     int64_t key0) {
    stats_distances(a, r, key0, false);
}

static __attribute__((noinline)) void stats_square_distance(const attend *a, const stats_row *r,
                                                            int64_t key0) {
    stats_distances(a, r, key0, true);
}

/* ---- Scores ---------------------------------------------------------------------------------- */

V_INLINE bool stats_wants_scores(const attend_stats *t) {
    return t->logit_mean || t->logit_variance || t->logit_largest || t->n_seen;
}

/* Scores above -inf: how many, sums of their distance from the origin and its square, max |s|. */
static __attribute__((noinline)) void stats_scores(const attend *a, const stats_row *r) {
    const attend_stats *t = a->stats;
    const vf zero = vf_set1(0), none = vf_set1(-INFINITY),
             origin = vf_set1(t->own.scratch->origin[r->i]);
    float *largest = t->own.scratch->largest + 16 * r->i;
    vf sum = zero, squares = zero, most = vf_load(largest);
    int64_t n = 0;
    for (uint32_t panels = r->panels; panels;) {
        const attend_run run = attend_next_run(&panels);
        for (int j = run.from; j < run.to; j += 16) {
            const vf s = vf_load(r->scores + j);
            const vm seen = vm_lt(none, s);
            const vf x = vf_select(seen, vf_sub(s, origin), zero);
            n += __builtin_popcount(vm_to_bits(seen));
            sum = vf_add(sum, x);
            squares = vf_fma(x, x, squares);
            most = vf_max(vf_select(seen, vf_abs(s), zero), most);
        }
    }
    t->own.scratch->n_seen[r->i] += n;
    vf_store(largest, most);
    stats_keep(t, QKVI_SUM_S, r->i, sum);
    stats_keep(t, QKVI_SUM_SS, r->i, squares);
}

/* ---- Rows of a block of keys ----------------------------------------------------------------- */

/* 16 rows, whose greatest scores in this block and references before it these are. */
static void attend_stats_raise(const attend *a, int g, vf score, vf before) {
    qkvi_stats_scratch *t = a->stats->own.scratch;
    const qkvi_attend_scratch *w = a->scratch;
    const vf none = vf_set1(-INFINITY), alpha = vf_load(w->alpha + g);
    const vf fall =
        vf_mul(vf_sub(before, vf_load(w->m + g)), vf_set1(attend_edits(a) ? ATTEND_LOG2E : 1));
    const vm rose = vm_and(vm_lt(alpha, vf_set1(1)), vm_lt(none, before));
    const vf origin = vf_load(t->origin + g), fallen = vf_load(t->fallen + g);
    const vf moved = vf_mul(alpha, vf_fma(fall, vf_load(w->l + g), fallen));
    vf_store(t->fallen + g, vf_select(rose, moved, fallen));
    vf_store(t->origin + g, vf_select(vm_eq(origin, none), score, origin));
    vf_store(t->top + g, vf_max(score, vf_load(t->top + g)));
    vf_store(t->block_top + g, score);
}

/* One or two rows, whose weights have been computed. */
static void stats_pair(const attend *a, const stats_row *r, int n_rows, int64_t key0) {
    const attend_stats *t = a->stats;
    for (int n = 0; n < n_rows; n++) {
        const int i = r[n].i;
        if (t->mean_square_distance)
            stats_square_distance(a, r + n, key0);
        else if (t->mean_distance)
            stats_distance(a, r + n, key0);
        if (stats_wants_scores(t)) stats_scores(a, r + n);
        if (t->top_k && t->own.scratch->block_top[i] >
                            stats_rank_score(t->own.top[(i + 1) * stats_top_row(t) - 1]))
            stats_top(a, r + n, key0);
        if (t->n_offsets) stats_offsets(a, r + n, key0);
    }
    if (t->n_classes) stats_classes(a, r, n_rows);
}

/* sum = fma(sum, factor, block) of 16 rows. */
V_INLINE void stats_add(const attend_stats *t, qkvi_stats_sum which, int g, vf factor) {
    float *to = t->own.scratch->sum[which] + g;
    vf_store(to, vf_fma(vf_load(to), factor, vf_sum_rows(t->own.scratch->lanes[which])));
}

/* Weights of the rows [g, end), and all their sums; g is a multiple of 16. */
static void attend_stats_rows(const attend *a, int g, int end, int64_t key0, float factor) {
    qkvi_attend_scratch *w = a->scratch;
    const attend_stats *t = a->stats;
    for (int i = g; i < end; i += 2) {
        stats_row r[2];
        const int n_rows = i + 1 < end ? 2 : 1;
        const uint32_t panels = w->tile[i / V_MR].panels; /* tiles have even numbers of rows */
        for (int n = 0; n < n_rows; n++) {
            stats_exp_of[a->dp][stats_kind(a, i + n)](a, i + n, factor);
            r[n] = (stats_row){ i + n, panels, t->own.scratch->scores[n],
                                a->dp ? t->own.scratch->p[n] : w->s + (i + n) * QKVI_SCORE_ROW };
        }
        stats_pair(a, r, n_rows, key0);
    }
    const vf alpha = vf_load(w->alpha + g), one = vf_set1(1);
    stats_add(t, QKVI_SUM_PX, g, alpha);
    stats_add(t, QKVI_SUM_PP, g, vf_mul(alpha, alpha));
    if (t->mean_distance || t->mean_square_distance) stats_add(t, QKVI_SUM_PD, g, alpha);
    if (t->mean_square_distance) stats_add(t, QKVI_SUM_PDD, g, alpha);
    if (stats_wants_scores(t)) {
        stats_add(t, QKVI_SUM_S, g, one);
        stats_add(t, QKVI_SUM_SS, g, one);
    }
}

#endif
