/*
 * How ranks exchange bytes: a table of functions, so that each scheme runs over MPI, over threads
 * of one process, or over processes without MPI.
 *
 * Collective operations must be started by all ranks in the same order. Between two ranks, messages
 * arrive in the order in which they were sent. Until an operation has completed, its buffer belongs
 * to the transport, and its request must not move; then the request is 0 again.
 *
 * A failure of a transport is final: other ranks may wait for messages that never come.
 */
#ifndef QKVI_DIST_TRANSPORT_H
#define QKVI_DIST_TRANSPORT_H

#include <stdbool.h>

#include "core/status.h"

/* An operation that was started; 0 before. */
typedef struct qkvi_request {
    uint64_t word[4]; /* for the transport */
} qkvi_request;

typedef struct qkvi_transport qkvi_transport;

/* Sizes are in bytes, 0 included; error is not NULL. */
typedef struct qkvi_transport_ops {
    qkv_status (*isend)(qkvi_transport *t, const void *data, size_t bytes, int to,
                        qkvi_request *request, qkv_error *error);
    qkv_status (*irecv)(qkvi_transport *t, void *data, size_t bytes, int from,
                        qkvi_request *request, qkv_error *error);
    /* Copies data of the root to data of all ranks. */
    qkv_status (*ibcast)(qkvi_transport *t, void *data, size_t bytes, int root,
                         qkvi_request *request, qkv_error *error);
    /* Makes progress with n operations; *done: all have completed. */
    qkv_status (*test)(qkvi_transport *t, qkvi_request *requests, int n, bool *done,
                       qkv_error *error);
    qkv_status (*wait)(qkvi_transport *t, qkvi_request *requests, int n, qkv_error *error);
    /* Blocking: copies the `bytes` bytes at `mine` of each rank to all[rank] on all ranks. */
    qkv_status (*allgather)(qkvi_transport *t, const void *mine, size_t bytes, void *all,
                            qkv_error *error);
} qkvi_transport_ops;

/* The first member of the struct of each transport. */
struct qkvi_transport {
    const qkvi_transport_ops *ops;
    int rank, size;
};

/* The transport of a single rank. */
qkvi_transport qkvi_transport_self(void);

#endif
