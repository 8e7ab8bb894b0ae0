#include "core/cgroup.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/os.h"

enum { PATH_BYTES = 2048 }; /* longer paths are treated as absent */

bool qkvi_cgroup_line(char *line, size_t line_bytes, const char *format, ...) {
    char path[PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof path) return false;
    FILE *file = qkvi_os_open_procfs(path);
    if (!file) return false;
    const bool ok = fgets(line, (int)line_bytes, file) != NULL;
    fclose(file);
    return ok;
}

/* 0 is no limit. */
static int64_t lesser(int64_t a, int64_t b) { return a && (!b || a < b) ? a : b; }

/* Of group and of those above it. group is used up. */
static int64_t least_above(qkvi_cgroup_limit *limit_of, const char *root, char *group) {
    int64_t least = 0;
    for (;;) {
        char *slash = strrchr(group, '/');
        if (slash && !slash[1]) *slash = 0; /* "/" is "", where the tree is mounted */
        least = lesser(limit_of(root, group), least);
        slash = strrchr(group, '/');
        if (!slash) return least;
        *slash = 0;
    }
}

/* Does the comma-separated list of controllers (no terminator: it ends at end) contain this one? */
static bool contains(const char *list, const char *end, const char *controller) {
    const size_t length = strlen(controller);
    while (list < end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        const char *stop = comma ? comma : end;
        if ((size_t)(stop - list) == length && memcmp(list, controller, length) == 0) return true;
        list = stop + 1;
    }
    return false;
}

int64_t qkvi_cgroup_least(const char *root, const char *controller, qkvi_cgroup_limit *v2,
                          qkvi_cgroup_limit *v1) {
    char path[PATH_BYTES], line[PATH_BYTES];
    const int length = snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (length < 0 || (size_t)length >= sizeof path) return 0;
    FILE *file = qkvi_os_open_procfs(path);
    if (!file) return 0;
    int64_t least = 0;
    while (fgets(line, sizeof line, file)) { /* "7:cpu,cpuacct:/group", version 2: "0::/group" */
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || group[1] != '/') continue;
        if (group == controllers + 1)
            least = lesser(least_above(v2, root, group + 1), least);
        else if (contains(controllers + 1, group, controller))
            least = lesser(least_above(v1, root, group + 1), least);
    }
    fclose(file);
    return least;
}
