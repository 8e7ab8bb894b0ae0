/*
 * A training run that mpirun started: its ranks. The tool is two programs of the same code: qkv knows no
 * MPI, and runs qkv-mpi, beside it, in its place where mpirun started it for several ranks; qkv-mpi, which
 * is there where qkv was built with MPI, has ranks_mpi.c in place of ranks_none.c.
 */
#ifndef QKV_CLI_RANKS_H
#define QKV_CLI_RANKS_H

#include <qkv/train.h>

/* How many ranks mpirun says there are, by the environment of Open MPI or MPICH; 1 without it. */
int ranks_announced(void);

/* Becomes qkv-mpi, if there are several ranks and it is there; argv is that of main. */
void ranks_hand_over(char **argv);

/*
 * Begins MPI, in qkv-mpi; *ranks is what options take where there are several, else NULL. Says why it
 * cannot, and returns an exit code.
 */
int ranks_begin(const qkv_train_ranks **ranks);
/* Ends MPI; where this rank has lost the others, who may wait for it, it ends the job. */
void ranks_end(void);

#endif
