/*
 * Attention, forward, with statistics of the weights: sums of a row that leave the scratch between
 * two blocks of keys, and come back. No bit changes on the way.
 */
#ifndef QKVI_TMPL_STATS_KEPT_H
#define QKVI_TMPL_STATS_KEPT_H

#include "kernels/tmpl/attend_stats.h"

V_INLINE float *stats_kept_masses(const attend_stats *t, qkvi_stats_kept *x) {
    return (float *)(x->list + stats_top_row(t));
}

V_INLINE float *stats_kept_offsets(const attend_stats *t, qkvi_stats_kept *x) {
    return stats_kept_masses(t, x) + t->n_masses;
}

V_INLINE void stats_move(const bool load, float *here, float *kept) {
    if (load)
        *here = *kept;
    else
        *kept = *here;
}

/* Partial maxima are one number in between. */
V_INLINE void stats_move_largest(const bool load, float *lanes, float *kept) {
    if (!load) *kept = 0;
    for (int n = 0; n < 16; n++) {
        if (load)
            lanes[n] = n == 0 ? *kept : 0;
        else if (lanes[n] > *kept)
            *kept = lanes[n];
    }
}

V_INLINE void stats_move_more(const bool load, const attend_stats *t, int i, qkvi_stats_kept *x) {
    qkvi_stats_scratch *w = t->own.scratch;
    const int length = stats_top_row(t);
    int64_t *list = t->own.top + i * length;
    float *masses = t->own.class_sums + i / 16 * 16 * t->n_masses;
    float *offsets = t->own.offset_sums + i * t->n_offsets;
    for (int c = 0; c < t->n_masses; c++)
        stats_move(load, masses + 16 * c + i % 16, stats_kept_masses(t, x) + c);
    for (int n = 0; n < t->n_offsets; n++)
        stats_move(load, offsets + n, stats_kept_offsets(t, x) + n);
    for (int n = 0; n < length; n++) {
        if (load)
            list[n] = x->list[n];
        else
            x->list[n] = list[n];
    }
    if (load) w->least[i] = length ? stats_rank_score(list[length - 1]) : -INFINITY;
}

/* Query i of the scratch and a row. */
V_INLINE void stats_move_row(const bool load, const attend_stats *t, int i, qkvi_stats_kept *x) {
    qkvi_stats_scratch *w = t->own.scratch;
    for (int n = 0; n < QKVI_STATS_SUMS; n++) stats_move(load, &w->sum[n][i], &x->sum[n]);
    for (int n = 0; n < QKVI_STATS_TOKENS; n++)
        stats_move(load, &w->token_sums[n][i], &x->tokens[n]);
    stats_move(load, &w->top[i], &x->top);
    stats_move(load, &w->origin[i], &x->origin);
    stats_move(load, &w->fallen[i], &x->fallen);
    stats_move_largest(load, w->largest + 16 * i, &x->largest);
    if (load)
        w->n_seen[i] = x->n_seen;
    else
        x->n_seen = w->n_seen[i];
    stats_move_more(load, t, i, x);
}

#endif
