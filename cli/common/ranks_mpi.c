/* The tool with MPI, qkv-mpi: see ranks.h. */
#include <qkv/mpi.h>
#include <stdlib.h>
#include <time.h>

#include "common/cli.h"
#include "common/hash.h"
#include "common/journal.h"
#include "common/ranks.h"
#include "common/text.h"

enum { TAG = 1 };

static qkvmpi_group *group, *alone; /* of all ranks; of this one, once it is asked for */
static qkv_ranks training;
static bool is_training, is_lost;     /* is_lost: a call has lost other ranks */
static MPI_Comm comm = MPI_COMM_NULL; /* of the tool's own messages */

void ranks_hand_over(char **argv) { (void)argv; }

/* ---- Beginning and end ----------------------------------------------------------------------- */

/* mpirun may start ranks with different words. */
static int agree_on_command(void) {
    size_t n;
    char *const command = command_text(&n);
    if (!command) abort(); /* which ends the job */
    const int code = ranks_agree_on(
        EXIT_OK, &(struct ranks_fact){ "command", command, hash_add(HASH_START, command, n) });
    free(command);
    return code;
}

int ranks_begin(bool always) {
    int level = MPI_THREAD_SINGLE;
    qkv_error error;
    if (!always && ranks_announced() <= 1) return EXIT_OK;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return cli_fail("MPI cannot begin");
    if (qkvmpi_group_create(MPI_COMM_WORLD, &group, &error) != QKV_OK)
        return cli_fail("%s", error.message);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm); /* whose errors end the job */
    training = qkvmpi_ranks(group);
    cli_keeps = ranks_rank() > 0;
    return agree_on_command();
}

int ranks_rank(void) { return group ? qkvmpi_group_rank(group) : 0; }
int ranks_size(void) { return group ? qkvmpi_group_size(group) : 1; }

const qkv_ranks *ranks_of_training(void) {
    is_training = ranks_size() > 1;
    return is_training ? &training : NULL;
}

/* ---- Heads that ranks share ------------------------------------------------------------------ */

static bool has_left; /* some rank has left, and no exchange goes on */

/* Before each exchange all say whether they go on. */
static bool all_go_on(bool mine) {
    const char own = mine;
    char *const all = malloc((size_t)ranks_size());
    bool go_on = true;
    if (!all) abort(); /* which ends the job */
    ranks_gather(&own, 1, all);
    for (int rank = 0; rank < ranks_size(); rank++) go_on &= all[rank] != 0;
    free(all);
    has_left = !go_on;
    return go_on;
}

static int exchange(void *user, const void *send, const size_t *send_at, const size_t *send_bytes,
                    void *receive, const size_t *receive_at, const size_t *receive_bytes) {
    (void)user;
    if (has_left || !all_go_on(true)) return -1;
    const int failed = training.exchange(training.user, send, send_at, send_bytes, receive,
                                         receive_at, receive_bytes);
    is_lost |= failed != 0;
    return failed;
}

const qkv_ranks *ranks_of_heads(void) {
    static qkv_ranks heads;
    heads = training;
    heads.exchange = exchange;
    return ranks_size() > 1 ? &heads : NULL;
}

int ranks_leave(int code) {
    if (ranks_size() == 1) return code;
    if (has_left) return EXIT_OK;
    all_go_on(false);
    return code;
}

void ranks_end(void) {
    int is_begun = 0;
    MPI_Initialized(&is_begun);
    if (!is_begun) return;
    is_lost |= is_training && *qkvmpi_group_message(group);
    if (is_lost) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILED);
    cli_flush(); /* a rank that fails may end the others */
    ranks_sent();
    MPI_Comm_free(&comm);
    qkvmpi_group_free(alone);
    qkvmpi_group_free(group);
    group = alone = NULL;
    MPI_Finalize();
}

/* ---- Between ranks --------------------------------------------------------------------------- */

void ranks_gather(const void *mine, int n, void *all) {
    MPI_Allgather(mine, n, MPI_BYTE, all, n, MPI_BYTE, comm);
}

void ranks_rest(void) {
    const struct timespec pause = { .tv_nsec = 200000 };
    MPI_Request request;
    int is_done = 0;
    MPI_Ibarrier(comm, &request);
    for (;;) {
        MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
        if (is_done) return;
        nanosleep(&pause, NULL);
    }
}

/* What has been sent and not left yet, newest first. */
static struct sending {
    struct sending *next;
    MPI_Request request;
    void *bytes;
} * sendings;

/* Frees what has left; wait: all. */
static void clear_sendings(bool wait) {
    for (struct sending **at = &sendings; *at;) {
        struct sending *const s = *at;
        int is_done = 1;
        if (wait)
            MPI_Wait(&s->request, MPI_STATUS_IGNORE);
        else
            MPI_Test(&s->request, &is_done, MPI_STATUS_IGNORE);
        if (!is_done) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        free(s->bytes);
        free(s);
    }
}

void ranks_send(int to, void *bytes, size_t n) {
    struct sending *const s = malloc(sizeof *s);
    if (!s) abort(); /* which ends the job */
    clear_sendings(false);
    *s = (struct sending){ .next = sendings, .bytes = bytes };
    PMPI_Isend(bytes, (int)n, MPI_BYTE, to, TAG, comm, &s->request);
    sendings = s;
}

