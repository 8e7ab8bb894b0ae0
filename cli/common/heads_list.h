/* Lists of heads, as --group, --heads and --head write them. */
#ifndef QKV_CLI_COMMON_HEADS_LIST_H
#define QKV_CLI_COMMON_HEADS_LIST_H

#include <stdint.h>

#include "common/cli.h"

/*
 * Reads a list such as "1.2,3.*" into heads layer * n_heads + head; list may be NULL. Returns their
 * number, or -1 if the text is no such list.
 */
int64_t heads_group(const char *text, int64_t n_layers, int64_t n_heads, int64_t *list);

/* layer is -1 where only the number of the head was given. */
struct head_name {
    int64_t layer, head;
};
/*
 * Reads "3.11,0.2" or "11,2" into a new array in that order, which the caller frees in any case.
 * Returns an exit code, having said what is wrong.
 */
int heads_parse(const struct cli_command *command, const char *option, const char *text,
                struct head_name **list, int *n);

#endif
