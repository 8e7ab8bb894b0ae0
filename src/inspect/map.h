/** The state of a call of qkv_inspect_map, its runs of t-SNE, and the quality of a map. */
#ifndef QKVI_INSPECT_MAP_RUNS_H
#define QKVI_INSPECT_MAP_RUNS_H

#include "core/pool.h"
#include "files/base.h"
#include "inspect/points.h"
#include "inspect/tsne.h"
#include "kernels/table.h"
#include "qkv/inspect.h"

struct qkvi_map {
    qkv_map_options options; /* with defaults filled in */
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
/** Reports progress, counted in iterations of all runs. */
void qkvi_map_tell(const struct qkvi_map *map);

/**
 * Runs t-SNE as often as options say, from map->tsne, to the end of each run or until cancelled;
 * then measures their KL. MEMORY.
 */
qkv_status qkvi_map_descend(struct qkvi_map *map, qkv_error *error);
/**
 * Writes the best run into map->xy, and what is known of it into the report. agree [n_queries],
 * nullable: in how many runs a query has the same nearest key. MEMORY.
 */
qkv_status qkvi_map_keep_best(struct qkvi_map *map, int32_t *agree, qkv_map_report *report,
                              qkv_error *error);

enum { QKVI_MAP_FEW_POINTS = 512 }; /* with at most so many points, each run is one task */

qkv_status qkvi_map_check_shape(int64_t n_queries, int64_t n_keys, int64_t head_dim,
                                qkv_error *error);
/** Checks options for n points. */
qkv_status qkvi_map_check_options(const qkv_map_options *options, int64_t n, qkv_error *error);
/** Replaces options that are 0 by their defaults. */
void qkvi_map_complete_options(qkv_map_options *options, int64_t n);

/**
 * Spearman's correlation of a and b, [n] finite numbers each: Pearson's correlation of their ranks,
 * where equal numbers have the mean of their ranks. NaN if a or b is constant. n < 2^31. Time is
 * linear in n; memory: 48 n bytes (MEMORY).
 */
qkv_status qkvi_rank_correlation(const double *a, const double *b, int64_t n, double *correlation,
                                 qkv_error *error);

/**
 * Sets n_neighbours, trust, preserved, recall and rank_correlation of the report, of a map xy
 * [n][2]. q and k are the caller's arrays. MEMORY.
 */
qkv_status qkvi_map_quality(const qkvi_points *points, qkvi_pool *pool, const double *xy,
                            int64_t head_dim, const float *q, const float *k,
                            qkv_map_report *report, qkv_error *error);

/** The key nearest to a query on a map, the first of equal ones; -1 without keys. */
int64_t qkvi_map_nearest_key(const double *x, const double *y, int64_t stride, int64_t n_queries,
                             int64_t n, int64_t query);

#endif
