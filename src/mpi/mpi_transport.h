/*
 * The transport over MPI-3.1, on a communicator of its own whose error handler returns.
 *
 * Counts of MPI are ints, so a longer message is sent as blocks of a contiguous type, and a rest in
 * bytes. All calls of MPI are made on the caller's thread (MPI_THREAD_FUNNELED).
 */
#ifndef QKVI_MPI_TRANSPORT_H
#define QKVI_MPI_TRANSPORT_H

#include <mpi.h>

#include "dist/transport.h"

typedef struct qkvi_mpi {
    qkvi_transport base;
    MPI_Comm comm;
    MPI_Datatype block; /* of block_bytes bytes */
    size_t most_bytes;  /* the longest message that is sent as bytes */
    size_t block_bytes;
} qkvi_mpi;

/* Duplicates comm. Collective; after a failure nothing is left to close. */
QKV_NODISCARD qkv_status qkvi_mpi_open(qkvi_mpi *mpi, MPI_Comm comm, qkv_error *error);
void qkvi_mpi_close(qkvi_mpi *mpi);

/* For tests: sets both sizes, so that short messages are sent as blocks. */
QKV_NODISCARD qkv_status qkvi_mpi_cut_at(qkvi_mpi *mpi, size_t most_bytes, size_t block_bytes,
                                         qkv_error *error);

/* QKV_OK, or QKV_ERR_IO with the text of MPI and the name of its function. */
QKV_NODISCARD qkv_status qkvi_mpi_check(int code, const char *function, qkv_error *error);

#endif
