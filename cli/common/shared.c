/* Where the tool is, from the link of Linux to the running program: see shared.h. */
#include "common/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Plain names only: nothing that leads out of the folder. */
static int is_inside(const char *name) {
    return *name && *name != '/' && strcmp(name, "-") != 0 && !strstr(name, "..");
}

const char *shared_path(const char *name, char room[SHARED_ROOM]) {
    char tool[SHARED_ROOM];
    if (!is_inside(name) || access(name, F_OK) == 0) return name;
    const ssize_t n = readlink("/proc/self/exe", tool, sizeof tool - 1);
    if (n <= 0) return name;
    tool[n] = '\0';
    for (int up = 0; up < 2; up++) { /* PREFIX/bin/qkv */
        char *const slash = strrchr(tool, '/');
        if (!slash) return name;
        *slash = '\0';
    }
    const int length = snprintf(room, SHARED_ROOM, "%s/share/qkv/%s", tool, name);
    return length > 0 && length < SHARED_ROOM && access(room, F_OK) == 0 ? room : name;
}

const char *shared_copy(const char *name) {
    static char room[SHARED_ROOM];
    const char *const found = name ? shared_path(name, room) : NULL;
    if (found == name) return name;
    const char *const copy = strdup(found);
    return copy ? copy : name;
}
