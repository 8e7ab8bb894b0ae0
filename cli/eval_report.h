/* Measuring a model and saying what came out: for `qkv eval` and `qkv train --eval`. */
#ifndef QKV_CLI_EVAL_REPORT_H
#define QKV_CLI_EVAL_REPORT_H

#include "args.h"
#include <qkv/model.h>

/* Exactly one of text and grammar. Prints a table, or JSON; returns an exit code. */
int eval_and_print(qkv_ctx *ctx, const qkv_model *model, const char *text, const char *grammar,
                   uint64_t seed, const struct cli_common *common);

#endif
