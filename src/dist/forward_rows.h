/*
 * The queries of this rank in a forward pass with keys from all ranks: ranges of rows, their sums
 * so far, and their memory.
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
    void *workspace; /* of one call of qkvi_forward_rows_attend */
    size_t workspace_bytes;
    /* A progress callback that lets keys arrive while others are computed. */
    void (*poll)(void *user, int64_t done, int64_t total);
    void *poll_user;
    int64_t *pairs; /* the number of visible pairs of query and key is added to it; nullable */
} qkvi_forward_rows;

/* Adds rows [begin, end) of the arrays of `whole`, which are the queries from `first` on. */
void qkvi_forward_rows_add(qkvi_forward_rows *rows, const qkvi_problem *whole, int64_t begin,
                           int64_t end, int64_t first);

/* qkvi_call_reserve of the rows and of lay_out. n_keys: the most keys of a call of attend. */
QKV_NODISCARD qkv_status qkvi_forward_rows_reserve(qkvi_forward_rows *rows, int64_t n_keys,
                                                   qkvi_lay_out *lay_out, void *user);

/* Sets sums to those of no key. */
void qkvi_forward_rows_begin(const qkvi_forward_rows *rows);

/* Adds the keys `range`, which are in the arrays of `keys`, to sums; last: writes o and lse. */
QKV_NODISCARD qkv_status qkvi_forward_rows_attend(qkvi_forward_rows *rows, const qkvi_problem *keys,
                                                  qkvi_range range, bool last);

#endif
