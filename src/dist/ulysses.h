/*
 * Scheme "ulysses": heads are divided among ranks. A rank receives all queries and keys of its
 * heads and computes them like one process, so bits are the same. It sends to each other rank its
 * own rows of that rank's heads, and gets back o and lse of its own queries.
 */
#ifndef QKVI_DIST_ULYSSES_H
#define QKVI_DIST_ULYSSES_H

#include "dist/call.h"

/* As qkvi_ordered_pass. */
QKV_NODISCARD qkv_status qkvi_ulysses_pass(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                           const qkv_attention_desc *desc,
                                           const qkvi_dist_arrays *arrays);

/* Bytes of a token that go to one rank: q, then k and v; and o with lse, which come back. */
typedef struct qkvi_ulysses_rows {
    int64_t q, k, o;
} qkvi_ulysses_rows;

/* For a call that was opened, whose heads can be divided among the ranks. */
qkvi_ulysses_rows qkvi_ulysses_rows_of(qkvi_group *group, const qkvi_problem *whole);

#endif
