/* --heads: a list of heads by layer and head, or by head alone. */
#ifndef QKV_CLI_HEADS_LIST_H
#define QKV_CLI_HEADS_LIST_H

#include "common/cli.h"

struct head_name {
    int64_t layer, head; /* layer -1: none was written */
};

/* "3.11,0.2", "11,2": an array to be freed in any case, in that order. An exit code, having said what is wrong. */
int heads_list_parse(const struct cli_command *command, const char *option, const char *text,
                     struct head_name **list, int *n);

#endif
