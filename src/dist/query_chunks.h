/*
 * Queries of the whole sequence (query_rows.h), a chunk at a time (stream.h), for d_k and d_v or
 * for sums over columns. Chunks begin at multiples of 256 queries, for columns at multiples of 96.
 * Each turn of the stream has one query head of each group.
 */
#ifndef QKVI_DIST_QUERY_CHUNKS_H
#define QKVI_DIST_QUERY_CHUNKS_H

#include "dist/query_rows.h"
#include "dist/stream.h"

typedef struct qkvi_query_chunks {
    qkvi_stream stream;
    qkvi_query_rows rows;
} qkvi_query_chunks;

/*
 * Sets chunks, whose address must not change then. The caller has set g and weights of rows.
 * mask_dims: call.h.
 */
void qkvi_query_chunks_init(qkvi_query_chunks *chunks, qkvi_group *group, const qkvi_problem *p,
                            int mask_dims);
void qkvi_query_chunks_lay_out(qkvi_query_chunks *chunks, qkvi_cutter *cutter);

/*
 * qkvi_stream_next, which sets *p and *g to the queries of chunk n, of one head of each group, and
 * the keys of this rank. They are valid until chunk n + 2 is asked for.
 */
QKV_NODISCARD qkv_status qkvi_query_chunks_next(qkvi_query_chunks *chunks, int64_t n,
                                                qkvi_problem *p, qkvi_grads *g);

#endif
