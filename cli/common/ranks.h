/*
 * The processes, or ranks, of a command that mpirun started. The tool is two programs of the same
 * code: qkv is linked with ranks_none.c, without MPI, and replaces itself by qkv-mpi (execv) where
 * a command needs MPI; qkv-mpi is linked with ranks_mpi.c, and exists if MPI was found.
 *
 * Only the first rank prints. The messages of others go to it by ranks_agree (ranks.c).
 */
#ifndef QKV_CLI_COMMON_RANKS_H
#define QKV_CLI_COMMON_RANKS_H

#include <qkv/columns.h>
#include <qkv/kv.h>
#include <qkv/train.h>
#include <stdbool.h>

/* The number of ranks in the environment that mpirun of Open MPI or MPICH sets; 0 without it. */
int ranks_announced(void);

/* Replaces this process by qkv-mpi, if ranks_wanted and it is there; argv is that of main. */
void ranks_hand_over(char **argv);
/* Does the command line need MPI: --mpi, or a command that ranks share, started by mpirun? */
bool ranks_wanted(char **argv);

/*
 * Begins MPI if mpirun announced several ranks, or if `always`. From then on all ranks but the
 * first keep their messages (cli_keeps). Returns an exit code, having said what is wrong.
 */
int ranks_begin(bool always);
/* This rank and the number of ranks; 0 and 1 before ranks_begin, and without MPI. */
int ranks_rank(void);
int ranks_size(void);

/*
 * Returns on all ranks the exit code of the first rank that failed, so that no rank waits for one
 * that has given up; rank 0 prints that rank's message. All ranks call it. After a failure no
 * further call communicates.
 */
int ranks_agree(int code);

/*
 * ranks_agree, which also checks that all ranks have the same `what`, such as "command": they
 * compare its hash. If one differs, that is an error, which names the first such rank and shows its
 * `shown` and that of rank 0. A rank that failed before calls ranks_agree at the same place.
 */
struct ranks_fact {
    const char *what, *shown;
    uint64_t hash;
};
int ranks_agree_on(int code, const struct ranks_fact *fact);

/* Ends MPI. If a call has lost other ranks, which may wait for this one, it aborts the job. */
void ranks_end(void);

/* The ranks for qkv_train; NULL if there is one rank. */
const qkv_ranks *ranks_of_training(void);

/*
 * The ranks for heads of arrays (qkv/heads.h); NULL if there is one rank. Each rank calls
 * ranks_leave when it has its exit code; if one has failed early, the next exchange of the others
 * fails, too. ranks_leave returns the code for ranks_agree, which is EXIT_OK for a rank that failed
 * only because another one had left.
 */
const qkv_ranks *ranks_of_heads(void);
int ranks_leave(int code);

/* ---- Between ranks, after ranks_begin -------------------------------------------------------- */

/* Gathers n bytes of each rank on all ranks, in the order of ranks. */
void ranks_gather(const void *mine, int n, void *all);

/* A barrier that sleeps instead of spinning, so that a rank that works has the processor. */
void ranks_rest(void);

/* Sends a message without waiting; takes bytes, which are from malloc; n <= RANKS_MOST_BYTES. */
enum { RANKS_MOST_BYTES = 1 << 30 };
void ranks_send(int to, void *bytes, size_t n);
/*
 * Receives the next message of any rank, which the caller frees. False: there is none yet; with
 * `wait` it waits for one.
 */
bool ranks_receive(bool wait, int *from, char **bytes, size_t *n);
/* Waits until all messages are sent. */
void ranks_sent(void);

/* ---- Attention of qkv/mpi.h ------------------------------------------------------------------ */

/*
 * A call of qkv/mpi.h: that of view, columns or grads, if one of them is there, else forward.
 * alone: with a group of this rank only, to compute the same in one process. QKV_ERR_UNSUPPORTED
 * without MPI.
 */
struct ranks_call {
    qkv_ctx *ctx;
    const qkv_attention_desc *desc;
    const void *q, *k, *v;
    void *o;
    float *lse;
    const char *scheme;                   /* of forward and decode; NULL: the default */
    const qkv_kv_view *view;              /* of decode */
    const qkv_attention_columns *columns; /* of columns */
    const qkv_attention_grads *grads;     /* of backward */
    bool alone;
};
qkv_status ranks_compute(const struct ranks_call *call, qkv_error *error);
/*
 * What forward would cost by each scheme, a line for each, at rates that are measured on these
 * ranks first.
 */
enum { RANKS_COSTS_BYTES = 2048 };
qkv_status ranks_costs(const struct ranks_call *call, char text[RANKS_COSTS_BYTES],
                       qkv_error *error);

/* Bytes that this rank has sent in messages, and as the root of broadcasts. */
int64_t ranks_bytes_sent(void);
/*
 * Seconds of this rank in MPI_Waitall, waiting for messages, and in MPI_Testall between two blocks
 * of computing, which copies messages if ranks share a computer.
 */
double ranks_seconds_waited(void);
double ranks_seconds_moved(void);

#endif
