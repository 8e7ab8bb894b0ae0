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

/* room: FOLDER and `between` and the name. Is it there? */
static int is_at(const char *folder, const char *between, const char *name,
                 char room[SHARED_ROOM]) {
    const int length = snprintf(room, SHARED_ROOM, "%s/%s%s", folder, between, name);
    return length > 0 && length < SHARED_ROOM && access(room, F_OK) == 0;
}

static int begins(const char *name, const char *with) {
    return strncmp(name, with, strlen(with)) == 0;
}

bool shared_is_ours(const char *name) {
    return is_inside(name) && (begins(name, "examples/") || begins(name, "models/"));
}

/* A tool that was built and not installed runs within its source, which has the headers. */
static int is_in_source(char *folder, const char *name, char room[SHARED_ROOM]) {
    if (!shared_is_ours(name)) return 0;
    for (char *slash; (slash = strrchr(folder, '/'));) {
        *slash = '\0';
        if (is_at(folder, "include/qkv/", "qkv.h", room) && is_at(folder, "", name, room)) return 1;
    }
    return 0;
}

const char *shared_path(const char *name, char room[SHARED_ROOM]) {
    char tool[SHARED_ROOM], prefix[SHARED_ROOM];
    if (!is_inside(name) || access(name, F_OK) == 0) return name;
    const ssize_t n = readlink("/proc/self/exe", tool, sizeof tool - 1);
    if (n <= 0) return name;
    tool[n] = '\0';
    strcpy(prefix, tool);
    for (int up = 0; up < 2; up++) { /* PREFIX/bin/qkv */
        char *const slash = strrchr(prefix, '/');
        if (!slash) return name;
        *slash = '\0';
    }
    if (is_at(prefix, "share/qkv/", name, room) || is_in_source(tool, name, room)) return room;
    return name;
}

const char *shared_copy(const char *name) {
    static char room[SHARED_ROOM];
    const char *const found = name ? shared_path(name, room) : NULL;
    if (found == name) return name;
    const char *const copy = strdup(found);
    return copy ? copy : name;
}
