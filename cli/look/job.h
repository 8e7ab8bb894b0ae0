/*
 * Jobs of `qkv look`: choose a source and a sink. Only job.c knows both.
 */
#ifndef QKV_CLI_LOOK_JOB_H
#define QKV_CLI_LOOK_JOB_H

#include "look/options.h"

/* Look at the texts of the command line, or at arrays. Return exit codes. */
int look_texts(const struct cli_command *command, const struct look_options *options, int n_words,
               char **words);
int look_arrays(const struct cli_command *command, const struct look_options *options);
int look_image(const struct cli_command *command, const struct look_options *options);
/*
 * --serve: a server on this computer, whose page has a field for a text. Each text gives the page
 * of `qkv look TEXT -o FILE.html` with the same options; an error is shown in its place. first: the
 * text to begin with, nullable.
 */
int look_serve(const struct cli_command *command, const struct look_options *options,
               const char *first);

#endif
