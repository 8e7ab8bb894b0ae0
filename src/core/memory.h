/* How much memory a process can still get. */
#ifndef QKVI_CORE_MEMORY_H
#define QKVI_CORE_MEMORY_H

#include <stdint.h>

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/*
 * Bytes that are free, or that the system frees when they are wanted: on Linux MemAvailable and
 * SwapFree of /proc/meminfo, at most the limit of this process's control groups; INT64_MAX where
 * the system does not say. Linux grants more than it has and kills later, so who wants a great deal
 * asks this before. root is put before /proc and /sys: "" but in tests.
 */
int64_t qkvi_memory_free(const char *root);

#pragma GCC visibility pop

#endif
