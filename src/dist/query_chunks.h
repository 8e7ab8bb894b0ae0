/*
 * Queries of the whole sequence, a chunk at a time (stream.h), as d_k and d_v need them, or sums of
 * columns. Chunks begin at multiples of 256 queries, for columns of 96. Each turn is of one query
 * head of each group. In a chunk, tokens follow each other, each with
 *
 *     [n_batch][n_kv_heads][q: head_dim][d_o: head_dim_v][lse, delta: floats]
 *                          [q: head_dim][lse, weight of the row, if any: floats]  for columns
 *     [n_batch][segment: int32]                                  where there are segments
 *     [n_batch or 1][n_kv_heads or 1][mask: as many bytes as a row of it has]
 *
 * q and d_o begin at multiples of 4 bytes, and so does a row of the mask. Of a mask whose stride of
 * batches or heads is 0 on all ranks there is one row for all of them.
 */
#ifndef QKVI_DIST_QUERY_CHUNKS_H
#define QKVI_DIST_QUERY_CHUNKS_H

#include "attn/desc.h"
#include "dist/stream.h"

typedef struct qkvi_query_chunks {
    qkvi_stream stream;
    const qkvi_problem *p; /* with the arrays of this rank */
    const qkvi_grads *g;   /* with delta; NULL: for columns */
    const float *weights;  /* of rows, for columns; NULL: 1 */
    const int64_t *weights_stride;
    /* Bytes: of a head of a token; from its beginning to d_o, to lse; of a row of the mask. */
    int64_t head_bytes, d_o_at, lse_at, mask_row;
    int64_t seg_at, mask_at;          /* in a token's bytes */
    int64_t mask_batches, mask_heads; /* rows of the mask of a token */
    int32_t *segments;                /* [n_batch][rows of a chunk] */
    float *slopes;                    /* [n_kv_heads], of the turn */
} qkvi_query_chunks;

/* The chunks must stay where they are. mask_dims: call.h. g and weights are set already. */
void qkvi_query_chunks_init(qkvi_query_chunks *chunks, qkvi_group *group, const qkvi_problem *p,
                            int mask_dims);
void qkvi_query_chunks_lay_out(qkvi_query_chunks *chunks, qkvi_cutter *cutter);

/*
 * qkvi_stream_next. *p and *g become those of the chunk's queries, of one head of each group, against
 * all keys, until n + 2 is asked for; k, v and first_k are this rank's. For columns delta of *g is the
 * weights of rows.
 */
QKV_NODISCARD qkv_status qkvi_query_chunks_next(qkvi_query_chunks *chunks, int64_t n,
                                                qkvi_problem *p, qkvi_grads *g);

#endif
