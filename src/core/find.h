/* The first place of some bytes in others, as memmem finds it, which Windows lacks. */
#ifndef QKVI_CORE_FIND_H
#define QKVI_CORE_FIND_H

#include <stddef.h>
#include <string.h>

/* n_what >= 1, and small: takes n times n_what at worst. NULL: they are not there. */
static inline const char *qkvi_find(const char *bytes, size_t n, const char *what, size_t n_what) {
    while (n >= n_what) {
        const char *const at = memchr(bytes, what[0], n - n_what + 1);
        if (!at || memcmp(at, what, n_what) == 0) return at;
        n -= (size_t)(at + 1 - bytes);
        bytes = at + 1;
    }
    return NULL;
}

#endif
