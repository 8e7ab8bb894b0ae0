/*
 * Queries as they are sent to other ranks: tokens follow each other, each with
 *
 *     [n_batch][n_kv_heads][q: head_dim][d_o: head_dim_v][lse, delta: floats]
 *                          [q: head_dim][lse, weight of the row, if any: floats]  for columns
 *                          [q: head_dim]                                          without lse
 *     [n_batch][segment: int32]                                  where there are segments
 *     [n_batch or 1][n_kv_heads or 1][mask: as many bytes as a row of it has]
 *
 * q and d_o begin at multiples of 4 bytes, and so does a row of the mask. Of a mask whose stride of
 * batches or heads is 0 on all ranks there is one row for all of them. A turn is of one query head
 * of each group.
 */
#ifndef QKVI_DIST_QUERY_ROWS_H
#define QKVI_DIST_QUERY_ROWS_H

#include "attn/desc.h"
#include "core/arena.h"
#include "core/ints.h"

typedef struct qkvi_query_rows {
    const qkvi_problem *p; /* with the arrays of this rank */
    const qkvi_grads *g;   /* with delta; NULL: for columns */
    const float *weights;  /* of rows, for columns; NULL: 1 */
    const int64_t *weights_stride;
    bool without_lse;
    int64_t row_bytes; /* of a token */
    /* Bytes: of a head of a token; from its beginning to d_o, to lse; of a row of the mask. */
    int64_t head_bytes, d_o_at, lse_at, mask_row;
    int64_t seg_at, mask_at;          /* in a token's bytes */
    int64_t mask_batches, mask_heads; /* rows of the mask of a token */
    int32_t *segments;                /* [n_batch][rows] */
    float *slopes;                    /* [n_kv_heads], of the turn */
} qkvi_query_rows;

/* What is before row_bytes is set already. mask_dims: call.h. */
void qkvi_query_rows_init(qkvi_query_rows *rows, int mask_dims);
/* What `rows` tokens need to be taken. */
void qkvi_query_rows_lay_out(qkvi_query_rows *rows, int64_t n_rows, qkvi_cutter *cutter);

/* Rows [begin, end) of the sequence, which this rank has, zeros where nothing is. */
void qkvi_query_rows_pack(const qkvi_query_rows *rows, int64_t turn, int64_t begin, int64_t end,
                          char *to);

/*
 * *p and *g become those of the queries [begin, end), which lie in `from`, of one head of each
 * group; all else is that of rows->p. For columns delta of *g is the weights of rows.
 */
void qkvi_query_rows_take(const qkvi_query_rows *rows, int64_t turn, int64_t begin, int64_t end,
                          const char *from, qkvi_problem *p, qkvi_grads *g);

#endif
