/*
 * The queries of this rank in a forward pass whose keys come from all ranks: ranges of rows, what
 * their sums have come to, and the memory of both.
 */
#ifndef QKVI_DIST_FORWARD_ROWS_H
#define QKVI_DIST_FORWARD_ROWS_H

#include "attn/ctx.h"
#include "attn/forward_part.h"
#include "attn/piece.h"
#include "dist/call.h"

enum { QKVI_MOST_ROW_RANGES = 4 };

typedef struct qkvi_forward_rows {
    qkv_ctx *ctx;
    int n_ranges;
    qkvi_problem range[QKVI_MOST_ROW_RANGES];
    qkvi_forward_sums sums[QKVI_MOST_ROW_RANGES];
    void *workspace; /* of a part */
    size_t workspace_bytes;
    /* Keys come while tiles are computed. */
    void (*poll)(void *user, int64_t done, int64_t total);
    void *poll_user;
    int64_t *pairs; /* NULL, or the count of visible pairs of a query and a key is added to it */
} qkvi_forward_rows;

/* Rows [begin, end) of the arrays of `whole`, which are queries from `first` on. */
void qkvi_forward_rows_add(qkvi_forward_rows *rows, const qkvi_problem *whole, int64_t begin,
                           int64_t end, int64_t first);

/* qkvi_call_reserve of these and of what else the call needs. A part has n_keys keys at most. */
QKV_NODISCARD qkv_status qkvi_forward_rows_reserve(qkvi_forward_rows *rows, int64_t n_keys,
                                                   qkvi_lay_out *lay_out, void *user);

/* As they are before the first key. */
void qkvi_forward_rows_begin(const qkvi_forward_rows *rows);

/* Keys `range`, which `keys` has; last: o and lse are written. */
QKV_NODISCARD qkv_status qkvi_forward_rows_attend(qkvi_forward_rows *rows, const qkvi_problem *keys,
                                                  qkvi_range range, bool last);

#endif
