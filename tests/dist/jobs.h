/* What ranks do in tests: attention in pieces against the same in one process, and faults. */
#ifndef QKV_TESTS_JOBS_H
#define QKV_TESTS_JOBS_H

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
} forward_job;

/* A rank_main; user: a forward_job. */
int forward_job_of_rank(qkvi_transport *t, void *user);

/* The case in one process, by the scalar build. Exits if that fails. */
outputs forward_in_one_process(const check_case *c);

/*
 * A rank_main; user: NULL. Each fault on one rank is the same error on all of them, and the group
 * goes on to work.
 */
int fault_job_of_rank(qkvi_transport *t, void *user);

#endif
