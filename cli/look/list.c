/* --heads: a list of heads by layer and head, or by head alone. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "look/look.h"

/* One name of n characters. */
static bool parse_one(const char *text, size_t n, struct head_name *name) {
    char copy[48];
    if (n >= sizeof copy) return false;
    snprintf(copy, sizeof copy, "%.*s", (int)n, text);
    name->layer = -1;
    return strchr(copy, '.') ? session_place(copy, &name->layer, &name->head)
                             : number_int(copy, 0, INT32_MAX, &name->head);
}

static bool is_in(const struct head_name *list, int n, const struct head_name *name) {
    for (int i = 0; i < n; i++)
        if (list[i].layer == name->layer && list[i].head == name->head) return true;
    return false;
}

int look_list_parse(const struct cli_command *command, const char *option, const char *text,
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

int look_list_heads(const struct cli_command *command, const struct look_options *options,
                    const struct session *session, struct head_name **list, int *n) {
    if (!options->heads) return EXIT_OK;
    int code = look_list_parse(command, "--heads", options->heads, list, n);
    for (int i = 0; code == EXIT_OK && i < *n; i++) {
        const struct head_name *name = &(*list)[i];
        char text[48];
        if (name->layer < 0)
            return cli_usage(command, "--heads: %" PRId64 " names no layer: L.%" PRId64, name->head,
                             name->head);
        snprintf(text, sizeof text, "%" PRId64 ".%" PRId64, name->layer, name->head);
        code = session_check_head(session, look_which(options), "--heads", text, name->layer,
                                  name->head, "model");
    }
    return code;
}
