/*
 * qkv-check: see check.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"

static int usage(void) {
    fputs("usage: qkv-check [--cases N] [--seed S] [--isa NAME] [--one-case SEED] [--one-part "
          "SEED]\n",
          stderr);
    return 2;
}

int main(int argc, char **argv) {
    check_options options = { .n_cases = 500, .seed = 1, .failures = stdout };
    check_summary summary;
    for (int n = 1; n < argc; n += 2) {
        if (n + 1 == argc) return usage();
        const char *const name = argv[n], *const value = argv[n + 1];
        if (strcmp(name, "--cases") == 0)
            options.n_cases = atoi(value);
        else if (strcmp(name, "--seed") == 0)
            options.seed = strtoull(value, NULL, 10);
        else if (strcmp(name, "--isa") == 0)
            options.isa = value;
        else if (strcmp(name, "--one-case") == 0 || strcmp(name, "--one-part") == 0) {
            options.one = true;
            options.parts = strcmp(name, "--one-part") == 0;
            options.seed = strtoull(value, NULL, 10);
        } else
            return usage();
    }
    printf("first seed %" PRIu64 "; a failure again with --one-part SEED or --one-case SEED\n",
           options.seed);
    const int failures = check_run(&options, &summary);
    check_print(&summary, stdout);
    return failures ? 1 : 0;
}
