/** How true a map is to the distances it was made from: figures of qkv_map_report. */
#ifndef QKVI_INSPECT_MAP_QUALITY_H
#define QKVI_INSPECT_MAP_QUALITY_H

#include "core/pool.h"
#include "inspect/points.h"

/**
 * Fills n_neighbours, trust, preserved, recall and rank_correlation. xy is [n][2]; q and k are those
 * of the caller. MEMORY.
 */
qkv_status qkvi_map_quality(const qkvi_points *points, qkvi_pool *pool, const double *xy,
                            int64_t head_dim, const float *q, const float *k,
                            qkv_map_report *report, qkv_error *error);

/** The key nearest to a query on a map, the first of equal ones; -1 without keys. */
int64_t qkvi_map_nearest_key(const double *x, const double *y, int64_t stride, int64_t n_queries,
                             int64_t n, int64_t query);

#endif
