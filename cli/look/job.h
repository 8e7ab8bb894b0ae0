/*
 * Jobs of `qkv look`: which source is looked at, and which sink shows it. Only here both are known
 * (job.c).
 */
#ifndef QKV_CLI_LOOK_JOB_H
#define QKV_CLI_LOOK_JOB_H

#include "look/options.h"

/* Looks at the texts of the command line, or at arrays. Exit codes. */
int look_texts(const struct cli_command *command, const struct look_options *options, int n_words,
               char **words);
int look_arrays(const struct cli_command *command, const struct look_options *options);
/*
 * --serve: a page on this computer that follows what its reader types. Each text is looked at as
 * by `qkv look TEXT -o FILE.html`, with the same options, and what the model refuses is shown in
 * the page's place. first: TEXT, nullable.
 */
int look_serve(const struct cli_command *command, const struct look_options *options,
               const char *first);

#endif
