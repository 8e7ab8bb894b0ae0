/* Reads the list of --heads. */
#include "heads/list.h"

#include <stdlib.h>
#include <string.h>

/* One name of n characters. */
static bool parse_one(const char *text, size_t n, struct head_name *name) {
    char copy[48];
    if (n == 0 || n >= sizeof copy) return false;
    memcpy(copy, text, n);
    copy[n] = '\0';
    char *const dot = strchr(copy, '.');
    name->layer = -1;
    if (!dot) return args_int(copy, 0, INT32_MAX, &name->head);
    *dot = '\0';
    return args_int(copy, 0, INT32_MAX, &name->layer) &&
           args_int(dot + 1, 0, INT32_MAX, &name->head);
}

static bool is_in(const struct head_name *list, int n, const struct head_name *name) {
    for (int i = 0; i < n; i++)
        if (list[i].layer == name->layer && list[i].head == name->head) return true;
    return false;
}

int heads_list_parse(const struct cli_command *command, const char *option, const char *text,
                     struct head_name **list, int *n) {
    *n = 0;
    *list = calloc(strlen(text) / 2 + 1, sizeof **list);
    if (!*list) return cli_fail("out of memory");
    for (const char *at = text;; at++) {
        const size_t bytes = strcspn(at, ",");
        struct head_name name;
        if (!parse_one(at, bytes, &name))
            return cli_usage(command, "%s: '%.*s' is not L.H or H", option, (int)bytes, at);
        if (is_in(*list, *n, &name))
            return cli_usage(command, "%s names %.*s twice", option, (int)bytes, at);
        (*list)[(*n)++] = name;
        at += bytes;
        if (!*at) return EXIT_OK;
    }
}
