/** A map in the making, and its runs. */
#ifndef QKVI_INSPECT_MAP_RUNS_H
#define QKVI_INSPECT_MAP_RUNS_H

#include "inspect/tsne.h"

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

/** All runs, to their ends or until cancelled, from affinities that are there; then their KL. MEMORY. */
qkv_status qkvi_map_descend(struct qkvi_map *map, qkv_error *error);
/** The best of them becomes the map, and what is to be said of it enters the report. MEMORY. */
qkv_status qkvi_map_keep_best(struct qkvi_map *map, int32_t *agree, qkv_map_report *report,
                              qkv_error *error);

#endif
