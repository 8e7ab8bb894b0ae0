/*
 * Scheme "ulysses": each rank has all queries and keys of a share of the heads, and computes them
 * as one process does, so their bits are the same. Each rank sends each other rank its rows of that
 * rank's heads, and gets back o and lse of its own queries.
 */
#ifndef QKVI_DIST_ULYSSES_H
#define QKVI_DIST_ULYSSES_H

#include "dist/call.h"

/* As qkvi_ordered_pass. */
QKV_NODISCARD qkv_status qkvi_ulysses_pass(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                           const qkv_attention_desc *desc,
                                           const qkvi_dist_arrays *arrays);

/*
 * Bytes of a token and rank: its queries' share and its keys' share, and o and lse, which go back.
 */
typedef struct qkvi_ulysses_rows {
    int64_t q, k, o;
} qkvi_ulysses_rows;

/* After a call has been opened, whose heads can be shared out. */
qkvi_ulysses_rows qkvi_ulysses_rows_of(qkvi_group *group, const qkvi_problem *whole);

#endif
