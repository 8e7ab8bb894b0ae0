/* Lists of heads: see heads_list.h. */
#include "common/heads_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "common/session.h"

int64_t heads_group(const char *text, int64_t n_layers, int64_t n_heads, int64_t *list) {
    int64_t n = 0, layer = 0, head = 0;
    while (*text) {
        char one[48], digits[24];
        const size_t bytes = strcspn(text, ",");
        if (bytes == 0 || bytes >= sizeof one) return -1;
        snprintf(one, sizeof one, "%.*s", (int)bytes, text);
        text += bytes + (text[bytes] == ',');
        const bool whole = bytes > 2 && strcmp(one + bytes - 2, ".*") == 0;
        snprintf(digits, sizeof digits, "%.*s", (int)(bytes - 2), one);
        if (whole ? !number_int(digits, 0, INT32_MAX, &layer) : !session_place(one, &layer, &head))
            return -1;
        if (layer >= n_layers || (!whole && head >= n_heads)) return -1;
        const int64_t first = whole ? 0 : head, end = whole ? n_heads : head + 1;
        for (int64_t h = first; h < end; h++, n++)
            if (list) list[n] = layer * n_heads + h;
    }
    return n > 0 ? n : -1;
}

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

int heads_parse(const struct cli_command *command, const char *option, const char *text,
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
