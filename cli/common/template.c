/* Texts with holes: see cli.h. */
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"

bool template_write(FILE *out, const char *text, void (*fill)(void *user, const char *name),
                    void *user) {
    bool written = true;
    for (const char *hole; (hole = strstr(text, "@{"));) {
        const char *const end = strchr(hole, '}');
        char *const name = strndup(hole + 2, (size_t)(end - hole) - 2);
        const bool is_line = hole[-1] == '\n' && end[1] == '\n'; /* no text begins with a hole */
        const size_t n = (size_t)(hole - text);
        written = name && fwrite(text, 1, n, out) == n && written;
        if (name) fill(user, name);
        free(name);
        text = end + 1 + is_line;
    }
    return fputs(text, out) != EOF && written;
}
