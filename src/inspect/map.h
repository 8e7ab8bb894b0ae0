/** A map in the making, and its runs. */
#ifndef QKVI_INSPECT_MAP_RUNS_H
#define QKVI_INSPECT_MAP_RUNS_H

#include "core/pool.h"
#include "files/base.h"
#include "inspect/points.h"
#include "inspect/tsne.h"
#include "kernels/table.h"
#include "qkv/inspect.h"

/* A call of qkv_inspect_map. */
struct qkvi_map {
    qkv_map_options options; /* complete */
    const qkv_call_options *call;
    int64_t n_queries, n_keys, n, head_dim;
    const float *q, *k;
    qkvi_pool *pool;
    qkvi_points points;
    double *pca; /* [n][2] */
    double explained[2];
    qkvi_tsne tsne;
    qkvi_tsne_run *runs;
    int64_t n_begun;
    double *xy;
};

int qkvi_map_cancelled(const struct qkvi_map *map);
/** Progress: iterations of all runs. */
void qkvi_map_tell(const struct qkvi_map *map);

/**
 * All runs, to their ends or until cancelled, from affinities that are there; then their KL.
 * MEMORY.
 */
qkv_status qkvi_map_descend(struct qkvi_map *map, qkv_error *error);
/** The best of them becomes the map, and what is to be said of it enters the report. MEMORY. */
qkv_status qkvi_map_keep_best(struct qkvi_map *map, int32_t *agree, qkv_map_report *report,
                              qkv_error *error);

/** How much queries are to be scaled against keys for distances to follow scores. */

/** Ranks of numbers, for correlations by rank. */

enum { QKVI_MAP_FEW_POINTS = 512 }; /* up to here there are several runs, each of them a task */

qkv_status qkvi_map_check_shape(int64_t n_queries, int64_t n_keys, int64_t head_dim,
                                qkv_error *error);
/** For n points. */
qkv_status qkvi_map_check_options(const qkv_map_options *options, int64_t n, qkv_error *error);
/** Defaults in place of zeros. */
void qkvi_map_complete_options(qkv_map_options *options, int64_t n);

/**
 * Spearman's correlation of a and b, [n] finite each: Pearson's of their ranks, of equal numbers
 * the middle one. NaN if one of them does not vary. n < 2^31. Time is linear in n; memory: 48 n
 * bytes (MEMORY).
 */
qkv_status qkvi_rank_correlation(const double *a, const double *b, int64_t n, double *correlation,
                                 qkv_error *error);

/**
 * Fills n_neighbours, trust, preserved, recall and rank_correlation. xy is [n][2]; q and k are
 * those of the caller. MEMORY.
 */
qkv_status qkvi_map_quality(const qkvi_points *points, qkvi_pool *pool, const double *xy,
                            int64_t head_dim, const float *q, const float *k,
                            qkv_map_report *report, qkv_error *error);

/** The key nearest to a query on a map, the first of equal ones; -1 without keys. */
int64_t qkvi_map_nearest_key(const double *x, const double *y, int64_t stride, int64_t n_queries,
                             int64_t n, int64_t query);

#endif
