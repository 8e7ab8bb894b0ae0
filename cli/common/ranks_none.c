/* The tool without MPI: see ranks.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/os.h"
#include "common/ranks.h"
#include "common/shared.h"

void ranks_hand_over(char **argv) {
    char path[SHARED_ROOM];
    if (!ranks_wanted(argv)) return;
    const size_t n = os_self(path, sizeof path - sizeof "-mpi");
    if (n == 0) return;
    memcpy(path + n, "-mpi", sizeof "-mpi");
    os_become(path, argv);
}

int ranks_begin(bool always) {
    static const char without[] = "this qkv was built without MPI: qkv-mpi is not beside it";
    if (ranks_announced() > 1)
        return cli_fail("mpirun started %d ranks, but %s", ranks_announced(), without);
    return always ? cli_fail("--mpi: %s", without) : EXIT_OK;
}

int ranks_rank(void) { return 0; }
int ranks_size(void) { return 1; }
void ranks_end(void) {}
const qkv_ranks *ranks_of_training(void) { return NULL; }
const qkv_ranks *ranks_of_heads(void) { return NULL; }
int ranks_leave(int code) { return code; }

/* ---- Without other ranks --------------------------------------------------------------------- */

void ranks_gather(const void *mine, int n, void *all) { memcpy(all, mine, (size_t)n); }

void ranks_rest(void) {}

void ranks_send(int to, void *bytes, size_t n) {
    (void)to, (void)n;
    free(bytes);
}

bool ranks_receive(bool wait, int *from, char **bytes, size_t *n) {
    (void)wait, (void)from, (void)bytes, (void)n;
    return false;
}

void ranks_sent(void) {}

static qkv_status refuse(qkv_error *error) {
    *error = (qkv_error){ QKV_ERR_UNSUPPORTED, "qkv was built without MPI" };
    return error->status;
}

qkv_status ranks_compute(const struct ranks_call *call, qkv_error *error) {
    (void)call;
    return refuse(error);
}

qkv_status ranks_costs(const struct ranks_call *call, char text[RANKS_COSTS_BYTES],
                       qkv_error *error) {
    (void)call;
    *text = '\0';
    return refuse(error);
}

int64_t ranks_bytes_sent(void) { return 0; }
double ranks_seconds_waited(void) { return 0; }
double ranks_seconds_moved(void) { return 0; }
