/* See heads_group.h. */
#include "common/heads_group.h"

#include <stdbool.h>
#include <stdio.h>
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
