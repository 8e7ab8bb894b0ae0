/*
 * How ranks exchange bytes: a table of functions, so that every scheme runs over MPI, over threads
 * of one process, or over processes without MPI.
 *
 * A call is collective: all ranks post the same operations in the same order. Between two ranks,
 * messages arrive in the order in which they were sent. The buffer of an operation belongs to the
 * transport until the operation has completed, and a request until then stays where it is. Then it
 * is zeros again.
 *
 * A failure of a transport is final: other ranks may wait for messages that never come.
 */
#ifndef QKVI_DIST_TRANSPORT_H
#define QKVI_DIST_TRANSPORT_H

#include <stdbool.h>

#include "core/status.h"

/* An operation under way; zeros before. */
typedef struct qkvi_request {
    uint64_t word[4]; /* the transport's */
} qkvi_request;

typedef struct qkvi_transport qkvi_transport;

/* Sizes are in bytes, 0 included; error is not NULL. */
typedef struct qkvi_transport_ops {
    qkv_status (*isend)(qkvi_transport *t, const void *data, size_t bytes, int to,
                        qkvi_request *request, qkv_error *error);
    qkv_status (*irecv)(qkvi_transport *t, void *data, size_t bytes, int from,
                        qkvi_request *request, qkv_error *error);
    /* data of the root becomes data of all. */
    qkv_status (*ibcast)(qkvi_transport *t, void *data, size_t bytes, int root,
                         qkvi_request *request, qkv_error *error);
    /* Makes progress with all n operations, and says whether all have completed. */
    qkv_status (*test)(qkvi_transport *t, qkvi_request *requests, int n, bool *done,
                       qkv_error *error);
    qkv_status (*wait)(qkvi_transport *t, qkvi_request *requests, int n, qkv_error *error);
    /* all[rank] becomes the `bytes` bytes at mine of that rank; blocking. */
    qkv_status (*allgather)(qkvi_transport *t, const void *mine, size_t bytes, void *all,
                            qkv_error *error);
} qkvi_transport_ops;

/* The first member of what a transport has of its own. */
struct qkvi_transport {
    const qkvi_transport_ops *ops;
    int rank, size;
};

/* Of one rank: nothing moves. */
qkvi_transport qkvi_transport_self(void);

#endif
