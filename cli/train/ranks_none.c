/* The tool without MPI: see ranks.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/shared.h"
#include "train/ranks.h"

void ranks_hand_over(char **argv) {
    char path[SHARED_ROOM];
    if (ranks_announced() == 1) return;
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "-mpi");
    if (n <= 0) return;
    memcpy(path + n, "-mpi", sizeof "-mpi");
    execv(path, argv); /* returns where there is none */
}

int ranks_begin(const qkv_train_ranks **ranks) {
    *ranks = NULL;
    if (ranks_announced() == 1) return EXIT_OK;
    return cli_fail("mpirun started %d ranks, but this qkv was built without MPI: qkv-mpi is not "
                    "beside it",
                    ranks_announced());
}

void ranks_end(void) {}
