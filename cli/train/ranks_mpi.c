/* The tool with MPI, qkv-mpi: see ranks.h. */
#include <qkv/mpi.h>

#include "common/cli.h"
#include "train/ranks.h"

static qkvmpi_group *group;
static qkv_train_ranks own;

void ranks_hand_over(char **argv) { (void)argv; }

int ranks_begin(const qkv_train_ranks **ranks) {
    int level = MPI_THREAD_SINGLE;
    qkv_error error;
    *ranks = NULL;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return cli_fail("MPI cannot begin");
    if (qkvmpi_group_create(MPI_COMM_WORLD, &group, &error) != QKV_OK)
        return cli_fail("%s", error.message);
    own = qkvmpi_train_ranks(group);
    *ranks = own.n_ranks > 1 ? &own : NULL;
    return EXIT_OK;
}

void ranks_end(void) {
    int is_begun = 0;
    MPI_Initialized(&is_begun);
    if (!is_begun) return;
    if (*qkvmpi_group_message(group)) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILED);
    qkvmpi_group_destroy(group);
    MPI_Finalize();
}
