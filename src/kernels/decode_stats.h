/*
 * Decode: what it keeps when statistics of weights are asked for (include/qkv/stats.h,
 * docs/numerics.md, Decode). Each half of a block of keys goes through the statistics of the
 * forward pass, 256 keys and the rows of one head at a time; what these have of a split lies in its
 * part, row by row, so that splits can be joined:
 *
 *     part   m, l, seen   o [row][o_row]   kept [row], sums_bytes each
 */
#ifndef QKVI_KERNELS_DECODE_STATS_H
#define QKVI_KERNELS_DECODE_STATS_H

#include "kernels/attend_stats.h"
#include "kernels/decode.h"

/* Of one thread. */
typedef struct qkvi_decode_stats {
    int n_heads;                  /* rows n, n + n_heads ... are queries of one head, in order */
    qkvi_attend_stats *of;        /* [n_heads], of one space */
    qkvi_attend_scratch *scratch; /* rows of the head under way */
    size_t sums_at, sums_bytes;   /* in a part, of a row */

    /* the kernel's own */
    int held; /* the head whose sums are in the scratch of `of` */
    _Alignas(64) float before[QKVI_DECODE_ROWS]; /* m before this block of keys */
    float top[QKVI_DECODE_ROWS];                 /* the greatest scores of this block of keys */
} qkvi_decode_stats;

#endif
