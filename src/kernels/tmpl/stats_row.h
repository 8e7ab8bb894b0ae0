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
    const float *scores, *p; /* [256 keys] */
} stats_row;

#endif
