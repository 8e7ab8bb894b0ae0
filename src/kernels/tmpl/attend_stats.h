/*
 * Attention, forward, with statistics of the weights: what is summed while they are in registers or
 * in L1. docs/numerics.md, Statistics, has the order; include/qkv/stats.h what the sums mean.
 *
 * Weights and their sums are computed as attend_exp.h does, so o and lse have the bits of a call
 * without statistics. Of 16 rows first what is of scores, then weights in their place, then the
 * rest.
 */
#ifndef QKVI_TMPL_ATTEND_STATS_H
#define QKVI_TMPL_ATTEND_STATS_H

#include "kernels/tmpl/attend_exp.h"
#include "kernels/tmpl/stats_mass.h"
#include "kernels/tmpl/stats_top.h"

V_INLINE void stats_keep(const attend_stats *t, qkvi_stats_sum which, int i, vf lanes) {
    vf_store(t->own.scratch->lanes[which] + i % 16 * 16, lanes);
}

/* ---- Scores ---------------------------------------------------------------------------------- */

V_INLINE bool stats_wants_scores(const attend_stats *t) {
    return t->logit_mean || t->logit_variance || t->logit_largest || t->n_seen;
}

/*
 * Sums of 16 lanes: how many scores above -inf, their distance from the origin, its square; max
 * |s|.
 */
typedef struct stats_moments {
    vf n, sum, squares, most;
} stats_moments;

/* all: none of them is -inf, or the sum of distances is no number above -inf. */
V_INLINE stats_moments stats_scores_of(const bool all, const stats_row *r, vf origin, vf most) {
    const vf zero = vf_set1(0), none = vf_set1(-INFINITY);
    stats_moments x = { zero, zero, zero, most };
    for (uint32_t panels = r->panels; panels;) {
        const attend_run run = attend_next_run(&panels);
        for (int j = run.from; j < run.to; j += 16) {
            const vf s = vf_load(r->s + j), d = vf_sub(s, origin), size = vf_abs(s);
            const vm seen = vm_lt(none, s);
            const vf far = all ? d : vf_select(seen, d, zero);
            if (!all) x.n = vf_add(x.n, vf_select(seen, vf_set1(1), zero));
            x.sum = vf_add(x.sum, far);
            x.squares = vf_fma(far, far, x.squares);
            x.most = vf_max(all ? size : vf_select(seen, size, zero), x.most);
        }
    }
    if (all) x.n = vf_set1((float)(2 * __builtin_popcount(r->panels)));
    return x;
}

/* Most rows of most blocks see all of their scores. */
static __attribute__((noinline)) void stats_scores(const attend *a, int i) {
    const stats_row r = stats_row_of(a, i);
    qkvi_stats_scratch *w = a->stats->own.scratch;
    const vf origin = vf_set1(w->origin[i]), most = vf_load(w->largest + 16 * i);
    stats_moments x = stats_scores_of(true, &r, origin, most);
    if (vm_to_bits(vm_lt(vf_set1(-INFINITY), x.sum)) != UINT16_MAX)
        x = stats_scores_of(false, &r, origin, most);
    vf_store(w->largest + 16 * i, x.most);
    stats_keep(a->stats, QKVI_SUM_N, i, x.n);
    stats_keep(a->stats, QKVI_SUM_S, i, x.sum);
    stats_keep(a->stats, QKVI_SUM_SS, i, x.squares);
}

/* ---- Weights, and sums of p x, p p, p d and p d d -------------------------------------------- */

typedef enum stats_far { STATS_FAR_NONE, STATS_FAR_SUM, STATS_FAR_SQUARE } stats_far;

V_INLINE stats_far stats_wants_far(const attend_stats *t) {
    if (t->mean_square_distance) return STATS_FAR_SQUARE;
    return t->mean_distance ? STATS_FAR_SUM : STATS_FAR_NONE;
}

/*
 * Distances d = b + |j - c| with c the block's key that is nearest to the query, b how far that is:
 * no terms of different signs. Returns |0 - c|, |1 - c| ...
 */
