/*
 * Statistics of a call (include/qkv/stats.h): what is asked for, checked; their scratch; and
 * the arrays of one block of queries for the kernel.
 */
#ifndef QKVI_ATTN_STATS_H
#define QKVI_ATTN_STATS_H

#include "attn/arrays.h"
#include "attn/mask.h"
#include "core/arena.h"
#include "kernels/attend_stats.h"

/* desc->stats into the problem, whose sizes have been read. */
QKV_NODISCARD qkv_status qkvi_stats_read(const qkv_attention_desc *desc, qkvi_problem *problem,
                                         qkv_error *error);

/* Adds the arrays that are asked for, if any. */
void qkvi_stats_arrays(const qkvi_problem *problem, qkvi_arrays *all);

/* Cuts what threads have: core/arena.h. */
qkvi_stats_space *qkvi_stats_lay_out(const qkvi_problem *problem, qkvi_cutter *cutter,
                                     int n_threads);

/* Bytes of a qkvi_stats_kept, which a row has between parts of its keys; 0 without statistics. */
size_t qkvi_stats_sums_bytes(const qkvi_problem *problem);

/*
 * What the kernel is told about the block of queries from i0 on; space NULL: no statistics, NULL.
 */
qkvi_attend_stats *qkvi_stats_from(const qkvi_problem *problem, const qkvi_rules *rules, int64_t b,
                                   int64_t h, int64_t i0, const qkvi_stats_space *space,
                                   qkvi_attend_stats *out);

/*
 * Rows without a key and rows that are NaN: from 0, and those of a block that is done. Any thread.
 */
void qkvi_stats_begin(const qkvi_problem *problem);
void qkvi_stats_count(const qkvi_problem *problem, int64_t b, int64_t h,
                      const qkvi_attend_stats *done);

/* The statistics of rows from `begin` on alone. */
void qkvi_stats_take_rows(qkvi_problem *problem, int64_t begin);

#endif
