#include "core/memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cgroup.h"
#include "core/os.h"

enum { PATH_BYTES = 2048 };

/* "max" is no number, and so no limit. */
static int64_t bytes_of(const char *line) {
    const long long bytes = atoll(line);
    return bytes > 0 ? bytes : 0;
}

static int64_t limit_v2(const char *root, const char *group) {
    char line[64];
    return qkvi_cgroup_line(line, sizeof line, "%s/sys/fs/cgroup%s/memory.max", root, group)
               ? bytes_of(line)
               : 0;
}

static int64_t limit_v1(const char *root, const char *group) {
    char line[64];
    return qkvi_cgroup_line(line, sizeof line, "%s/sys/fs/cgroup/memory%s/memory.limit_in_bytes",
                            root, group)
               ? bytes_of(line)
               : 0;
}

/* Of lines such as "MemAvailable:   12345 kB". */
static int64_t available(const char *root) {
    char path[PATH_BYTES], line[128], unit[4];
    const int length = snprintf(path, sizeof path, "%s/proc/meminfo", root);
    FILE *const file =
        length > 0 && (size_t)length < sizeof path ? qkvi_os_open_procfs(path) : NULL;
    int64_t kilobytes, sum = 0;
    bool found = false;
    while (file && fgets(line, sizeof line, file)) {
        const bool is_memory = strncmp(line, "MemAvailable:", 13) == 0;
        if (!is_memory && strncmp(line, "SwapFree:", 9) != 0) continue;
        if (sscanf(strchr(line, ':') + 1, "%" SCNd64 " %3s", &kilobytes, unit) != 2 ||
            strcmp(unit, "kB") != 0 || kilobytes < 0 || kilobytes > INT64_MAX / 4096)
            continue;
        sum += 1024 * kilobytes;
        found |= is_memory;
    }
    if (file) fclose(file);
    return found ? sum : INT64_MAX;
}

int64_t qkvi_memory_free(const char *root) {
    const int64_t limit = qkvi_cgroup_least(root, "memory", limit_v2, limit_v1);
    const int64_t free_bytes = available(root);
    return limit && limit < free_bytes ? limit : free_bytes;
}
