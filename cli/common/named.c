/* Names of files: see named.h. */
#include "common/named.h"

#include <string.h>

#include "common/lines.h"
#include "core/os.h"

/* Letters and digits of ASCII, small, with a '-' for whatever stands between them. */
static void add_words(char *name, size_t room, const struct text *text) {
    enum { MOST = 40 };
    size_t n = strlen(name), taken = 0;
    bool gap = true;
    for (size_t i = 0; i < text->n && taken < MOST && n + 2 < room; i++) {
        const char c = text->bytes[i];
        const bool upper = c >= 'A' && c <= 'Z';
        if (!upper && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9')) {
            gap = true;
            continue;
        }
        if (gap) name[n++] = '-';
        gap = false;
        name[n++] = upper ? (char)(c - 'A' + 'a') : c;
        taken++;
    }
    name[n] = '\0';
}

const char *named_file(const char *out, const char *what, const struct text *const said[2],
                       char room[NAMED_ROOM]) {
    size_t n_folder;
    const char *const name = out + qkvi_os_split(out, &n_folder);
    if (*name != '.' || strchr(name + 1, '.') || strlen(out) + strlen(what) + 64 > NAMED_ROOM)
        return out;
    snprintf(room, NAMED_ROOM, "%.*s%s", (int)(name - out), out, what);
    if (said && said[0]) add_words(room, NAMED_ROOM - 16, said[0]);
    text_append(room, NAMED_ROOM, "%s", name);
    return room;
}
