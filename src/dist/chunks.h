/*
 * Keys and values of the whole sequence, a chunk at a time, as every rank needs them: the ranks that
 * own rows of a chunk broadcast them. While one chunk is used, the next is on its way.
 *
 * Chunks begin at multiples of 256 keys of the sequence, wherever the pieces begin. In a chunk, tokens
 * follow each other, so that the rows of a rank are one message:
 *
 *     [key][n_batch][n_kv_heads][k: head_dim, v: head_dim_v]
 *
 * Sent by the owners together: n_batch n_kv_heads (head_dim + head_dim_v) elements per key.
 */
#ifndef QKVI_DIST_CHUNKS_H
#define QKVI_DIST_CHUNKS_H

#include "attn/desc.h"
#include "core/arena.h"
#include "dist/group.h"

typedef struct qkvi_chunks {
    qkvi_group *group;
    const qkvi_problem *p; /* with the arrays of this rank */
    int64_t n_keys;        /* of a chunk but the last */
    int64_t count;
    int64_t row_bytes;
    char *buffer[2];
    int n_requests[2];
    int64_t under_way; /* the chunk that is; -1: none */
    qkv_status status; /* of the transport, from the first failure on */
} qkvi_chunks;

/* The keys of chunk n. */
static inline int64_t qkvi_chunk_begin(const qkvi_chunks *c, int64_t n) { return n * c->n_keys; }
int64_t qkvi_chunk_end(const qkvi_chunks *chunks, int64_t n);

void qkvi_chunks_init(qkvi_chunks *chunks, qkvi_group *group, const qkvi_problem *p);
void qkvi_chunks_lay_out(qkvi_chunks *chunks, qkvi_cutter *cutter);

/* Begins with chunk 0. */
void qkvi_chunks_start(qkvi_chunks *chunks);

/*
 * Waits for chunk n, which follows the one before it, and begins with the next. k and v of *p, with
 * their strides and first_k, become those of the chunk until n + 2 is asked for.
 */
QKV_NODISCARD qkv_status qkvi_chunks_next(qkvi_chunks *chunks, int64_t n, qkvi_problem *p);

/* A progress callback: communication goes on while this rank computes. user: the chunks. */
void qkvi_chunks_poll(void *user, int64_t done, int64_t total);

#endif
