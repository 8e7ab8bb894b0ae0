/*
 * The transport over MPI-3.1, on a communicator of its own whose error handler returns.
 *
 * Counts of MPI are ints, so longer messages are blocks of a contiguous type, and a rest. All calls
 * are made on the thread that calls (MPI_THREAD_FUNNELED).
 */
#ifndef QKVI_MPI_TRANSPORT_H
#define QKVI_MPI_TRANSPORT_H

#include <mpi.h>

#include "dist/transport.h"

typedef struct qkvi_mpi {
    qkvi_transport base;
    MPI_Comm comm;
    MPI_Datatype block; /* of block_bytes */
    size_t most_bytes;  /* of a message that is sent as bytes */
    size_t block_bytes;
} qkvi_mpi;

/* Duplicates comm. Collective; after a failure nothing is left to close. */
QKV_NODISCARD qkv_status qkvi_mpi_open(qkvi_mpi *mpi, MPI_Comm comm, qkv_error *error);
void qkvi_mpi_close(qkvi_mpi *mpi);

/* A test's choice of both sizes, so that short messages go the way of long ones. */
QKV_NODISCARD qkv_status qkvi_mpi_cut_at(qkvi_mpi *mpi, size_t most_bytes, size_t block_bytes,
                                         qkv_error *error);

/* QKV_OK, or QKV_ERR_IO with the text of MPI and the name of its function. */
QKV_NODISCARD qkv_status qkvi_mpi_check(int code, const char *function, qkv_error *error);

#endif
