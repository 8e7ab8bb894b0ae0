/*
 * Attention over MPI, to be run by mpiexec with any number of ranks: the bits of one process, the
 * bytes that the formula says, long messages, faults. Every rank makes the same cases.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_cases.h"

int failures, n_ranks, my_rank;
int64_t bytes_sent;

void expect(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "rank %d of %d: %s\n", my_rank, n_ranks, what);
    failures++;
}

qkv_ctx *new_context(void) {
    qkv_ctx *ctx = NULL;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK) abort();
    return ctx;
}

bool succeeded(const qkvmpi_group *group, qkv_status status, const check_case *c) {
    if (status != QKV_OK) fprintf(stderr, "%s\n%s\n", qkvmpi_group_message(group), c->text);
    return status == QKV_OK;
}

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* ---- What is sent ---------------------------------------------------------------------------- */

static int64_t bytes_of(int count, MPI_Datatype type) {
    int size = 0;
    MPI_Type_size(type, &size);
    return (int64_t)count * size;
}

/* Interposed: MPI says that every function has a second name, PMPI. */
int MPI_Ibcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request *request) {
    if (root == my_rank) bytes_sent += bytes_of(count, type);
    return PMPI_Ibcast(data, count, type, root, comm, request);
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
    bytes_sent += bytes_of(count, type);
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static void check_faults(qkvmpi_group *group) {
    qkv_error error;
    expect(n_ranks == 1 || fault_job_of_rank(&group->mpi.base, NULL) == 0, "a fault differs");
    qkvmpi_group *none = group;
    expect(qkvmpi_group_create(MPI_COMM_NULL, &none, &error) == QKV_ERR_ARGUMENT && !none &&
               strcmp(error.message, "comm is MPI_COMM_NULL") == 0,
           "MPI_COMM_NULL is no communicator");
    expect(qkvmpi_attention_forward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
                   QKV_ERR_ARGUMENT &&
               qkvmpi_attention_backward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
                   QKV_ERR_ARGUMENT &&
               qkvmpi_attention_decode(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
                   QKV_ERR_ARGUMENT &&
               qkvmpi_measure(NULL, NULL, QKV_F32, NULL) == QKV_ERR_ARGUMENT &&
               qkvmpi_attention_explain(NULL, NULL, NULL, NULL, NULL) == QKV_ERR_ARGUMENT &&
               qkvmpi_attention_columns_pass(NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
                   QKV_ERR_ARGUMENT,
           "NULL is no group");
    expect(qkvmpi_group_rank(group) == my_rank && qkvmpi_group_size(group) == n_ranks,
           "rank and size are those of the communicator");
}

static void check_before_init(void) {
    qkvmpi_group *group;
    expect(qkvmpi_group_create(MPI_COMM_WORLD, NULL, NULL) == QKV_ERR_ARGUMENT,
           "a group needs a place");
    qkvmpi_group_free(NULL);
    expect(qkvmpi_group_message(NULL)[0] == '\0' && qkvmpi_group_rank(NULL) == -1 &&
               qkvmpi_group_size(NULL) == 0,
           "NULL is no group");
    expect(qkvmpi_group_create(MPI_COMM_WORLD, &group, NULL) == QKV_ERR_UNSUPPORTED,
           "before MPI_Init there are no groups");
}

int main(int argc, char **argv) {
    qkvmpi_group *group = NULL;
    qkv_error error = { QKV_OK, "" };
    int level, all = 0;
    check_before_init();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    if (qkvmpi_group_create(MPI_COMM_WORLD, &group, &error) != QKV_OK) {
        fprintf(stderr, "%s\n", error.message);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    /* More ranks than cores take turns, which costs minutes: they have fewer of the cases. */
    const int every = n_ranks > 3 ? 7 : 3;
    run_pairs(group, 0xC0FFEE, every);
    run_decode_pairs(group, 0xDEC0FFEE, every);
    check_decode_bytes(group);
    run_rings(group);
    run_schemes(group);
    check_plan(group);
    check_rates(group);
    if (qkvi_mpi_cut_at(&group->mpi, 100, 64, &error) != QKV_OK) abort();
    run_pairs(group, 0xB10C, 4 * every - 1);
    run_decode_pairs(group, 0xDECB10C, 4 * every - 1);
    run_rings(group);
    run_schemes(group);
    refuse_options(group);
    check_faults(group);
    qkvmpi_group_free(group);
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all != 0;
}
