/*
 * Decode: a block of rows, the splits of its keys, and its results. Splits may be computed by
 * any thread or rank, in any order; they are joined in the order of keys.
 */
#ifndef QKVI_ATTN_DECODE_UNIT_H
#define QKVI_ATTN_DECODE_UNIT_H

#include "attn/decode_plan.h"
#include "attn/kv_view.h"
#include "attn/mask.h"
#include "kernels/table.h"

typedef struct qkvi_decode_call {
    const qkvi_problem *p;
    const qkvi_kv *kv;
    const qkvi_kernels *kernels;
    qkvi_decode_plan plan;
} qkvi_decode_call;

/* A block of rows of one key/value head of one sequence; row = query * heads_per_kv + head. */
typedef struct qkvi_decode_unit {
    int64_t b, g, first_row;
    int n_rows; /* 0: none */
    qkvi_rules rules;
    qkvi_range keys;  /* all that some row may see by position */
    int64_t from, to; /* their splits */
} qkvi_decode_unit;

qkvi_decode_unit qkvi_decode_unit_at(const qkvi_decode_call *call, int64_t index);

/* What the kernel is told about a unit, its rows filled in; keys and part are still to be set. */
qkvi_decode qkvi_decode_prepare(const qkvi_decode_call *call, const qkvi_decode_unit *unit,
                                int thread);

/* Keys of one split, into part. */
void qkvi_decode_run_split(const qkvi_decode_call *call, const qkvi_decode_unit *unit,
                           qkvi_decode *a, int64_t split, qkvi_decode_part *part);

/* o, lse and statistics, of all splits joined in a->part. */
void qkvi_decode_finish(const qkvi_decode_call *call, const qkvi_decode_unit *unit,
                        const qkvi_decode *a);

/* Of a plan that is shared: the nth part of a unit. */
static inline qkvi_decode_part *qkvi_decode_part_at(const qkvi_decode_plan *plan, int64_t unit,
                                                    int64_t nth) {
    const size_t at = (size_t)(unit * plan->n_splits + nth) * plan->part_bytes;
    return (qkvi_decode_part *)(void *)(plan->parts + at);
}

#endif
