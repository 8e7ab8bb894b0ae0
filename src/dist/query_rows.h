/*
 * Queries as they are sent to other ranks: packed tokens, each with
 *
 *     [n_batch][n_kv_heads][q: head_dim][d_o: head_dim_v][lse, delta: floats]
 *                          [q: head_dim][lse, weight of the row, if any: floats]  for columns
 *                          [q: head_dim]                                          without lse
 *     [n_batch][segment: int32]                                  where there are segments
 *     [n_batch or 1][n_kv_heads or 1][mask: as many bytes as a row of it has]
 *
 * q, d_o and rows of the mask begin at multiples of 4 bytes. A mask whose stride of batches or
 * heads is 0 on all ranks has one row for all of them. Each turn has one query head of each group.
 */
#ifndef QKVI_DIST_QUERY_ROWS_H
#define QKVI_DIST_QUERY_ROWS_H

#include "attn/desc.h"
#include "core/arena.h"
#include "core/ints.h"

typedef struct qkvi_query_rows {
    const qkvi_problem *p; /* with the arrays of this rank */
    const qkvi_grads *g;   /* with delta; NULL: a pass over columns */
    const float *weights;  /* of rows, in a pass over columns; NULL: 1 */
    const int64_t *weights_stride;
    bool without_lse;
    int64_t row_bytes;                /* of a token */
    int64_t head_bytes;               /* of one head of a token */
    int64_t d_o_at, lse_at;           /* offsets in these */
    int64_t mask_row;                 /* bytes of a row of the mask */
    int64_t seg_at, mask_at;          /* offsets in a token */
    int64_t mask_batches, mask_heads; /* a token has so many rows of the mask */
    int32_t *segments;                /* [n_batch][rows] */
    float *slopes;                    /* [n_kv_heads], of the turn */
} qkvi_query_rows;

/* The caller has set the members before row_bytes. mask_dims: call.h. */
void qkvi_query_rows_init(qkvi_query_rows *rows, int mask_dims);
/* Cuts the memory that qkvi_query_rows_take needs for n_rows tokens. */
void qkvi_query_rows_lay_out(qkvi_query_rows *rows, int64_t n_rows, qkvi_cutter *cutter);

/* Packs queries [begin, end) of the sequence, which this rank has; gaps become 0. */
void qkvi_query_rows_pack(const qkvi_query_rows *rows, int64_t turn, int64_t begin, int64_t end,
                          char *to);

/*
 * Sets where tokens of q lie to where packed ones do, before any are there: the workspace of a pass
 * depends on it (attn/plan.h).
 */
void qkvi_query_rows_place(const qkvi_query_rows *rows, qkvi_problem *p);

/*
 * Sets *p and *g to the queries [begin, end), packed in `from`, of one head of each group; all else
 * is that of rows->p. In a pass over columns delta of *g is the weights of rows.
 */
void qkvi_query_rows_take(const qkvi_query_rows *rows, int64_t turn, int64_t begin, int64_t end,
                          const char *from, qkvi_problem *p, qkvi_grads *g);

#endif
