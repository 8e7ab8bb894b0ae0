/* What ranks do in tests: attention in pieces, compared with one process; and faults. */
#ifndef QKV_TESTS_JOBS_H
#define QKV_TESTS_JOBS_H

#include "attn/columns_arrays.h"
#include "attn/stats_arrays.h"
#include "check/stored_case.h"
#include "dist/pieces.h"
#include "dist/world.h"

/* One case in pieces. */
typedef struct forward_job {
    const check_case *c;
    const outputs *x, *whole; /* outputs of ranks; of one process */
    cuts at;
    int64_t chunk_keys; /* 0: the library's choice */
    int n_threads;
    const char *isa;
    const stats_arrays *stats, *whole_stats; /* statistics of both; NULL: none */
} forward_job;

/* A rank_main; user: a forward_job. */
int forward_job_of_rank(qkvi_transport *t, void *user);

/* One case by another scheme. With zigzag the rows of the two runs of a rank are gathered. */
typedef struct ring_job {
    const check_case *c;
    const outputs *x;     /* outputs of ranks */
    const outputs *whole; /* of one process, whose bits ulysses has; else NULL */
    cuts at;
    qkvi_scheme scheme;
    int n_threads;
    const char *isa;
    int64_t *pairs; /* [size]: pairs of query and key that each rank computed; nullable */
} ring_job;

/* A rank_main; user: a ring_job. */
int ring_job_of_rank(qkvi_transport *t, void *user);

/* Calls `call` with descriptor and arrays of a rank, and copies the rows it has written to x. */
qkv_status ring_call(const ring_job *job, int rank,
                     qkv_status (*call)(void *user, const qkv_attention_desc *d,
                                        const qkvi_dist_arrays *a),
                     void *user);

/*
 * The case in one process, by the scalar build. stats: NULL, or what it fills. Exits if that fails.
 */
outputs forward_in_one_process(const check_case *c, stats_arrays *stats);

/* Gradients of a case in pieces. */
typedef struct backward_job {
    const check_case *c;
    const outputs *x;     /* gradients of ranks */
    const outputs *whole; /* gradients, o and lse of one process */
    cuts at;
    int64_t chunk_keys; /* 0: the library's choice */
    int n_threads;
    const char *isa;
} backward_job;

/* A rank_main; user: a backward_job. */
int backward_job_of_rank(qkvi_transport *t, void *user);

/* Forward and backward in one process, by the fastest build. Exits if that fails. */
outputs both_in_one_process(const check_case *c);

/* The gradients of a rank; d_sinks: of all heads, if the case has sinks. */
qkv_attention_grads grads_piece_of(const backward_job *job, int rank, float *d_sinks);
/* Compares gradients of a rank with those of one process; 0: the same bits. */
int grads_differ(const backward_job *job, int rank, const float *d_sinks);

/* Sums of the columns of a case in pieces. */
typedef struct columns_job {
    const check_case *c;
    const outputs *whole;               /* has lse */
    const columns_arrays *x, *expected; /* of ranks; of one process */
    cuts at;
    int64_t chunk_keys; /* 0: the library's choice */
    int n_threads;
    const char *isa;
    int64_t *n_tiny; /* [size][n_batch][n_heads]; NULL: ranks are processes with own memory */
} columns_job;

/* A rank_main; user: a columns_job. */
int columns_job_of_rank(qkvi_transport *t, void *user);

/* All statistics of columns by one process, from its lse. Exits if that fails. */
void columns_in_one_process(const check_case *c, const outputs *whole, columns_arrays *x);

/* The columns of a rank; counts: [2][n_batch][n_heads], n_cells and n_tiny. */
qkv_attention_columns columns_piece_of(const columns_job *job, int rank, int64_t *counts);
/* Compares columns of a rank with those of one process; 0: the same bits. */
int columns_differ(const columns_job *job, int rank, const int64_t *counts);

/* A decode case whose keys are in pieces. */
typedef struct decode_job {
    const stored_case *x;
    const kv_stored *kv; /* contiguous, or in pages, between which it is then cut */
    const outputs *whole;
    cuts at; /* of keys */
    qkvi_scheme scheme;
    int n_threads;
    const char *isa;
    const stats_arrays *stats; /* of one process; NULL: none */
    uint64_t stats_seed;
} decode_job;

/* A rank_main; user: a decode_job. */
int decode_job_of_rank(qkvi_transport *t, void *user);

/*
 * The case in one process, by the scalar build. stats: NULL, or what it fills. Exits if that fails.
 */
outputs decode_in_one_process(const stored_case *x, stats_arrays *stats);

/* Keys of a rank, as a view. */
qkv_kv_view decode_piece_of(const decode_job *job, int rank);

/* Random cuts of keys; *kv, the stored keys to be cut, is freed with stored_free. */
cuts decode_cuts(rng *r, const stored_case *x, int size, kv_stored *kv);

/* The descriptor of a rank. */
qkv_attention_desc decode_desc_of(const decode_job *job, int rank);

/*
 * Compares results of a rank, for all queries, with those of one process; 0: the same bits, or with
 * "tree" within bounds.
 */
int decode_differs(const decode_job *job, const outputs *x, int rank);

/*
 * A rank_main; user: NULL. Checks that a fault on one rank is the same error on all ranks, and that
 * the group works after it.
 */
int fault_job_of_rank(qkvi_transport *t, void *user);

#endif
