/*
 * --slide N,STRIDE: a text that is longer than the model takes, as windows of N of its tokens,
 * between the special tokens that the tokenizer puts around a text. The last window ends with the
 * text, so that all are of one length, and what is seen are means over them by place in the
 * window.
 */
#ifndef QKV_CLI_LOOK_WINDOWS_H
#define QKV_CLI_LOOK_WINDOWS_H

#include "look/text.h"

struct windows_rule {
    int64_t n, stride; /* tokens, besides those that the model adds */
};

/* An exit code, having said what is wrong. */
int windows_parse(const struct cli_command *command, const struct look_options *options,
                  struct windows_rule *rule);
/*
 * Looks at each window of the text of a job; list: of --heads. *made, their means, is to be freed
 * by windows_free, after a failure, too.
 */
qkv_status windows_look(const struct text_job *job, const qkv_encoding *text,
                        const struct head_name *list, int n_list, const struct what_if *parsed,
                        const struct windows_rule *rule, struct text_seen **made, qkv_error *error);
void windows_free(struct text_seen *made);

#endif
