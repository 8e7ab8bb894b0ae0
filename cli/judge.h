/* Text judged by a grammar: `qkv eval --judge`. */
#ifndef QKV_CLI_JUDGE_H
#define QKV_CLI_JUDGE_H

#include "args.h"

/* Prints how much of the file text the grammar says, or JSON; returns an exit code. */
int judge_and_print(const char *grammar, const char *text, const struct cli_common *common);

#endif
