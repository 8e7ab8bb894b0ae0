/*
 * Attention, forward, with statistics of the weights: before the first block of keys, and from sums
 * to results after the last (docs/numerics.md, Statistics).
 *
 * Entropy, effective keys and distances are of the weights that keys have, whatever a sink has:
 * with L = sum of p, H = (log2 L - sum(p x) / L) ln 2. Masses and greatest weights are those of o,
 * divided by the sum with the sink.
 */
#ifndef QKVI_TMPL_ATTEND_STATS_END_H
#define QKVI_TMPL_ATTEND_STATS_END_H

#include "kernels/tmpl/attend_stats.h"

#define STATS_ROUNDED 0x1p-18f /* an entropy above -this is a 0 */

static void attend_stats_begin(const attend *a) {
    const attend_stats *t = a->stats;
    qkvi_stats_scratch *w = t->own.scratch;
    const int rows = (a->n_queries + 15) / 16 * 16;
    memset(w->sum, 0, sizeof w->sum);
    /* 16 rows at a time are summed, those beyond the last as well */
    memset(w->lanes, 0, sizeof w->lanes);
    memset(w->class_lanes, 0, sizeof w->class_lanes);
    memset(w->largest, 0, sizeof w->largest);
    memset(w->fallen, 0, sizeof w->fallen);
    memset(w->beyond, 0, sizeof w->beyond);
    memset(w->n_seen, 0, sizeof w->n_seen);
    for (int n = 0; n < rows * t->n_masses; n++) t->own.class_sums[n] = 0;
    memset(w->token_sums, 0, sizeof w->token_sums);
    for (int n = 0; n < rows * t->n_offsets; n++) t->own.offset_sums[n] = 0;
    for (int n = 0; n < rows * stats_top_row(t); n++) t->own.top[n] = stats_rank(-INFINITY, 0);
    for (int j = 0; j < 2 * QKVI_KEY_BLOCK; j++)
        w->apart[j] = fabsf((float)(j - QKVI_KEY_BLOCK + 1));
    for (int i = 0; i < rows; i++) w->top[i] = w->origin[i] = w->least[i] = -INFINITY;
}

/* What 16 rows came to. */
typedef struct stats_ends {
    vf shift;                 /* of the reference, after the sink */
    vf sum;                   /* of p, with the sink */
    float keep[16], sums[16]; /* by keep, what was summed before the sink is multiplied */
    bool nan[16], empty[16];
} stats_ends;

V_INLINE vf stats_sums(const attend *a, qkvi_stats_sum which, int g) {
    return vf_load(a->stats->own.scratch->sum[which] + g);
}

/* A number for each of 16 rows; 0 for an empty one. A zero is positive, whatever was skipped. */
V_INLINE void stats_put(const attend *a, int g, const stats_ends *e, float *to, vf x) {
    float all[16];
    if (!to) return;
    vf_storeu(all, vf_add(x, vf_set1(0)));
    for (int n = 0; n < 16 && g + n < a->n_queries; n++)
        to[(g + n) * a->stats->row] = e->nan[n] ? NAN : e->empty[n] ? 0 : all[n];
}

/* Weights of scores, by references of the same lanes. */
V_INLINE vf stats_weights(const attend *a, vf score, vf shift, vf sum) {
    const vf c = vf_set1(attend_factor(a)), size = vf_max(shift, vf_sub(vf_set1(0), shift));
    const vf raw =
        vf_select(vm_lt(size, vf_set1(ATTEND_LARGE)), attend_exponent(score, c, shift, ATTEND_RAW),
                  attend_exponent(score, c, shift, ATTEND_RAW_LARGE));
    const vf x = attend_edits(a) ? attend_exponent(score, c, shift, ATTEND_FINISHED) : raw;
    const bool rounds = qkvi_classes[a->class].rounds;
    return vf_div(rounds ? dp_exp2_below_128(x) : vf_exp2_below_128(x), sum);
}

/* A row whose greatest weight is all there is has an entropy of 0 and 1 key. */
static void stats_put_spread(const attend *a, int g, const stats_ends *e) {
    const attend_stats *t = a->stats;
    const vf l = vf_load(a->scratch->l + g), px = stats_sums(a, QKVI_SUM_PX, g);
    const vf log = vf_sub(vf_log2(l), vf_div(vf_add(px, vf_load(t->own.scratch->fallen + g)), l));
    const vf h = vf_mul(log, vf_set1(ATTEND_LN2)), zero = vf_set1(0);
    const vm rounded = vm_and(vm_lt(h, zero), vm_lt(vf_set1(-STATS_ROUNDED), h));
    const vf one = vf_set1(1), shift = attend_shift(vf_load(a->scratch->m + g));
    const vm alone = vm_eq(stats_weights(a, vf_load(t->own.scratch->top + g), shift, one), l);
    const vf keys = vf_mul(vf_div(l, stats_sums(a, QKVI_SUM_PP, g)), l);
    stats_put(a, g, e, t->entropy, vf_select(vm_or(alone, rounded), zero, h));
    stats_put(a, g, e, t->effective_keys, vf_select(alone, one, keys));
    stats_put(a, g, e, t->mean_distance, vf_div(stats_sums(a, QKVI_SUM_PD, g), l));
    stats_put(a, g, e, t->mean_square_distance, vf_div(stats_sums(a, QKVI_SUM_PDD, g), l));
}

