/* What a qkvmpi_group is. */
#ifndef QKVI_MPI_GROUP_H
#define QKVI_MPI_GROUP_H

#include <qkv/mpi.h>

#include "dist/group.h"
#include "mpi/mpi_transport.h"

struct qkvmpi_group {
    qkvi_mpi mpi;
    qkvi_group *of;
};

#endif
