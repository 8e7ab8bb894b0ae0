/*
 * Statistics of weights: what the files of attend_stats.h work on.
 */
#ifndef QKVI_TMPL_STATS_ROW_H
#define QKVI_TMPL_STATS_ROW_H

#include "kernels/attend_stats.h"
#include "kernels/tmpl/attend_scores.h"

typedef qkvi_attend_stats attend_stats;

/* One row in the current block of keys. */
typedef struct stats_row {
    int i;
    uint32_t panels;
    float *s,
        *p; /* [256 keys]: scores and, once they are computed, weights; elsewhere if rounded */
} stats_row;

V_INLINE stats_row stats_row_of(const attend *a, int i) {
    float *s = a->scratch->s + i * QKVI_SCORE_ROW;
    float *full = a->stats->own.scratch->p[i % 16];
    return (stats_row){ i, a->scratch->tile[i / V_MR].panels, s,
                        qkvi_classes[a->class].rounds ? full : s };
}

#endif
