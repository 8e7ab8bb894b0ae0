/*
 * Resident memory of this process on Linux: VmHWM, the maximum since it was last reset. Before a
 * reset, freed memory is returned to the system; otherwise a case that reuses it would seem to need
 * none. Other systems cannot reset theirs.
 */
#include "suite/suite.h"

#if defined(__linux__)
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Bytes behind a word such as "VmHWM:". */
static double status_bytes(const char *name) {
    char line[256];
    long long kilobytes = -1;
    FILE *file = fopen("/proc/self/status", "r");
    if (!file) return -1;
    while (kilobytes < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0 &&
            sscanf(line + strlen(name), "%lld", &kilobytes) != 1)
            break;
    fclose(file);
    return kilobytes < 0 ? -1 : (double)kilobytes * 1024;
}

double bench_memory_mark(void) {
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 1 << 17); /* fixed: otherwise it grows with what is freed */
    malloc_trim(0);
#endif
    const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (file < 0) return -1;
    const bool done = write(file, "5", 1) == 1;
    close(file);
    return done ? status_bytes("VmRSS:") : -1;
}

double bench_memory_peak(void) { return status_bytes("VmHWM:"); }

#else

double bench_memory_mark(void) { return -1; }
double bench_memory_peak(void) { return -1; }

#endif