static void stats_put_logits(const attend *a, int g, const stats_ends *e) {
    const attend_stats *t = a->stats;
    const float unit = attend_edits(a) ? 1 : a->scale;
    float seen[16], largest[16];
    for (int n = 0; n < 16; n++) {
        const float *lanes = t->own.scratch->largest + 16 * (g + n);
        seen[n] = (float)t->own.scratch->n_seen[g + n];
        largest[n] = lanes[0];
        for (int lane = 1; lane < 16; lane++)
            if (lanes[lane] > largest[n]) largest[n] = lanes[lane];
    }
    const vf n = vf_loadu(seen), mean = vf_div(stats_sums(a, QKVI_SUM_S, g), n),
             one = vf_set1(unit);
    const vf square = vf_div(stats_sums(a, QKVI_SUM_SS, g), n);
    const vf variance = vf_max(vf_fnma(mean, mean, square), vf_set1(0));
    const vf from_origin = vf_add(vf_load(t->own.scratch->origin + g), mean);
    stats_put(a, g, e, t->logit_mean, vf_mul(from_origin, one));
    stats_put(a, g, e, t->logit_variance, vf_mul(vf_mul(variance, one), one));
    stats_put(a, g, e, t->logit_largest, vf_mul(vf_loadu(largest), one));
    for (int i = g; t->n_seen && i < g + 16 && i < a->n_queries; i++)
        t->n_seen[i * t->row] = e->nan[i - g]     ? -1
                                : e->empty[i - g] ? 0
                                                  : t->own.scratch->n_seen[i];
}

V_INLINE float stats_mass(const stats_ends *e, int n, float sum) {
    return e->nan[n] ? NAN : e->empty[n] ? 0 : sum * e->keep[n] / e->sums[n] + 0.0f;
}

static void stats_put_masses(const attend *a, int g, const stats_ends *e) {
    const attend_stats *t = a->stats;
    const float *sums = t->own.class_sums + g * t->n_masses;
    for (int n = 0; n < 16 && g + n < a->n_queries; n++) {
        const int64_t row = (g + n) * t->row;
        for (int c = 0; t->class_mass && c < t->n_classes; c++)
            t->class_mass[row * t->n_classes + c] = stats_mass(e, n, sums[16 * c + n]);
        if (t->weighted_mass) t->weighted_mass[row] = stats_mass(e, n, sums[16 * t->n_classes + n]);
    }
    for (int n = 0; t->offset_mass && n < 16 && g + n < a->n_queries; n++)
        for (int b = 0; b < t->n_offsets; b++)
            t->offset_mass[(g + n) * t->row * t->n_offsets + b] =
                stats_mass(e, n, t->own.offset_sums[(g + n) * t->n_offsets + b]);
}

static void stats_put_tokens(const attend *a, int g, const stats_ends *e) {
    const attend_stats *t = a->stats;
    float *const to[QKVI_STATS_TOKENS] = { t->same_token, t->duplicate, t->induction };
    for (int which = 0; which < QKVI_STATS_TOKENS; which++)
        for (int n = 0; to[which] && n < 16 && g + n < a->n_queries; n++)
            to[which][(g + n) * t->row] =
                stats_mass(e, n, t->own.scratch->token_sums[which][g + n]);
}

static void stats_put_top(const attend *a, int i, bool nan, float shift, float sum) {
    const attend_stats *t = a->stats;
    const int64_t *list = t->own.top + i * stats_top_row(t);
    for (int n = 0; n < t->top_k; n += 16) {
        const int left = t->top_k - n < 16 ? t->top_k - n : 16;
        float scores[16];
        for (int at = 0; at < 16; at++)
            scores[at] = at < left ? stats_rank_score(list[n + at]) : -INFINITY;
        const vf p = stats_weights(a, vf_loadu(scores), vf_set1(shift), vf_set1(sum));
        const int64_t to = i * t->row * t->top_k + n;
        if (t->top_weights) vf_store_n(t->top_weights + to, nan ? vf_set1(NAN) : p, left);
        for (int at = 0; t->top_scores && at < left; at++)
            t->top_scores[to + at] = nan ? -INFINITY : scores[at];
        for (int at = 0; t->top_keys && at < left; at++)
            t->top_keys[to + at] =
                nan || scores[at] == -INFINITY ? -1 : stats_rank_key(list[n + at]);
    }
}

/*
 * 16 rows from g on, of which attend_finish knows reference and sum with the sink, the factor by
 * which the sink lowered what was summed before, and lse. By address: at the end of a function that
 * takes vectors gcc leaves upper halves of registers in use, and takes them for clean after a call
 * of it.
 */
static void attend_stats_end(const attend *a, int g, const vf known[3], const float *lse) {
    qkvi_attend_stats *t = a->stats;
    const vf sum = known[1];
    stats_ends e = { .shift = attend_shift(known[0]), .sum = sum };
    float shift[16];
    vf_storeu(e.keep, known[2]);
    vf_storeu(e.sums, sum);
    vf_storeu(shift, e.shift);
    for (int n = 0; n < 16; n++) {
        e.nan[n] = g + n < a->n_queries && isnan(lse[n]);
        e.empty[n] = !e.nan[n] && a->scratch->l[g + n] == 0;
        t->n_nan += e.nan[n];
        t->n_empty += e.empty[n] && g + n < a->n_queries;
    }
    stats_put(a, g, &e, t->largest,
              stats_weights(a, vf_load(t->own.scratch->top + g), e.shift, sum));
    stats_put_spread(a, g, &e);
    stats_put_logits(a, g, &e);
    stats_put_masses(a, g, &e);
    stats_put_tokens(a, g, &e);
    for (int i = g; t->top_k && i < g + 16 && i < a->n_queries; i++) {
        const bool empty = e.empty[i - g]; /* scores are -inf: weights 0 */
        stats_put_top(a, i, e.nan[i - g], shift[i - g], empty ? 1 : e.sums[i - g]);
    }
}

#endif
