/* What mpirun says of ranks, and how they agree: see ranks.h. */
#include "common/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"

int ranks_announced(void) {
    static const char *const names[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const text = getenv(names[i]);
        const long n = text ? strtol(text, NULL, 10) : 0;
        if (n > 0 && n < 1 << 30) return (int)n;
    }
    return 0;
}

bool ranks_wanted(char **argv) {
    const struct cli_command *const command = argv[1] ? cli_command_find(argv[1]) : NULL;
    if (command && command->over_ranks) return ranks_announced() > 1;
    for (size_t i = 1; argv[1] && argv[i]; i++)
        if (strcmp(argv[i], "--mpi") == 0) return true;
    return false;
}

enum { SHOWN = 400 };

/* What a rank has come to. */
struct outcome {
    int code;
    char message[CLI_MOST_MESSAGE];
    uint64_t hash;
    char shown[SHOWN];
};

/* EXIT_FAILED, said by the first rank, if a rank has another hash. */
static int compare(const struct outcome *all, const char *what) {
    for (int rank = 1; rank < ranks_size(); rank++)
        if (all[rank].hash != all[0].hash)
            return cli_fail("rank %d has another %s than rank 0: %s, not %s", rank, what,
                            all[rank].shown, all[0].shown);
    return EXIT_OK;
}

int ranks_agree_on(int code, const struct ranks_fact *fact) {
    static int failed;
    const int size = ranks_size();
    if (failed || size == 1) return failed ? failed : code;
    struct outcome mine = { .code = code, .hash = fact ? fact->hash : 0 };
    struct outcome *const all = calloc((size_t)size, sizeof *all);
    if (!all) abort(); /* which ends the job */
    if (code) memcpy(mine.message, cli_kept, sizeof mine.message);
    if (fact) snprintf(mine.shown, sizeof mine.shown, "%s", fact->shown);
    ranks_gather(&mine, (int)sizeof mine, all);
    for (int rank = 0; rank < size && !failed; rank++) {
        failed = all[rank].code;
        if (failed && rank > 0 && ranks_rank() == 0 && *all[rank].message)
            cli_note(false, "%s (rank %d)", all[rank].message, rank);
    }
    if (!failed && fact) failed = compare(all, fact->what);
    free(all);
    return failed;
}

int ranks_agree(int code) { return ranks_agree_on(code, NULL); }
