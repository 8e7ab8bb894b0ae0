/**
 * The points of a map, queries first, then keys, and their distances.
 *
 * Coordinates are doubles, in rows and, for the kernels of kernels/tsne.h, in columns. Columns are
 * cut into blocks of QKVI_POINTS_BLOCK points, [dim][points of the block], one after the other, so
 * that the distances of many points to a block find it in the cache. The last block is as wide as
 * is left of `room`, with zeros beyond the last point.
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
    uint8_t *zero;                   /* [n]: without a direction */
    double *squares;                 /* [n]: |q|^2, and for keys M^2; QKV_MAP_INNER */
    int64_t n_zero;
} qkvi_points;

/**
 * Checks q and k and makes the points as options say, rows not yet of length 1. Free them in any
 * case.
 */
qkv_status qkvi_points_make(const qkvi_kernels *kernels, const qkv_map_options *options,
                            int64_t n_queries, int64_t n_keys, int64_t head_dim, const float *q,
                            const float *k, qkvi_points *points, qkv_error *error);
/** Rows of length 1 where the metric asks for it, and the columns. */
void qkvi_points_finish(qkvi_points *points);
void qkvi_points_free(qkvi_points *points);

/** D of point i to all: d is [room], 0 for i itself. */
void qkvi_points_distances(const qkvi_points *points, int64_t i, double *d);
/** Of them those to the block that begins at point `first`: d is [QKVI_POINTS_BLOCK]. */
void qkvi_points_block_distances(const qkvi_points *points, int64_t i, int64_t first, double *d);

/**
 * The two principal components: xy [n][2] are the coordinates of the centred rows, explained their
 * shares of the variance (0 without any). In each component the largest loading is positive.
 * MEMORY.
 */
qkv_status qkvi_points_pca(const qkvi_points *points, double *xy, double explained[2],
                           qkv_error *error);

#endif
