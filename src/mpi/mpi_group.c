/* The calls of qkv/mpi.h: a group of dist/ on the transport of MPI. */
#include "mpi/mpi_group.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/options.h"
#include "dist/decode.h"
#include "dist/ordered.h"
#include "dist/ring.h"

/* ---- Making ---------------------------------------------------------------------------------- */

/* Is MPI in a state in which it may be called, from this thread while others compute? */
static qkv_status check_mpi(qkv_error *error) {
    int is_begun = 0, is_over = 0, level = MPI_THREAD_SINGLE;
    QKV_TRY(qkvi_mpi_check(MPI_Initialized(&is_begun), "MPI_Initialized", error));
    QKV_TRY(qkvi_mpi_check(MPI_Finalized(&is_over), "MPI_Finalized", error));
    if (!is_begun || is_over)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "MPI is not initialized");
    QKV_TRY(qkvi_mpi_check(MPI_Query_thread(&level), "MPI_Query_thread", error));
    if (level < MPI_THREAD_FUNNELED)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "MPI was initialized for one thread: MPI_Init_thread with "
                              "MPI_THREAD_FUNNELED is needed");
    return QKV_OK;
}

static qkv_status check_comm(MPI_Comm comm, qkv_error *error) {
    int is_inter = 0;
    if (comm == MPI_COMM_NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "comm is MPI_COMM_NULL");
    QKV_TRY(qkvi_mpi_check(MPI_Comm_test_inter(comm, &is_inter), "MPI_Comm_test_inter", error));
    if (is_inter) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "comm is an intercommunicator");
    return QKV_OK;
}

/* Has every rank its memory? */
static qkv_status agree_on_memory(const qkvi_mpi *mpi, bool has, qkv_error *error) {
    int mine = has, all = 0;
    QKV_TRY(qkvi_mpi_check(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, mpi->comm),
                           "MPI_Allreduce", error));
    if (!all) return qkvi_error_set(error, QKV_ERR_MEMORY, "a rank has no memory for the group");
    return QKV_OK;
}

qkv_status qkvmpi_group_create(MPI_Comm comm, qkvmpi_group **group, qkv_error *error) {
    qkvi_mpi mpi;
    if (!group) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "group is NULL");
    *group = NULL;
    QKV_TRY(check_mpi(error));
    QKV_TRY(check_comm(comm, error));
    QKV_TRY(qkvi_mpi_open(&mpi, comm, error));
    qkvmpi_group *const made = qkvi_calloc_array(1, sizeof *made);
    if (made) {
        made->mpi = mpi;
        made->of = qkvi_group_new(&made->mpi.base);
    }
    const qkv_status status = agree_on_memory(&mpi, made && made->of, error);
    if (status == QKV_OK) {
        *group = made;
        return QKV_OK;
    }
    if (made) qkvi_group_free(made->of);
    free(made);
    qkvi_mpi_close(&mpi);
    return status;
}

void qkvmpi_group_free(qkvmpi_group *group) {
    if (!group) return;
    qkvi_group_free(group->of);
    qkvi_mpi_close(&group->mpi);
    free(group);
}

/* ---- Questions ------------------------------------------------------------------------------- */

const char *qkvmpi_group_message(const qkvmpi_group *group) {
    return group ? group->of->error.message : "";
}

int qkvmpi_group_rank(const qkvmpi_group *group) { return group ? group->mpi.base.rank : -1; }

int qkvmpi_group_size(const qkvmpi_group *group) { return group ? group->mpi.base.size : 0; }

/* ---- Attention ------------------------------------------------------------------------------- */

qkv_status qkvmpi_attention_forward(qkvmpi_group *group, qkv_ctx *ctx,
                                    const qkv_attention_desc *desc, const void *q, const void *k,
                                    const void *v, void *o, float *lse,
                                    const qkvmpi_options *options) {
    const qkvi_dist_arrays arrays = { q, k, v, o, lse };
    qkvi_scheme scheme = QKVI_SCHEME_ORDERED;
    qkv_error error = { QKV_OK, "" };
    qkvi_rates rates;
    if (!group) return QKV_ERR_ARGUMENT;
    const qkv_status status = qkvi_mpi_options(options, &scheme, &rates, &error);
    return qkvi_forward_by(group->of, ctx, scheme, &rates, status == QKV_OK ? NULL : &error, desc,
                           &arrays);
}

qkv_status qkvmpi_attention_backward(qkvmpi_group *group, qkv_ctx *ctx,
                                     const qkv_attention_desc *desc, const void *q, const void *k,
                                     const void *v, const void *o, const float *lse,
                                     const qkv_attention_grads *grads) {
    qkvi_backward_call call = { .q = q, .k = k, .v = v, .o = o, .lse = lse, .grads = grads };
    if (!group) return QKV_ERR_ARGUMENT;
    return qkvi_ordered_backward(group->of, ctx, desc, &call);
}

qkv_status qkvmpi_attention_decode(qkvmpi_group *group, qkv_ctx *ctx,
                                   const qkv_attention_desc *desc, const void *q,
                                   const qkv_kv_view *view, void *o, float *lse,
                                   const qkvmpi_options *options) {
    const qkvi_dist_arrays arrays = { .q = q, .o = o, .lse = lse };
    qkvi_scheme scheme = QKVI_SCHEME_ORDERED;
    qkv_error error = { QKV_OK, "" };
    if (!group) return QKV_ERR_ARGUMENT;
    const qkv_status status = qkvi_mpi_decode_options(options, &scheme, &error);
    return qkvi_decode_by(group->of, ctx, scheme, status == QKV_OK ? NULL : &error, desc, view,
                          &arrays);
}
