/* The ranks of a training run over the transport of MPI: see qkv/mpi.h. */
#include "mpi/mpi_group.h"

/* Blocking: all is received and sent when it returns. */
static int exchange(void *user, const void *send, const size_t *send_at, const size_t *send_bytes,
                    void *receive, const size_t *receive_at, const size_t *receive_bytes) {
    qkvmpi_group *const group = user;
    qkvi_transport *const t = &group->mpi.base;
    qkvi_request *const requests = group->of->requests; /* [2][size] */
    qkv_error *const error = &group->of->error;
    qkv_status status = QKV_OK;
    int n = 0;
    for (int r = 0; r < t->size && status == QKV_OK; r++)
        if (receive_bytes[r] > 0)
            status = t->ops->irecv(t, (char *)receive + receive_at[r], receive_bytes[r], r,
                                   &requests[n++], error);
    for (int r = 0; r < t->size && status == QKV_OK; r++)
        if (send_bytes[r] > 0)
            status = t->ops->isend(t, (const char *)send + send_at[r], send_bytes[r], r,
                                   &requests[n++], error);
    if (status == QKV_OK) status = qkvi_group_wait(group->of, requests, n);
    return status == QKV_OK ? 0 : -1;
}

qkv_ranks qkvmpi_ranks(qkvmpi_group *group) {
    qkv_ranks ranks = qkv_ranks_init();
    ranks.rank = qkvmpi_group_rank(group);
    ranks.n_ranks = qkvmpi_group_size(group);
    ranks.user = group;
    ranks.exchange = exchange;
    return ranks;
}
