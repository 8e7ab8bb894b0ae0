/*
 * `qkv look --slide N,STRIDE`: a source of a text that is longer than the model takes. Windows of N
 * tokens, with the special tokens that the tokenizer puts around a text, begin every STRIDE tokens;
 * the last one ends with the text. So all have the same length, and each weight and number is the
 * mean over all windows, by position in the window.
 */
#ifndef QKV_CLI_LOOK_WINDOWS_H
#define QKV_CLI_LOOK_WINDOWS_H

#include "look/text.h"

struct windows_rule {
    int64_t n, stride; /* tokens, without special tokens */
};

/* Returns an exit code, having said what is wrong. */
int windows_parse(const struct cli_command *command, const struct look_options *options,
                  struct windows_rule *rule);
/*
 * Looks at each window of the text of a job; list: of --heads. windows_free frees the means, *made,
 * after a failure too.
 */
qkv_status windows_look(const struct text_job *job, const qkv_encoding *text,
                        const struct head_name *list, int n_list, const struct what_if *parsed,
                        const struct windows_rule *rule, struct text_seen **made, qkv_error *error);
void windows_free(struct text_seen *made);

#endif
