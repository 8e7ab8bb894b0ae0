/*
 * Limits that Linux's control groups put on this process, of version 1 and 2. Elsewhere there are
 * no such files, and no limits.
 */
#ifndef QKVI_CORE_CGROUP_H
#define QKVI_CORE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The limit of one group, "" or "/slice/job"; 0: none. */
typedef int64_t qkvi_cgroup_limit(const char *root, const char *group);

/*
 * The smallest limit of this process's group and of those above it; 0: none. controller: "cpu",
 * "memory". root is put before /proc and /sys: "" but in tests.
 */
int64_t qkvi_cgroup_least(const char *root, const char *controller, qkvi_cgroup_limit *v2,
                          qkvi_cgroup_limit *v1);

/* The first line of a file, of the path that format and its arguments make; false: no such file. */
__attribute__((format(printf, 3, 4))) bool qkvi_cgroup_line(char *line, size_t line_bytes,
                                                            const char *format, ...);

#endif
