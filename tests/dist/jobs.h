/* What ranks do in tests: attention in pieces against the same in one process, and faults. */
#ifndef QKV_TESTS_JOBS_H
#define QKV_TESTS_JOBS_H

#include "attention/columns_arrays.h"
#include "attention/stats_arrays.h"
#include "check/stored_case.h"
#include "dist/pieces.h"
#include "dist/world.h"

/* One case in pieces. */
typedef struct forward_job {
    const check_case *c;
    const outputs *x, *whole; /* where ranks write, and what one process wrote */
    cuts at;
    int64_t chunk_keys; /* 0: the library's choice */
    int n_threads;
    const char *isa;
    const stats_arrays *stats, *whole_stats; /* the same of statistics; NULL: not asked for */
} forward_job;

/* A rank_main; user: a forward_job. */
int forward_job_of_rank(qkvi_transport *t, void *user);

/* One case by another scheme; in zigzag rows of two runs are gathered for each rank. */
typedef struct ring_job {
    const check_case *c;
    const outputs *x;     /* where ranks write */
    const outputs *whole; /* NULL, or what one process wrote: ulysses has its bits */
    cuts at;
    qkvi_scheme scheme;
    int n_threads;
    const char *isa;
    int64_t *pairs; /* NULL, or [size]: pairs of a query and a key that each rank computed */
} ring_job;

/* A rank_main; user: a ring_job. */
int ring_job_of_rank(qkvi_transport *t, void *user);

/* Gives a rank's descriptor and arrays to `call`, with user; rows it has written go to x. */
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
    const outputs *x,
        *whole; /* where ranks write gradients; what one process wrote, o and lse too */
    cuts at;
    int64_t chunk_keys; /* 0: the library's choice */
    int n_threads;
    const char *isa;
} backward_job;

/* A rank_main; user: a backward_job. */
int backward_job_of_rank(qkvi_transport *t, void *user);

/* Forward and backward in one process, by the fastest build. Exits if that fails. */
outputs both_in_one_process(const check_case *c);

/* The gradients of a rank; d_sinks: of all heads, where the case has them. */
qkv_attention_grads grads_piece_of(const backward_job *job, int rank, float *d_sinks);
/* Those of a rank against those of one process; 0: the same bits. */
int grads_differ(const backward_job *job, int rank, const float *d_sinks);

/* Sums of the columns of a case in pieces. */
typedef struct columns_job {
    const check_case *c;
    const outputs *whole;               /* lse */
    const columns_arrays *x, *expected; /* where ranks write; what one process wrote */
    cuts at;
    int64_t chunk_keys; /* 0: the library's choice */
    int n_threads;
    const char *isa;
    int64_t *n_tiny; /* [size][n_batch][n_heads]; NULL: ranks are processes, and write elsewhere */
} columns_job;

/* A rank_main; user: a columns_job. */
int columns_job_of_rank(qkvi_transport *t, void *user);

/* All that one process is asked for of a case whose o and lse it has. Exits if that fails. */
void columns_in_one_process(const check_case *c, const outputs *whole, columns_arrays *x);

/* Of a rank; counts: [2][n_batch][n_heads], cells and tiny ones. */
qkv_attention_columns columns_piece_of(const columns_job *job, int rank, int64_t *counts);
/* Those of a rank against those of one process; 0: the same bits. */
int columns_differ(const columns_job *job, int rank, const int64_t *counts);

/* A decode case whose keys are in pieces. */
typedef struct decode_job {
    const stored_case *x;
    const kv_stored *kv; /* contiguous, or in pages and then cut between them */
    const outputs *whole;
    cuts at; /* of keys */
    qkvi_scheme scheme;
    int n_threads;
    const char *isa;
    const stats_arrays *stats; /* what one process wrote; NULL: not asked for */
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

/* Cuts of keys; the keys where they are cut, which the caller frees with stored_free. */
cuts decode_cuts(rng *r, const stored_case *x, int size, kv_stored *kv);

/* The descriptor of a rank. */
qkv_attention_desc decode_desc_of(const decode_job *job, int rank);

/*
 * Results of a rank, which has those of all queries, against those of one process; 0: the same. In
 * "tree": within bounds.
 */
int decode_differs(const decode_job *job, const outputs *x, int rank);

/*
 * A rank_main; user: NULL. Each fault on one rank is the same error on all of them, and the group
 * goes on to work.
 */
int fault_job_of_rank(qkvi_transport *t, void *user);

#endif
