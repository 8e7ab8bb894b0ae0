/* See mpi_transport.h. A request has up to two requests of MPI: blocks, and the rest. */
#include "mpi/mpi_transport.h"

#include <limits.h>
#include <string.h>

enum { TAG = 0 };

/* What a qkvi_request is here. Zeros: nothing is under way. */
typedef struct pending {
    MPI_Request of[2];
    int64_t n;
} pending;

_Static_assert(sizeof(pending) <= sizeof(qkvi_request), "a request holds what MPI needs");

qkv_status qkvi_mpi_check(int code, const char *function, qkv_error *error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS) return QKV_OK;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) text[0] = '\0';
    return qkvi_error_set(error, QKV_ERR_IO, "%s: %.400s", function, text);
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Whole blocks, then the rest: each with its place, its count and its type. */
typedef struct part {
    size_t at;
    int count;
    MPI_Datatype type;
} part;

static int parts_of(const qkvi_mpi *m, size_t bytes, part parts[2]) {
    int n = 0;
    size_t at = 0;
    if (bytes > m->most_bytes) {
        const size_t blocks = bytes / m->block_bytes;
        parts[n++] = (part){ 0, (int)blocks, m->block };
        at = blocks * m->block_bytes;
    }
    if (at < bytes || n == 0) parts[n++] = (part){ at, (int)(bytes - at), MPI_BYTE };
    return n;
}

static qkv_status check_length(const qkvi_mpi *m, size_t bytes, qkv_error *error) {
    if (bytes / m->block_bytes <= INT_MAX) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_LIMIT, "a message of %zu bytes is too long", bytes);
}

static pending pending_of(const qkvi_request *request) {
    pending p;
    memcpy(&p, request, sizeof p);
    return p;
}

typedef enum operation { SEND, RECEIVE, BROADCAST } operation;

/* One part of a message to, from or by the rank `peer`. */
static qkv_status start_part(const qkvi_mpi *m, operation what, char *data, const part *x, int peer,
                             MPI_Request *of, qkv_error *error) {
    char *const at = data + x->at;
    switch (what) {
    case SEND:
        return qkvi_mpi_check(MPI_Isend(at, x->count, x->type, peer, TAG, m->comm, of), "MPI_Isend",
                              error);
    case RECEIVE:
        return qkvi_mpi_check(MPI_Irecv(at, x->count, x->type, peer, TAG, m->comm, of), "MPI_Irecv",
                              error);
    default:
        return qkvi_mpi_check(MPI_Ibcast(at, x->count, x->type, peer, m->comm, of), "MPI_Ibcast",
                              error);
    }
}

static qkv_status start(qkvi_transport *t, operation what, void *data, size_t bytes, int peer,
                        qkvi_request *request, qkv_error *error) {
    const qkvi_mpi *const m = (const qkvi_mpi *)t;
    pending p = { .n = 0 };
    part parts[2];
    QKV_TRY(check_length(m, bytes, error));
    const int n = parts_of(m, bytes, parts);
    for (; p.n < n; p.n++) QKV_TRY(start_part(m, what, data, &parts[p.n], peer, &p.of[p.n], error));
    memcpy(request, &p, sizeof p);
    return QKV_OK;
}

static qkv_status isend(qkvi_transport *t, const void *data, size_t bytes, int to,
                        qkvi_request *request, qkv_error *error) {
    return start(t, SEND, (void *)(uintptr_t)data, bytes, to, request, error);
}

static qkv_status irecv(qkvi_transport *t, void *data, size_t bytes, int from,
                        qkvi_request *request, qkv_error *error) {
    return start(t, RECEIVE, data, bytes, from, request, error);
}

static qkv_status ibcast(qkvi_transport *t, void *data, size_t bytes, int root,
                         qkvi_request *request, qkv_error *error) {
    return start(t, BROADCAST, data, bytes, root, request, error);
}

/* ---- Completion ------------------------------------------------------------------------------ */

static qkv_status test(qkvi_transport *t, qkvi_request *requests, int n, bool *done,
                       qkv_error *error) {
    (void)t;
    *done = true;
    for (int i = 0; i < n; i++) {
        pending p = pending_of(&requests[i]);
        int completed;
        if (p.n == 0) continue;
        QKV_TRY(qkvi_mpi_check(MPI_Testall((int)p.n, p.of, &completed, MPI_STATUSES_IGNORE),
                               "MPI_Testall", error));
        if (completed) p = (pending){ .n = 0 };
        *done &= completed != 0;
        memcpy(&requests[i], &p, sizeof p);
    }
    return QKV_OK;
}

static qkv_status wait(qkvi_transport *t, qkvi_request *requests, int n, qkv_error *error) {
    (void)t;
    for (int i = 0; i < n; i++) {
        pending p = pending_of(&requests[i]);
        if (p.n == 0) continue;
        QKV_TRY(
            qkvi_mpi_check(MPI_Waitall((int)p.n, p.of, MPI_STATUSES_IGNORE), "MPI_Waitall", error));
        memset(&requests[i], 0, sizeof requests[i]);
    }
    return QKV_OK;
}

static qkv_status allgather(qkvi_transport *t, const void *mine, size_t bytes, void *all,
                            qkv_error *error) {
    qkvi_mpi *const m = (qkvi_mpi *)t;
    return qkvi_mpi_check(
        MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, m->comm),
        "MPI_Allgather", error);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static qkv_status make_block(qkvi_mpi *m, qkv_error *error) {
    QKV_TRY(qkvi_mpi_check(MPI_Type_contiguous((int)m->block_bytes, MPI_BYTE, &m->block),
                           "MPI_Type_contiguous", error));
    return qkvi_mpi_check(MPI_Type_commit(&m->block), "MPI_Type_commit", error);
}

qkv_status qkvi_mpi_open(qkvi_mpi *m, MPI_Comm comm, qkv_error *error) {
    static const qkvi_transport_ops ops = { isend, irecv, ibcast, test, wait, allgather };
    *m = (qkvi_mpi){ .base.ops = &ops,
                     .comm = MPI_COMM_NULL,
                     .block = MPI_DATATYPE_NULL,
                     .most_bytes = INT_MAX,
                     .block_bytes = 1 << 20 };
    QKV_TRY(qkvi_mpi_check(MPI_Comm_dup(comm, &m->comm), "MPI_Comm_dup", error));
    qkv_status status = qkvi_mpi_check(MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN),
                                       "MPI_Comm_set_errhandler", error);
    if (status == QKV_OK)
        status = qkvi_mpi_check(MPI_Comm_rank(m->comm, &m->base.rank), "MPI_Comm_rank", error);
    if (status == QKV_OK)
        status = qkvi_mpi_check(MPI_Comm_size(m->comm, &m->base.size), "MPI_Comm_size", error);
    if (status == QKV_OK) status = make_block(m, error);
    if (status != QKV_OK) qkvi_mpi_close(m);
    return status;
}

void qkvi_mpi_close(qkvi_mpi *m) {
    if (m->block != MPI_DATATYPE_NULL) MPI_Type_free(&m->block);
    if (m->comm != MPI_COMM_NULL) MPI_Comm_free(&m->comm);
}

qkv_status qkvi_mpi_cut_at(qkvi_mpi *m, size_t most_bytes, size_t block_bytes, qkv_error *error) {
    QKV_TRY(qkvi_mpi_check(MPI_Type_free(&m->block), "MPI_Type_free", error));
    m->most_bytes = most_bytes;
    m->block_bytes = block_bytes;
    return make_block(m, error);
}
