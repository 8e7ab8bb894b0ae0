/* The insides of a qkvmpi_group, and the options of its calls. */
#ifndef QKVI_MPI_GROUP_H
#define QKVI_MPI_GROUP_H

#include <qkv/mpi.h>

#include "dist/costs.h"
#include "mpi/mpi_transport.h"

struct qkvmpi_group {
    qkvi_mpi mpi;
    qkvi_group *of;
};

/* Checks options; NULL: the defaults. */
QKV_NODISCARD qkv_status qkvi_mpi_options(const qkvmpi_options *options, qkvi_scheme *scheme,
                                          qkvi_rates *rates, qkv_error *error);
/* The same for decode, which has its own schemes. */
QKV_NODISCARD qkv_status qkvi_mpi_decode_options(const qkvmpi_options *options, qkvi_scheme *scheme,
                                                 qkv_error *error);

#endif
