/*
 * qkv-check: see check.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"

static int usage(void) {
    fputs("usage: qkv-check [--cases N] [--pairs N] [--table 1] [--seed S] [--isa NAME] "
          "[--one-case SEED] [--one-part SEED] [--one-decode SEED] [--one-pair SEED]\n",
          stderr);
    return 2;
}

static int kind_of(const char *name) {
    static const char *const names[CHECK_KINDS] = { "--one-part", "--one-case", "--one-decode",
                                                    "--one-pair" };
    for (int kind = 0; kind < CHECK_KINDS; kind++)
        if (strcmp(name, names[kind]) == 0) return kind;
    return -1;
}

int main(int argc, char **argv) {
    check_options options = { .n_cases = 150, .n_pairs = 1, .seed = 1, .failures = stdout };
    static check_summary summary;
    int table = 0;
    for (int n = 1; n < argc; n += 2) {
        if (n + 1 == argc) return usage();
        const char *const name = argv[n], *const value = argv[n + 1];
        if (strcmp(name, "--cases") == 0)
            options.n_cases = atoi(value);
        else if (strcmp(name, "--pairs") == 0)
            options.n_pairs = atoi(value);
        else if (strcmp(name, "--table") == 0)
            table = atoi(value);
        else if (strcmp(name, "--seed") == 0)
            options.seed = strtoull(value, NULL, 10);
        else if (strcmp(name, "--isa") == 0)
            options.isa = value;
        else if (kind_of(name) >= 0) {
            options.one = true;
            options.kind = kind_of(name);
            options.seed = strtoull(value, NULL, 10);
        } else
            return usage();
    }
    printf("first seed %" PRIu64
           "; a failure again with --one-part, --one-case, --one-decode or --one-pair SEED\n",
           options.seed);
    const int failures = check_run(&options, &summary);
    if (table) check_print_pairs(&summary, stdout);
    check_print(&summary, stdout);
    return failures ? 1 : 0;
}
