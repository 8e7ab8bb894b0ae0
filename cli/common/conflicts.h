/* Tables of options that do not go together, and checks of the file name of -o and of --scale. */
#ifndef QKV_CLI_COMMON_CONFLICTS_H
#define QKV_CLI_COMMON_CONFLICTS_H

#include "common/cli.h"

/*
 * Names are options, "--q|--k"; "a text" is any word of the command. It is a mistake if one of
 * `these` was given (NULL: in any case), and one of `with`; or, where `with` is NULL, none of
 * `without`.
 */
struct option_conflict {
    const char *these, *with, *without;
    const char *message; /* a format of the two names; NULL: "%s together with %s" */
};

/* The first of the names that was given; NULL: none. */
const char *option_first(const struct cli_command *command, const void *options, int n_words,
                         const char *names);

/* Says the first conflict of the command line, and returns EXIT_USAGE. */
int conflicts_check(const struct cli_command *command, const void *options, int n_words,
                    const struct option_conflict *list, int n);

/*
 * Says "-o: 'a.txt' ends in none of .csv .tsv", and returns EXIT_USAGE, if path has none of the
 * endings. NULL is allowed.
 */
int path_check_ending(const struct cli_command *command, const char *path, const char *endings);
/* The same; also refuses -o together with --json or --jsonl, and a file that is not writable. */
int path_check_out(const struct cli_command *command, const struct cli_common *common,
                   const char *path, const char *endings);
/* The index of a path's ending in a list such as ".png .svg"; -1: it has none of them. */
int path_ending(const char *path, const char *endings);

/* Refuses a --scale that is 0 as a float, which qkv_heads_arrays takes for 1 / sqrt(head_dim). */
int scale_check(const struct cli_command *command, const struct arg_real *scale);

#endif
