/*
 * The forward pass of attention: what it keeps of a block of queries when statistics of their
 * weights are asked for (include/qkv/stats.h, docs/numerics.md, Statistics).
 *
 * Each sum over keys is that of a block of keys, partial sums and a tree, added to what
 * earlier blocks came to. Sums of classes lie in groups of 16 rows:
 *
 *     class_sums[row / 16][n_masses][row % 16]
 *
 * A list of the greatest scores is of numbers that are in the order of scores, the greatest first,
 * of equal ones the smaller key (tmpl/attend_stats.h), so that its maximum is all there is to
 * compare.
 */
#ifndef QKVI_KERNELS_ATTEND_STATS_H
#define QKVI_KERNELS_ATTEND_STATS_H

#include "kernels/attend.h"
#include "qkv/stats.h"

enum {
    QKVI_STATS_LIST = 8,             /* entries of a list come in eights */
    QKVI_STATS_MOST_KEYS = INT32_MAX /* of a list: a key has 32 bits in it */
};

/*
 * In units of the written order: x = log2 p, d as tmpl/attend_stats.h parts it, s = score - origin.
 */
typedef enum qkvi_stats_sum {
    QKVI_SUM_PX,
    QKVI_SUM_PP,
    QKVI_SUM_PD,
    QKVI_SUM_PDD,
    QKVI_SUM_N,
    QKVI_SUM_S,
    QKVI_SUM_SS,
    QKVI_STATS_SUMS
} qkvi_stats_sum;

/*
 * Masses on keys with the query's token, on those before the query, and on those after such a one.
 */
typedef enum qkvi_stats_token {
    QKVI_TOKEN_SAME,
    QKVI_TOKEN_DUPLICATE,
    QKVI_TOKEN_INDUCTION,
    QKVI_STATS_TOKENS
} qkvi_stats_token;

/* Of one thread. */
typedef struct qkvi_stats_scratch {
    _Alignas(64) float sum[QKVI_STATS_SUMS][QKVI_QUERY_BLOCK];
    float lanes[QKVI_STATS_SUMS][16 * 16]; /* of the block of keys, of 16 rows */
    float class_lanes[16 * 16];            /* of one class, of 16 rows */
    float largest[QKVI_QUERY_BLOCK * 16];  /* 16 partial maxima of |score| a row */
    float p[16][QKVI_SCORE_ROW];     /* of 16 rows, before they were rounded, where they are */
    float apart[2 * QKVI_KEY_BLOCK]; /* 255, 254 ... 1, 0, 1 ... 255 */
    uint16_t found[16 * QKVI_KEY_BLOCK + 32]; /* row mod 16 and key of the block, eight bits each */
    float top[QKVI_QUERY_BLOCK];              /* the greatest score */
    float block_top[QKVI_QUERY_BLOCK];        /* of the block of keys */
    float least[QKVI_QUERY_BLOCK];            /* the last of the list */
    float origin[QKVI_QUERY_BLOCK];           /* the greatest score of the first block with one */
    float fallen[QKVI_QUERY_BLOCK];           /* what rises of m added to the sum of p x */
    float beyond[16]; /* of 16 rows: keys between the query and the nearest end of the block */
    int64_t n_seen[QKVI_QUERY_BLOCK];
    float token_sums[QKVI_STATS_TOKENS][QKVI_QUERY_BLOCK];
    int64_t key0, to;                         /* the block of keys, which ends before `to` */
    uint8_t holds[QKV_STATS_MAX_CLASSES + 1]; /* panels of it with a key of the class, a bit each */
} qkvi_stats_scratch;

/*
 * What a row's sums have come to between two blocks of keys, where they do not stay in the scratch.
 */
typedef struct qkvi_stats_kept {
    int64_t n_seen;
    float sum[QKVI_STATS_SUMS], tokens[QKVI_STATS_TOKENS];
    float top, origin, fallen, largest;
    int64_t list[]; /* [top_k rounded up to 8], then floats: [n_masses], [n_offsets] */
} qkvi_stats_kept;

/* All that a thread has for statistics. */
typedef struct qkvi_stats_space {
    qkvi_stats_scratch *scratch;
    float *class_sums;
    float *members;     /* [n_masses][QKVI_KEY_BLOCK]: 1 or 0, of the block of keys */
    int64_t *top;       /* [QKVI_QUERY_BLOCK][top_k rounded up to 8] */
    float *offset_sums; /* [QKVI_QUERY_BLOCK][n_offsets] */
} qkvi_stats_space;

typedef struct qkvi_attend_stats {
    qkvi_stats_space own;
    int64_t position; /* of query 0 of the block among the keys */
    int top_k, n_classes, n_offsets;
    int n_masses;                       /* n_classes, and one more for key_weights, if there are */
    const uint8_t *classes;             /* from key 0 on */
    const float *key_weights;           /* from key 0 on; nullable, as are: */
    const int32_t *tokens_q, *tokens_k; /* from query 0 of the block and from key 0 on */
    const int64_t *offsets;             /* n_offsets + 1, never falling: bounds of key - position */

    /*
     * Results from query 0 of the block on, each nullable; rows are `row` apart, times their
     * length.
     */
    int64_t row;
    float *largest, *entropy, *effective_keys, *mean_distance, *mean_square_distance;
    float *logit_mean, *logit_variance, *logit_largest;
    int64_t *n_seen, *top_keys;
    float *top_weights, *top_scores, *class_mass, *offset_mass;
    float *weighted_mass, *same_token, *duplicate, *induction;

    int64_t n_empty, n_nan; /* rows: counted by the kernel */
} qkvi_attend_stats;

#endif
