/*
 * Jobs of `qkv look`: which source is looked at, and which sink shows it. Only here both are known
 * (job.c).
 */
#ifndef QKV_CLI_LOOK_JOB_H
#define QKV_CLI_LOOK_JOB_H

#include "common/job.h"
#include "look/windows.h"

struct look_job {
    struct text_job texts;
    struct head_name *list; /* of --heads */
    int n_list;
    struct what_if what_if;
    struct windows_rule windows;
    struct session other; /* of --against */
};

/* Of texts. An exit code, having said what is wrong. To be closed in any case. */
int look_job_open(struct look_job *job, const struct cli_command *command,
                  const struct look_options *options);
void look_job_close(struct look_job *job);

/* Looks at the texts of the command line, or at arrays. Exit codes. */
int look_texts(const struct cli_command *command, const struct look_options *options, int n_words,
               char **words);
int look_arrays(const struct cli_command *command, const struct look_options *options);

/* --serve: looks at each text that a browser sends (serve.c). first: TEXT, nullable. An exit code. */
int look_serve(const struct cli_command *command, const struct look_options *options,
               const char *first);

#endif
