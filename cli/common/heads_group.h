/* Groups of heads, as --group writes them. */
#ifndef QKV_CLI_COMMON_HEADS_GROUP_H
#define QKV_CLI_COMMON_HEADS_GROUP_H

#include <stdint.h>

/*
 * Heads of "1.2,3.*", each as layer * n_heads + head, into list, which is nullable; how many, or
 * -1: it is no such list.
 */
int64_t heads_group(const char *text, int64_t n_layers, int64_t n_heads, int64_t *list);

#endif
