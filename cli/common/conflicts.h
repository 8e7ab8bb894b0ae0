/*
 * Options of a command that do not go together, as a table, and what a file of -o may be called.
 */
#ifndef QKV_CLI_COMMON_CONFLICTS_H
#define QKV_CLI_COMMON_CONFLICTS_H

#include "common/cli.h"

/* Names are options, "--q|--k", or "a text": a word of the command. */
struct option_conflict {
    const char *these;   /* one of them was given (NULL: in any case) … */
    const char *with;    /* … together with one of these, or if that is NULL … */
    const char *without; /* … without any of these: that is a mistake */
    const char *message; /* a format of the two names; NULL: "%s together with %s" */
};

/* The first of the names that was given; NULL: none. */
const char *option_first(const struct cli_command *command, const void *options, int n_words,
                         const char *names);

/* EXIT_USAGE, having said so, at the first conflict. */
int conflicts_check(const struct cli_command *command, const void *options, int n_words,
                    const struct option_conflict *list, int n);

/* "-o: 'a.txt' ends in none of .csv .tsv": EXIT_USAGE, having said so, unless path is NULL. */
int path_check_ending(const struct cli_command *command, const char *path, const char *endings);
/* The same, and that nothing else writes JSON, and that the file can be written. */
int path_check_out(const struct cli_command *command, const struct cli_common *common,
                   const char *path, const char *endings);
/* The place of the ending of a path in ".png .svg"; -1: it has none of them. */
int path_ending(const char *path, const char *endings);

#endif
