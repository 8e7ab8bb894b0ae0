/*
 * --slide N,STRIDE: a text that is longer than the model takes, as windows of N of its tokens, between
 * the special tokens that the tokenizer puts around a text. The last window ends with the text, so that
 * all are of one length, and what is seen are means over them by place in the window.
 */
#ifndef QKV_CLI_LOOK_WINDOWS_H
#define QKV_CLI_LOOK_WINDOWS_H

#include "look/text.h"

struct windows_rule {
    int64_t n, stride; /* tokens, besides those that the model adds */
};

/* What one window showed. */
struct window {
    int64_t first; /* its first token, of those of the text */
    qkv_heads_choice choice;
    char *query, *key; /* labels of the choice; NULL: there is none */
    char *begins;      /* its first words */
    qkv_encoding encoding;
    struct text_seen *of; /* for a page, as long as that has room; else NULL */
};

struct windows {
    struct text_seen mean; /* the first: what a sink knows */
    const struct text_job *job;
    struct windows_rule rule;
    int64_t n_tokens;      /* of the text, without those … */
    int64_t before, after; /* … special ones that the tokenizer added at its beginning and end */
    int64_t n_windows;     /* that were looked at: all, or those before Ctrl-C */
    int64_t n_all, n_kept; /* there are; whose runs are kept for a page, at most */
    int64_t n;             /* tokens of each, with the special ones */
    struct window *list;
    qkv_encoding encoding; /* of the first window: places of the means */
};

/* An exit code, having said what is wrong. */
int windows_parse(const struct cli_command *command, const struct look_options *options,
                  struct windows_rule *rule);
/* Looks at each window of the text of a job; list: of --heads. To be freed after a failure, too. */
qkv_status windows_look(struct windows *windows, const struct text_job *job,
                        const qkv_encoding *text, const struct head_name *list, int n_list,
                        const struct what_if *parsed, const struct windows_rule *rule,
                        qkv_error *error);
void windows_free(struct windows *windows);

#endif
