/*
 * The processes, or ranks, of a command that mpirun started. The tool is two programs of the same
 * code: qkv knows no MPI, and runs qkv-mpi, beside it, in its place where a command needs it;
 * qkv-mpi, which is there where qkv was built with MPI, has ranks_mpi.c in place of ranks_none.c.
 *
 * The first rank speaks for all. What others say goes to it by ranks_agree (ranks.c).
 */
#ifndef QKV_CLI_COMMON_RANKS_H
#define QKV_CLI_COMMON_RANKS_H

#include <qkv/columns.h>
#include <qkv/kv.h>
#include <qkv/train.h>
#include <stdbool.h>

/* How many ranks mpirun says there are, by the environment of Open MPI or MPICH; 0 without it. */
int ranks_announced(void);

/* Becomes qkv-mpi, if the command needs it and it is there; argv is that of main. */
void ranks_hand_over(char **argv);
/* Does it: --mpi, or a command that several ranks share? */
bool ranks_wanted(char **argv);

/*
 * Begins MPI where mpirun announced several ranks, or where `always`. From then on messages of all
 * ranks but the first are kept. Says why it cannot, and returns an exit code.
 */
int ranks_begin(bool always);
/* 0 and 1 before ranks_begin, and without MPI. */
int ranks_rank(void);
int ranks_size(void);

/*
 * The exit code of the first rank that failed, on all ranks, so that none waits for one that has
 * left. The first rank says what that one kept. After a failure no further call communicates.
 */
int ranks_agree(int code);

/*
 * The same, and before a work is shared: all must have the same of something, "command", or it is
 * an error that names the first rank with another, and shows both. hash: of what must be the same.
 * All ranks call it at the same place, or ranks_agree with a failure.
 */
struct ranks_fact {
    const char *what, *shown;
    uint64_t hash;
};
int ranks_agree_on(int code, const struct ranks_fact *fact);

/* Ends MPI; where this rank has lost the others, who may wait for it, it ends the job. */
void ranks_end(void);

/* What qkv_train takes; NULL of one rank. */
const qkv_ranks *ranks_of_training(void);

/*
 * What heads of arrays take (qkv/heads.h); NULL of one rank. A rank that fails on its own calls
 * ranks_leave: then the exchanges of the others fail, too. All call it at the end; it returns the
 * code for ranks_agree, which of those who were only left alone is none.
 */
const qkv_ranks *ranks_of_heads(void);
int ranks_leave(int code);

/* ---- Between ranks, after ranks_begin -------------------------------------------------------- */

/* n bytes of each rank to all, in the order of ranks. */
void ranks_gather(const void *mine, int n, void *all);

/* Waits for all, asleep, so that one rank can have the processor. */
void ranks_rest(void);

/* Messages: bytes are taken, from malloc. n is at most RANKS_MOST_BYTES. */
enum { RANKS_MOST_BYTES = 1 << 30 };
void ranks_send(int to, void *bytes, size_t n);
/* The next one from any rank, to be freed; false: there is none yet, which cannot be if `wait`. */
bool ranks_receive(bool wait, int *from, char **bytes, size_t *n);
/* Waits until all that was sent has left. */
void ranks_sent(void);

/* ---- Attention of qkv/mpi.h ------------------------------------------------------------------ */

/*
 * Calls of qkv/mpi.h. alone: this rank is all there is, so that the same work is done without
 * others. QKV_ERR_UNSUPPORTED without MPI.
 */
struct ranks_call {
    qkv_ctx *ctx;
    const qkv_attention_desc *desc;
    const void *q, *k, *v;
    void *o;
    float *lse;
    const char *scheme;               /* forward, decode; NULL: the default */
    const qkv_attention_grads *grads; /* backward */
    const qkv_attention_columns *columns;
    const qkv_kv_view *view; /* decode */
    bool alone;
};
qkv_status ranks_forward(const struct ranks_call *call, qkv_error *error);
qkv_status ranks_backward(const struct ranks_call *call, qkv_error *error);
qkv_status ranks_columns(const struct ranks_call *call, qkv_error *error);
qkv_status ranks_decode(const struct ranks_call *call, qkv_error *error);

/* Bytes that this rank has sent, in messages and as the root of broadcasts. */
int64_t ranks_bytes_sent(void);
/*
 * Seconds that it has waited for messages, in MPI_Waitall; and has moved them between two blocks of
 * computing, in MPI_Testall, which copies where ranks share a computer.
 */
double ranks_seconds_waited(void);
double ranks_seconds_moved(void);

#endif
