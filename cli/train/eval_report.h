/* Measuring a model and saying what came out: for `qkv eval` and `qkv train --eval`. */
#ifndef QKV_CLI_TRAIN_EVAL_REPORT_H
#define QKV_CLI_TRAIN_EVAL_REPORT_H

#include "common/session.h"

/* "what 97.1 %  (34 of 35)", or nothing where n is 0. */
void print_ratio(const char *what, int64_t right, int64_t n);

/* Exactly one of text and grammar. Prints a table, or JSON; returns an exit code. */
int eval_and_print(qkv_ctx *ctx, const qkv_model *model, const char *text, const char *grammar,
                   uint64_t seed, const struct cli_common *common);

/*
 * Perplexity of a model that predicts the next token, on the lines of a file; stride as qkv_perplexity
 * has it. Prints it; returns an exit code.
 */
int eval_perplexity(const struct session *session, const char *path, int64_t stride);

#endif
