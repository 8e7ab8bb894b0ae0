/* Text judged by a grammar: `qkv eval --check`. */
#ifndef QKV_CLI_TRAIN_GRAMMAR_CHECK_H
#define QKV_CLI_TRAIN_GRAMMAR_CHECK_H

#include "common/args.h"

/* Prints how much of the file text the grammar says, or JSON; returns an exit code. */
int grammar_check_print(const char *grammar, const char *text, const struct cli_common *common);

#endif