V_INLINE const float *stats_apart(const attend_stats *t, int i) {
    qkvi_stats_scratch *w = t->own.scratch;
    const int64_t here = t->position + i - w->key0, last = QKVI_KEY_BLOCK - 1;
    const int64_t nearest = here < 0 ? 0 : here > last ? last : here;
    w->beyond[i % 16] = (float)(here < nearest ? nearest - here : here - nearest);
    return w->apart + last - nearest;
}

/* Sums of 16 lanes. */
typedef struct stats_lanes {
    vf p, px, pp, pd, pdd;
} stats_lanes;

V_INLINE vf stats_exp(const bool rounds, const stats_far far, vf x, const float *apart,
                      stats_lanes *sum) {
    const vf p = rounds ? dp_exp2_below_128(x) : vf_exp2_below_128(x);
    sum->p = vf_add(sum->p, p);
    /* p is 0 below -126, where x may be -inf */
    sum->px = vf_select(vm_nlt(x, vf_set1(-126.0f)), vf_fma(p, x, sum->px), sum->px);
    sum->pp = vf_fma(p, p, sum->pp);
    if (far == STATS_FAR_SUM) sum->pd = vf_fma(p, vf_loadu(apart), sum->pd);
    if (far == STATS_FAR_SQUARE) {
        const vf d = vf_loadu(apart), pd = vf_mul(p, d);
        sum->pd = vf_add(sum->pd, pd);
        sum->pdd = vf_fma(pd, d, sum->pdd);
    }
    return p;
}

V_INLINE void stats_exp_row(const bool rounds, const stats_far far, const attend_kind kind,
                            const attend *a, const stats_row *r, const float *apart, vf c) {
    qkvi_attend_scratch *w = a->scratch;
    const vf m = vf_set1(w->shift[r->i]), zero = vf_set1(0);
    stats_lanes sum0 = { zero, zero, zero, zero, zero }, sum1 = sum0;
    vf rounded = zero;
    for (uint32_t panels = r->panels; panels;) {
        const attend_run run = attend_next_run(&panels);
        V_UNROLL_BY(2) for (int j = run.from; j < run.to; j += 32) {
            const vf x0 = attend_exponent(vf_load(r->s + j), c, m, kind);
            const vf x1 = attend_exponent(vf_load(r->s + j + 16), c, m, kind);
            const vf p0 = stats_exp(rounds, far, x0, apart + j, &sum0);
            const vf p1 = stats_exp(rounds, far, x1, apart + j + 16, &sum1);
            if (rounds)
                rounded = v_dp(rounded, dp_store((uint16_t *)r->s + j, p0, p1), vi_set1(DP_ONES));
            vf_store(r->p + j, p0);
            vf_store(r->p + j + 16, p1);
        }
    }
    vf_store(w->sum + 16 * r->i, vf_add(sum0.p, sum1.p));
    if (rounds) vf_store(w->rounded + r->i % 16 * 16, rounded);
    stats_keep(a->stats, QKVI_SUM_PX, r->i, vf_add(sum0.px, sum1.px));
    stats_keep(a->stats, QKVI_SUM_PP, r->i, vf_add(sum0.pp, sum1.pp));
    if (far) stats_keep(a->stats, QKVI_SUM_PD, r->i, vf_add(sum0.pd, sum1.pd));
    if (far == STATS_FAR_SQUARE)
        stats_keep(a->stats, QKVI_SUM_PDD, r->i, vf_add(sum0.pdd, sum1.pdd));
}

/* Each a function of its own, as in attend_exp.h. */
#define STATS_EXP(name, rounds, far, kind)                                                         \
    static __attribute__((noinline)) void name(const attend *a, int from, int to, float factor) {  \
        for (int i = from; i < to; i++) {                                                          \
            const stats_row r = stats_row_of(a, i);                                                \
            const float *apart = far ? stats_apart(a->stats, i) : a->stats->own.scratch->apart;    \
            stats_exp_row(rounds, far, kind, a, &r, apart, vf_set1(factor));                       \
        }                                                                                          \
    }
