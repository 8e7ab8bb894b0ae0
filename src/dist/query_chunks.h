/*
 * Queries of the whole sequence (query_rows.h), a chunk at a time (stream.h), as d_k and d_v need
 * them, or sums of columns. Chunks begin at multiples of 256 queries, for columns of 96. Each turn
 * is of one query head of each group.
 */
#ifndef QKVI_DIST_QUERY_CHUNKS_H
#define QKVI_DIST_QUERY_CHUNKS_H

#include "dist/query_rows.h"
#include "dist/stream.h"

typedef struct qkvi_query_chunks {
    qkvi_stream stream;
    qkvi_query_rows rows;
} qkvi_query_chunks;

/* The chunks must stay where they are. mask_dims: call.h. g and weights of rows are set already. */
void qkvi_query_chunks_init(qkvi_query_chunks *chunks, qkvi_group *group, const qkvi_problem *p,
                            int mask_dims);
void qkvi_query_chunks_lay_out(qkvi_query_chunks *chunks, qkvi_cutter *cutter);

/*
 * qkvi_stream_next. *p and *g become those of the chunk's queries, of one head of each group,
 * against all keys, until n + 2 is asked for; k, v and first_k are this rank's.
 */
QKV_NODISCARD qkv_status qkvi_query_chunks_next(qkvi_query_chunks *chunks, int64_t n,
                                                qkvi_problem *p, qkvi_grads *g);

#endif
