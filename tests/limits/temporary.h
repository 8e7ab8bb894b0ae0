/**
 * Temporary files of tests. They are in TMPDIR, a folder that bounded.c makes for each test and
 * removes with all that is left in it, however the test has ended; in /tmp for a test that is run
 * by hand.
 */
#ifndef QKV_TESTS_TEMPORARY_H
#define QKV_TESTS_TEMPORARY_H

#include <stdio.h>
#include <stdlib.h>

/** Room for the path of a temporary file or folder. */
#define TEMPORARY_PATH 200

/** Writes the pattern for mkstemp and mkdtemp, PARENT/NAME-XXXXXX, to path, which it returns. */
static inline char *temporary_in(const char *parent, const char *name, char path[TEMPORARY_PATH]) {
    const int n = snprintf(path, TEMPORARY_PATH, "%s/%s-XXXXXX", parent, name);
    if (n < 0 || n >= TEMPORARY_PATH) {
        fprintf(stderr, "TMPDIR is too long: %s\n", parent);
        exit(1);
    }
    return path;
}

static inline char *temporary(const char *name, char path[TEMPORARY_PATH]) {
    const char *const parent = getenv("TMPDIR");
    return temporary_in(parent && *parent ? parent : "/tmp", name, path);
}

#endif