#define STATS_EXP_KINDS(name, rounds, far)                                                         \
    STATS_EXP(name##_raw, rounds, far, ATTEND_RAW)                                                 \
    STATS_EXP(name##_large, rounds, far, ATTEND_RAW_LARGE)                                         \
    STATS_EXP(name##_finished, rounds, far, ATTEND_FINISHED)                                       \
    static attend_exp_function *const name[3] = { name##_raw, name##_large, name##_finished };
STATS_EXP_KINDS(stats_exp_near, false, STATS_FAR_NONE)
STATS_EXP_KINDS(stats_exp_far, false, STATS_FAR_SUM)
STATS_EXP_KINDS(stats_exp_square, false, STATS_FAR_SQUARE)
STATS_EXP_KINDS(stats_dp_near, true, STATS_FAR_NONE)
STATS_EXP_KINDS(stats_dp_far, true, STATS_FAR_SUM)
STATS_EXP_KINDS(stats_dp_square, true, STATS_FAR_SQUARE)
static attend_exp_function *const *const stats_exp_of[2][3] = {
    { stats_exp_near, stats_exp_far, stats_exp_square },
    { stats_dp_near, stats_dp_far, stats_dp_square }
};

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

/* sum = fma(sum, factor, block) of 16 rows. */
V_INLINE void stats_add(const attend_stats *t, qkvi_stats_sum which, int g, vf factor, vf block) {
    float *to = t->own.scratch->sum[which] + g;
    vf_store(to, vf_fma(vf_load(to), factor, block));
}

V_INLINE vf stats_block(const attend_stats *t, qkvi_stats_sum which) {
    return vf_sum_rows(t->own.scratch->lanes[which]);
}

V_INLINE void stats_count(const attend_stats *t, int g, int end) {
    float n[16];
    vf_storeu(n, stats_block(t, QKVI_SUM_N));
    for (int i = g; i < end; i++) t->own.scratch->n_seen[i] += (int64_t)n[i - g];
}

/* d = b + e: p d = b p + p e, p d d = b (b p + 2 p e) + p e e. */
V_INLINE void stats_add_far(const attend *a, int g, vf alpha) {
    const attend_stats *t = a->stats;
    const vf p = vf_sum_rows(a->scratch->sum + 16 * g), pe = stats_block(t, QKVI_SUM_PD);
    const vf b = vf_load(t->own.scratch->beyond);
    stats_add(t, QKVI_SUM_PD, g, alpha, vf_fma(b, p, pe));
    if (t->mean_square_distance)
        stats_add(t, QKVI_SUM_PDD, g, alpha,
                  vf_fma(b, vf_fma(b, p, vf_add(pe, pe)), stats_block(t, QKVI_SUM_PDD)));
}

/* Before a block of keys, of which [from, to) are seen. */
static void attend_stats_block(const attend *a, int64_t key0, int64_t from, int64_t to) {
    const attend_stats *t = a->stats;
    t->own.scratch->key0 = key0;
    t->own.scratch->to = to;
    if (t->n_masses) attend_stats_members(t, from, to);
}

/* Weights of the rows [g, end), and all their sums; g is a multiple of 16. */
static void attend_stats_rows(const attend *a, int g, int end, float factor) {
    const attend_stats *t = a->stats;
    if (t->top_k) stats_tops(a, g, end);
    for (int i = g; i < end && stats_wants_scores(t); i++) stats_scores(a, i);
    attend_exp_rows(a, g, end, factor,
                    stats_exp_of[qkvi_classes[a->class].rounds][stats_wants_far(t)]);
    if (t->n_masses) stats_classes(a, g, end);
    if (t->n_offsets) stats_offsets(a, g, end);
    for (int i = g; i < end && t->tokens_q; i++) stats_tokens(a, i);
    const vf alpha = vf_load(a->scratch->alpha + g), one = vf_set1(1);
    stats_add(t, QKVI_SUM_PX, g, alpha, stats_block(t, QKVI_SUM_PX));
    stats_add(t, QKVI_SUM_PP, g, vf_mul(alpha, alpha), stats_block(t, QKVI_SUM_PP));
    if (stats_wants_far(t)) stats_add_far(a, g, alpha);
    if (stats_wants_scores(t)) {
        stats_count(t, g, end);
        stats_add(t, QKVI_SUM_S, g, one, stats_block(t, QKVI_SUM_S));
        stats_add(t, QKVI_SUM_SS, g, one, stats_block(t, QKVI_SUM_SS));
    }
}

#endif
