/* Finds installed files from the path of the running program: see shared.h. */
#include "common/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os.h"
#include "core/os.h"

static bool is_there(const char *path) {
    qkvi_os_about about;
    return qkvi_os_examine(path, &about) == 0;
}

/* Plain names only: nothing that leads out of the folder. */
static int is_inside(const char *name) {
    return *name && !qkvi_os_is_absolute(name) && strcmp(name, "-") != 0 && !strstr(name, "..");
}

/* room: FOLDER and `between` and the name. Is it there? */
static int is_at(const char *folder, const char *between, const char *name,
                 char room[SHARED_ROOM]) {
    const int length = snprintf(room, SHARED_ROOM, "%s/%s%s", folder, between, name);
    return length > 0 && length < SHARED_ROOM && is_there(room);
}

static int begins(const char *name, const char *with) {
    return strncmp(name, with, strlen(with)) == 0;
}

bool shared_is_ours(const char *name) {
    return is_inside(name) && (begins(name, "examples/") || begins(name, "models/"));
}

/*
 * Up from the tool: beside PREFIX/bin/qkv; or in the source, which has the headers, where a tool
 * that was built and not installed lies within it.
 */
static int is_above(char *tool, const char *name, char room[SHARED_ROOM]) {
    char *slash;
    for (int up = 1; (slash = strrchr(tool, '/')); up++) {
        *slash = '\0';
        if (up == 2 && is_at(tool, "share/qkv/", name, room)) return 1;
        if (shared_is_ours(name) && is_at(tool, "include/qkv/", "qkv.h", room) &&
            is_at(tool, "", name, room))
            return 1;
    }
    return 0;
}

const char *shared_path(const char *name, char room[SHARED_ROOM]) {
    char tool[SHARED_ROOM];
    if (!is_inside(name) || is_there(name)) return name;
    return os_self(tool, sizeof tool) && is_above(tool, name, room) ? room : name;
}

const char *shared_copy(const char *name) {
    static char room[SHARED_ROOM];
    const char *const found = name ? shared_path(name, room) : NULL;
    if (found == name) return name;
    const char *const copy = strdup(found);
    return copy ? copy : name;
}
