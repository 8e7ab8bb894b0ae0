/* Parts of `qkv info`. */
#ifndef QKV_CLI_MODEL_INFO_H
#define QKV_CLI_MODEL_INFO_H

#include "common/cli.h"

/* --strict: the findings of an audit. Returns an exit code. */
int info_strict(const struct cli_command *command, const char *path,
                const struct cli_common *common);

bool info_ends_in(const char *name, const char *ending);

#endif
