/* What a qkvmpi_group is. */
#ifndef QKVI_MPI_GROUP_H
#define QKVI_MPI_GROUP_H

#include <qkv/mpi.h>

#include "dist/costs.h"
#include "mpi/mpi_transport.h"

struct qkvmpi_group {
    qkvi_mpi mpi;
    qkvi_group *of;
};

/* Reads what a caller asks for; options NULL: the defaults. */
QKV_NODISCARD qkv_status qkvi_mpi_options(const qkvmpi_options *options, qkvi_scheme *scheme,
                                          qkvi_rates *rates, qkv_error *error);
/* The same of decode, which has schemes of its own. */
QKV_NODISCARD qkv_status qkvi_mpi_decode_options(const qkvmpi_options *options, qkvi_scheme *scheme,
                                                 qkv_error *error);

#endif
