/* `qkv train` and `qkv eval`: what their parts share. Calls return exit codes, having said why. */
#ifndef QKV_CLI_TRAIN_H
#define QKV_CLI_TRAIN_H

#include "common/job.h"
#include "common/lines.h"
#include "common/term.h"
#include <qkv/train.h>

/*
 * loss.png in train->out, from train_log.tsv there, which the trainer writes and a resumed run
 * continues (curve.c).
 */
int train_curve_write(const qkv_train_options *train, const struct cli_common *common);

/* Measures a model on a text or on a grammar; prints a table, or JSON (eval_report.c). */
int eval_and_print(qkv_ctx *ctx, const qkv_model *model, const char *text, const char *grammar,
                   uint64_t seed, const struct cli_common *common);

void eval_print(const qkv_eval_report *report, const struct cli_common *common);

/*
 * The same of a text that ranks share, by a model that fills blanks; journal is nullable
 * (eval_pieces.c).
 */
int eval_pieces(const struct session *session, const char *text, const char *journal);

/*
 * Perplexity of a model that predicts the next token, on the lines of a file; of a model with two
 * stacks they are source TAB target. stride as qkv_perplexity has it (eval_perplexity.c).
 */
int eval_perplexity(const struct session *session, const char *path, const char *journal,
                    int64_t stride);

/* How much of the file text the grammar says (grammar_check.c). */
int grammar_check_print(const char *grammar, const char *text, const struct cli_common *common);

/* "what 97.1 %  (34 of 35)", or nothing where n is 0. */
void print_ratio(const char *what, int64_t right, int64_t n);

/* EXIT_USAGE, having said so, without exactly one of --text and --grammar. */
int check_source(const struct cli_command *command, const char *text, const char *grammar);

#endif
