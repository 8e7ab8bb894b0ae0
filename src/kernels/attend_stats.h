/*
 * The forward pass of attention: what it keeps of a block of queries when statistics of their weights
 * are asked for (include/qkv/stats.h, docs/numerics.md, Statistics).
 *
 * Each sum over keys is that of a block of keys, partial sums and a tree, added to what
 * earlier blocks came to. Sums of classes lie in pairs of rows, 8 classes of either side by side:
 *
 *     class_sums[row / 2][class / 8][row % 2][class % 8]
 *
 * A list of the greatest scores is of numbers that are in the order of scores, the greatest first, of
 * equal ones the smaller key (tmpl/attend_stats.h), so that its maximum is all there is to compare.
 */
#ifndef QKVI_KERNELS_ATTEND_STATS_H
#define QKVI_KERNELS_ATTEND_STATS_H

#include "kernels/attend.h"
#include "qkv/qkv.h"

enum {
    QKVI_STATS_GROUP = 8,            /* classes side by side, and entries of a list */
    QKVI_STATS_MOST_KEYS = INT32_MAX /* of a list: a key has 32 bits in it */
};

/* In units of the written order: x = log2 p, d = |i + q_offset - j|, s = score - origin. */
typedef enum qkvi_stats_sum {
    QKVI_SUM_PX,
    QKVI_SUM_PP,
    QKVI_SUM_PD,
    QKVI_SUM_PDD,
    QKVI_SUM_S,
    QKVI_SUM_SS,
    QKVI_STATS_SUMS
} qkvi_stats_sum;

/* Of one thread. */
typedef struct qkvi_stats_scratch {
    _Alignas(64) float sum[QKVI_STATS_SUMS][QKVI_QUERY_BLOCK];
    float lanes[QKVI_STATS_SUMS][16 * 16]; /* of the block of keys, of 16 rows */
    float class_lanes[16 * 16];            /* of 2 rows */
    float largest[QKVI_QUERY_BLOCK * 16];  /* 16 partial maxima of |score| a row */
    float scores[2][QKVI_KEY_BLOCK];       /* of two rows and the block of keys: as they were */
    float p[2][QKVI_KEY_BLOCK];            /* class dp: before they were rounded */
    float place[QKVI_KEY_BLOCK];           /* 0, 1, 2, ... */
    float top[QKVI_QUERY_BLOCK];           /* the greatest score */
    float block_top[QKVI_QUERY_BLOCK];
    float origin[QKVI_QUERY_BLOCK]; /* the greatest score of the first block with one */
    float fallen[QKVI_QUERY_BLOCK]; /* what rises of m added to the sum of p x */
    int64_t n_seen[QKVI_QUERY_BLOCK];
} qkvi_stats_scratch;

/* All that a thread has for statistics. */
typedef struct qkvi_stats_space {
    qkvi_stats_scratch *scratch;
    float *class_sums;
    float *members; /* [classes rounded up to 8][QKVI_KEY_BLOCK]: 1 or 0, of the block of keys */
    int64_t *top;   /* [QKVI_QUERY_BLOCK][top_k rounded up to 8] */
    float *offset_sums; /* [QKVI_QUERY_BLOCK][n_offsets] */
} qkvi_stats_space;

typedef struct qkvi_attend_stats {
    qkvi_stats_space own;
    int64_t position; /* of query 0 of the block among the keys */
    int top_k, n_classes, n_offsets;
    const uint8_t *classes; /* from key 0 on */
    const int64_t *offsets; /* n_offsets + 1, never falling: bounds of key - position */

    /* Results from query 0 of the block on, each nullable; rows are `row` apart, times their length. */
    int64_t row;
    float *largest, *entropy, *effective_keys, *mean_distance, *mean_square_distance;
    float *logit_mean, *logit_variance, *logit_largest;
    int64_t *n_seen, *top_keys;
    float *top_weights, *class_mass, *offset_mass;

    int64_t n_empty, n_nan; /* rows: counted by the kernel */
} qkvi_attend_stats;

#endif