void ranks_sent(void) { clear_sendings(true); }

bool ranks_receive(bool wait, int *from, char **bytes, size_t *n) {
    MPI_Message message;
    MPI_Status status;
    int is_there = 1, count = 0;
    clear_sendings(false);
    if (wait)
        MPI_Mprobe(MPI_ANY_SOURCE, TAG, comm, &message, &status);
    else
        MPI_Improbe(MPI_ANY_SOURCE, TAG, comm, &is_there, &message, &status);
    if (!is_there) return false;
    MPI_Get_count(&status, MPI_BYTE, &count);
    *from = status.MPI_SOURCE;
    *n = (size_t)count;
    *bytes = malloc(*n + 1);
    if (!*bytes) abort(); /* which ends the job */
    MPI_Mrecv(*bytes, count, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    return true;
}

/* ---- Attention ------------------------------------------------------------------------------- */

static qkv_status told(qkv_status status, const qkvmpi_group *of, qkv_error *error) {
    error->status = status;
    is_lost |= status == QKV_ERR_IO;
    if (status != QKV_OK)
        snprintf(error->message, sizeof error->message, "%s", qkvmpi_group_message(of));
    return status;
}

static qkv_status group_of(const struct ranks_call *call, qkvmpi_group **of, qkv_error *error) {
    *of = group;
    if (!call->alone) return QKV_OK;
    if (!alone) {
        const qkv_status status = qkvmpi_group_create(MPI_COMM_SELF, &alone, error);
        if (status != QKV_OK) return status;
    }
    *of = alone;
    return QKV_OK;
}

qkv_status ranks_compute(const struct ranks_call *c, qkv_error *error) {
    qkvmpi_options options = qkvmpi_options_init();
    qkvmpi_group *of;
    qkv_status status = group_of(c, &of, error);
    if (status != QKV_OK) return status;
    options.scheme = c->scheme;
    if (c->view)
        status =
            qkvmpi_attention_decode(of, c->ctx, c->desc, c->q, c->view, c->o, c->lse, &options);
    else if (c->columns)
        status = qkvmpi_attention_columns_pass(of, c->ctx, c->desc, c->q, c->k, c->lse, c->columns);
    else if (c->grads)
        status = qkvmpi_attention_backward(of, c->ctx, c->desc, c->q, c->k, c->v, c->o, c->lse,
                                           c->grads);
    else
        status =
            qkvmpi_attention_forward(of, c->ctx, c->desc, c->q, c->k, c->v, c->o, c->lse, &options);
    return told(status, of, error);
}

static void write_costs(const qkvmpi_plan *plan, char text[RANKS_COSTS_BYTES]) {
    snprintf(text, RANKS_COSTS_BYTES,
             "%d ranks, measured: %.3g operations/s, %.3g bytes/s, %.3g s a message\n",
             plan->n_ranks, plan->flops_per_second, plan->bytes_per_second,
             plan->seconds_per_message);
    for (int s = 0; s < QKVMPI_SCHEMES; s++)
        text_append(text, RANKS_COSTS_BYTES, "  %-8s  %s\n", plan->schemes[s].name,
                    plan->schemes[s].reason);
    text_append(text, RANKS_COSTS_BYTES, "  %-8s  %s\n", "auto", plan->reason);
}

qkv_status ranks_costs(const struct ranks_call *c, char text[RANKS_COSTS_BYTES], qkv_error *error) {
    qkvmpi_options options = qkvmpi_options_init();
    qkvmpi_plan plan = qkvmpi_plan_init();
    qkv_status status = qkvmpi_measure(group, c->ctx, c->desc->dtype, &options);
    if (status == QKV_OK)
        status = qkvmpi_attention_explain(group, c->ctx, c->desc, &options, &plan);
    if (status == QKV_OK) write_costs(&plan, text);
    return told(status, group, error);
}

/* ---- What is sent, and waited for ------------------------------------------------------------ */

static int64_t bytes_sent;
static double seconds_waited, seconds_moved;

int64_t ranks_bytes_sent(void) { return bytes_sent; }
double ranks_seconds_waited(void) { return seconds_waited; }
double ranks_seconds_moved(void) { return seconds_moved; }

static void count(int n, MPI_Datatype type) {
    int size = 0;
    MPI_Type_size(type, &size);
    bytes_sent += (int64_t)n * size;
}

/* MPI says that every function has a second name, so that a program may count its calls. */
int MPI_Ibcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm of, MPI_Request *request) {
    int rank = 0;
    MPI_Comm_rank(of, &rank);
    if (rank == root) count(n, type);
    return PMPI_Ibcast(data, n, type, root, of, request);
}

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm of,
              MPI_Request *request) {
    count(n, type);
    return PMPI_Isend(data, n, type, to, tag, of, request);
}

int MPI_Waitall(int n, MPI_Request *requests, MPI_Status *statuses) {
    const double start = cli_seconds();
    const int code = PMPI_Waitall(n, requests, statuses);
    seconds_waited += cli_seconds() - start;
    return code;
}

int MPI_Testall(int n, MPI_Request *requests, int *is_done, MPI_Status *statuses) {
    const double start = cli_seconds();
    const int code = PMPI_Testall(n, requests, is_done, statuses);
    seconds_moved += cli_seconds() - start;
    return code;
}
