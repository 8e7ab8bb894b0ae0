/*
 * Decode before it runs: blocks of rows, threads, workspace. A pure function of the problem and the
 * number of threads; none of its choices changes a bit of the result.
 *
 * The rows of a key/value head are its queries times the query heads that share it, all heads of a
 * query together; a unit is a block of them. Enough units: each is one thread's work, split after
 * split, joined as it goes. Few: every split is a piece of work with a part of its own, and who
 * ends the last piece of a unit joins them, in the order of keys.
 */
#ifndef QKVI_ATTN_DECODE_PLAN_H
#define QKVI_ATTN_DECODE_PLAN_H

#include <stdatomic.h>

#include "attn/ctx.h"
#include "attn/desc.h"
#include "core/arena.h"
#include "kernels/decode_stats.h"

/* What belongs to one thread. */
typedef struct qkvi_decode_slot {
    qkvi_decode_scratch *scratch;
    qkvi_decode_row *rows;
    float *q, *block;
    char *stage;
    qkvi_decode_part *parts[2]; /* not shared: the sum so far, and the split under way */
    qkvi_decode_stats *stats;   /* NULL: none */
} qkvi_decode_slot;

typedef struct qkvi_decode_plan {
    int n_threads;
    int n_rows;           /* of a block, at most */
    int64_t n_row_blocks; /* of a key/value head */
    int64_t n_units;      /* n_batch * n_kv_heads * n_row_blocks */
    int64_t n_splits;     /* that a unit may have, at most */
    bool shared;
    int64_t q_row, o_row;       /* rounded up to 16 */
    size_t sums_at, sums_bytes; /* of statistics in a part, of a row; 0: none */
    size_t part_bytes;
    float q_factor, scale; /* scale = q_factor * scale: see attn/plan.h */

    qkvi_decode_slot *slots; /* [n_threads] */
    qkvi_stats_space *stats; /* [n_threads]; NULL: no statistics */
    char *parts;             /* shared: [n_units][n_splits], of part_bytes each */
    atomic_llong *left;      /* shared: [n_units], splits that are not done */
} qkvi_decode_plan;

void qkvi_decode_plan_make(const qkvi_problem *problem, int n_threads, qkvi_decode_plan *plan);

/*
 * Of a rank that has n_splits of all splits: decode_pieces.h. Every split has a part of its own,
 * and a part no more rows than a key/value head has.
 */
void qkvi_decode_plan_pieces(const qkvi_problem *problem, int n_threads, int64_t n_splits,
                             qkvi_decode_plan *plan);

/* The plan of a call on this context, and its workspace. */
QKV_NODISCARD qkv_status qkvi_decode_plan_of(qkv_ctx *ctx, const qkvi_problem *problem,
                                             qkvi_decode_plan *plan, size_t *bytes);

/* Cuts slots, parts and counters; see core/arena.h. */
void qkvi_decode_lay_out(const qkvi_problem *problem, qkvi_cutter *cutter, qkvi_decode_plan *plan);

#endif
