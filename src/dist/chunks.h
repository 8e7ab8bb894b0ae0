/*
 * Keys and values of the whole sequence, a chunk at a time (stream.h). Chunks begin at multiples of
 * 256 keys. A chunk is packed as rows, one for each key:
 *
 *     [key][n_batch][n_kv_heads][k: head_dim, v: head_dim_v]
 *
 * So the owners of keys broadcast n_batch n_kv_heads (head_dim + head_dim_v) elements for each key.
 */
#ifndef QKVI_DIST_CHUNKS_H
#define QKVI_DIST_CHUNKS_H

#include "attn/desc.h"
#include "dist/stream.h"

/* Bytes of a row. */
int64_t qkvi_chunks_row_bytes(const qkvi_problem *p);

/* Packs the keys [begin, end) of the sequence, which this rank has. */
void qkvi_chunks_pack(const qkvi_problem *p, int64_t begin, int64_t end, char *to);

/* Sets k and v of *p, their strides and first_k, to packed rows from key `first` on. */
void qkvi_chunks_take(qkvi_problem *p, const char *rows, int64_t first);

typedef struct qkvi_chunks {
    qkvi_stream stream;
    const qkvi_problem *p; /* with the arrays of this rank */
} qkvi_chunks;

/* Sets chunks, whose address must not change then. */
void qkvi_chunks_init(qkvi_chunks *chunks, qkvi_group *group, const qkvi_problem *p);

/*
 * qkvi_stream_next, which sets k and v of *p, their strides and first_k, to chunk n. They are valid
 * until chunk n + 2 is asked for.
 */
QKV_NODISCARD qkv_status qkvi_chunks_next(qkvi_chunks *chunks, int64_t n, qkvi_problem *p);

#endif
