/* Lists of heads, as --group, --heads and --head write them. */
#ifndef QKV_CLI_COMMON_HEADS_LIST_H
#define QKV_CLI_COMMON_HEADS_LIST_H

#include <stdint.h>

#include "common/cli.h"

/*
 * Heads of "1.2,3.*", each as layer * n_heads + head, into list, which is nullable; how many, or
 * -1: it is no such list.
 */
int64_t heads_group(const char *text, int64_t n_layers, int64_t n_heads, int64_t *list);

/* A head by its layer, -1: none, and its number. */
struct head_name {
    int64_t layer, head;
};
/* "3.11,0.2", "11,2": an array to be freed in any case, in that order. An exit code. */
int heads_parse(const struct cli_command *command, const char *option, const char *text,
                struct head_name **list, int *n);

#endif
