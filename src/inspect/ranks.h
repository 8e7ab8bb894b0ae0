/** Ranks of numbers, for correlations by rank. */
#ifndef QKVI_INSPECT_RANKS_H
#define QKVI_INSPECT_RANKS_H

#include "model/base.h"

/**
 * Spearman's correlation of a and b, [n] finite each: Pearson's of their ranks, of equal numbers the
 * middle one. NaN if one of them does not vary. n < 2^31. Time is linear in n; memory: 48 n bytes (MEMORY).
 */
qkv_status qkvi_rank_correlation(const double *a, const double *b, int64_t n, double *correlation,
                                 qkv_error *error);

#endif
