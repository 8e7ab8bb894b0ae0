/**
 * The points of a map, queries first, then keys, and their distances.
 *
 * Coordinates are doubles, stored by rows and, for the kernels of kernels/tsne.h, by columns.
 * Columns are cut into blocks of QKVI_POINTS_BLOCK points, each [dim][points of the block], so that
 * a block stays in the cache while many points compute their distances to it. `room` is n rounded
 * up to the lanes of the kernels; the last block has what is left of it, 0 beyond point n - 1.
 */
#ifndef QKVI_INSPECT_POINTS_H
#define QKVI_INSPECT_POINTS_H

#include "kernels/table.h"
#include "qkv/inspect.h"

enum { QKVI_POINTS_BLOCK = 64 }; /* points: 32 KiB at 64 channels */

typedef struct qkvi_points {
    const qkvi_kernels *kernels;
    qkv_map_metric metric;
    int64_t n, n_queries, dim, room; /* dim: one more than head_dim with QKV_MAP_INNER */
    double *rows;                    /* [n][dim]: of length 1 with the cosine metrics */
    double *columns;                 /* [blocks][dim][width of the block] */
    uint8_t *zero;                   /* [n]: 1 for a vector of zeros, which has no direction */
    double *squares;                 /* [n]: |q|^2, and for keys M^2; only QKV_MAP_INNER */
    int64_t n_zero;
} qkvi_points;

/**
 * Checks q and k and makes the points by the options; rows are not yet of length 1. Free them in
 * any case.
 */
qkv_status qkvi_points_make(const qkvi_kernels *kernels, const qkv_map_options *options,
                            int64_t n_queries, int64_t n_keys, int64_t head_dim, const float *q,
                            const float *k, qkvi_points *points, qkv_error *error);
/** Scales rows to length 1 with the cosine metrics, and makes the columns. */
void qkvi_points_finish(qkvi_points *points);
void qkvi_points_free(qkvi_points *points);

/** The distances D from point i to all points: d is [room], d[i] = 0. */
void qkvi_points_distances(const qkvi_points *points, int64_t i, double *d);
/** The distances to the block that begins at point `first`: d is [QKVI_POINTS_BLOCK]. */
void qkvi_points_block_distances(const qkvi_points *points, int64_t i, int64_t first, double *d);

/**
 * The two principal components: xy [n][2] are the coordinates of the centred rows, `explained` the
 * shares of the variance (0 if there is no variance). The largest loading of each component is
 * positive. MEMORY.
 */
qkv_status qkvi_points_pca(const qkvi_points *points, double *xy, double explained[2],
                           qkv_error *error);

#endif
