/* The parts of `qkv train` and `qkv eval`. Calls return exit codes, having said what is wrong. */
#ifndef QKV_CLI_TRAIN_H
#define QKV_CLI_TRAIN_H

#include "common/job.h"
#include "common/lines.h"
#include "common/term.h"
#include <qkv/train.h>

/*
 * Draws loss.png in train->out, from train_log.tsv there, which has the whole run, even if it was
 * resumed (curve.c).
 */
int train_curve_write(const qkv_train_options *train, const struct cli_common *common);

/* Evaluates a model on a text or a grammar; prints a table, or JSON (eval_report.c). */
int eval_and_print(qkv_ctx *ctx, const qkv_model *model, const char *text, const char *grammar,
                   uint64_t seed, const struct cli_common *common);

void eval_print(const qkv_eval_report *report, const struct cli_common *common);

/*
 * Evaluates a model with an MLM head on a text that ranks share; journal is nullable
 * (eval_pieces.c).
 */
int eval_pieces(const struct session *session, const char *text, const char *journal);

/*
 * Perplexity of a causal language model on the lines of a file; for an encoder-decoder lines are
 * source TAB target. stride: as in qkv_perplexity (eval_perplexity.c).
 */
int eval_perplexity(const struct session *session, const char *path, const char *journal,
                    int64_t stride);

/* Prints how much of a text a grammar can generate (grammar_check.c). */
int grammar_check_print(const char *grammar, const char *text, const struct cli_common *common);

/* Prints "what 97.1 %  (34 of 35)"; nothing if n is 0. */
void print_ratio(const char *what, int64_t right, int64_t n);

/* Refuses anything but exactly one of --text and --grammar. */
int check_source(const struct cli_command *command, const char *text, const char *grammar);

#endif
