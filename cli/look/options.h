/* Options of `qkv look`, their rules, and lists of heads. */
#ifndef QKV_CLI_LOOK_OPTIONS_H
#define QKV_CLI_LOOK_OPTIONS_H

#include "sinks/seen.h"

#define PICTURES ".png .svg .pdf"
#define ENDINGS  ".html " PICTURES " .json .csv .npy"

struct look_options {
    struct cli_common common;
    const char *pair, *out, *heads, *file, *windows;
    struct pair_options which;
    bool align; /* of --cross (align.c) */
    struct arg_int top;
    struct arg_texts what_if;
    /* --q, --k: arrays in place of a text (arrays.c) */
    const char *q, *k, *tokens, *q_tokens, *causal, *window;
    struct arg_real scale;
    bool lens;               /* common/lens.h; of a page lens.c */
    const char *against;     /* against.c */
    bool effect;             /* of a page … */
    struct arg_texts groups; /* … and of groups (effects.c) */
    bool serve;              /* serve.c */
    bool mpi;                /* of arrays */
    struct arg_int port;
    struct sink_options sink;
};

static inline qkv_which look_which(const struct look_options *options) {
    return options->align ? QKV_CROSS : pair_which(&options->which);
}
static inline int64_t look_top(const struct look_options *options) {
    return options->top.set ? options->top.value : 5;
}

/* EXIT_USAGE, having said so, if options do not go together. */
int look_check(const struct cli_command *command, const struct look_options *options, int n_words);

/* "3.11,0.2", "11,2": an array to be freed in any case, in that order. Exit codes. */
int heads_parse(const struct cli_command *command, const char *option, const char *text,
                struct head_name **list, int *n);
/* --heads, all of them in the model. */
int heads_of_model(const struct look_options *options, const struct session *session,
                   struct head_name **list, int *n);

#endif
