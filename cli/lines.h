/* Lines of a file or of standard input: data from anywhere, so a line is bounded. */
#ifndef QKV_CLI_LINES_H
#define QKV_CLI_LINES_H

#include "input.h"

enum { TEXT_LIMIT = 64 << 20 }; /* bytes of a line, and of a text on standard input */

/* Bytes, which may hold NUL. */
struct text {
    char *bytes;
    size_t n;
};

/* in, and zeros at first; free line.bytes at the end. */
struct lines {
    FILE *in;
    struct text line; /* without its newline */
    size_t room;
    int64_t number, n_bytes; /* number: from 1; n_bytes: read so far */
};

/*
 * Reads the next line; false at the end of the input. *status tells of a line that was too long, or
 * for which there was no memory: it is skipped, and reading goes on.
 */
bool lines_next(struct lines *lines, qkv_status *status, qkv_error *error);

#endif
