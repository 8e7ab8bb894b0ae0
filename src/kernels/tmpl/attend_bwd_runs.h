/*
 * Attention, backward: which queries, or keys, of a block take part in a chain, by the block mask.
 */
#ifndef QKVI_TMPL_ATTEND_BWD_RUNS_H
#define QKVI_TMPL_ATTEND_BWD_RUNS_H

#include "kernels/tmpl/attend_bwd_scores.h"

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

/* Pairs that hold a run. */
V_INLINE int64_t bwd_n_pairs(int64_t from, int64_t to) { return (to + 1) / 2 - from / 2; }

#endif
