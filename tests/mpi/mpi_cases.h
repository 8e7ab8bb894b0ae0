/*
 * What the files of mpi_ranks share. Every rank runs the same cases to their end: one that fails
 * must not leave others waiting.
 */
#ifndef QKV_TESTS_MPI_CASES_H
#define QKV_TESTS_MPI_CASES_H

#include "dist/jobs.h"
#include "mpi/mpi_group.h"

extern int failures, n_ranks, my_rank;
extern int64_t bytes_sent; /* by this rank, as the root of broadcasts and in messages */

/* Counts a failure unless it holds, and prints what is wrong. */
void expect(bool holds, const char *what);
/* A context of the defaults. */
qkv_ctx *new_context(void);
/* Has a call succeeded? If not, prints its message and the case. */
bool succeeded(const qkvmpi_group *group, qkv_status status, const check_case *c);
int64_t round_up(int64_t n, int64_t to);

/* Runs every `every`-th pair of features, with short chunks or those of the library. */
void run_pairs(qkvmpi_group *group, uint64_t seed, int every);
void run_decode_pairs(qkvmpi_group *group, uint64_t seed, int every);
void run_rings(qkvmpi_group *group);
void run_schemes(qkvmpi_group *group);
void check_plan(qkvmpi_group *group);
void check_rates(qkvmpi_group *group);
void check_decode_bytes(qkvmpi_group *group);
void refuse_options(qkvmpi_group *group);

/* A case of run_pairs. */
void run_backward(const check_case *c, qkvmpi_group *group, cuts at);
void run_columns(const check_case *c, qkvmpi_group *group, cuts at, uint64_t seed);

#endif
