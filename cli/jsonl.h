/*
 * Lines of JSON on standard input, each a string or an array of two. A line is data from anywhere:
 * its length is bounded, and it is looked over before it is parsed, so that it cannot make the
 * parser use more memory than a few times its bytes.
 */
#ifndef QKV_CLI_JSONL_H
#define QKV_CLI_JSONL_H

#include <jansson.h>

#include "input.h"

enum { TEXT_LIMIT = 64 << 20 }; /* bytes of a line, and of a text on standard input */

/* Bytes, which may hold NUL. */
struct text {
    char *bytes;
    size_t n;
};

/* Zeros at first; free line.bytes at the end. */
struct jsonl {
    struct text line; /* without its newline */
    size_t room;
    int64_t number; /* from 1 */
};

/*
 * Reads the next line; false at the end of the input. *status tells of a line that was too long, or
 * for which there was no memory: it is skipped, and reading goes on.
 */
bool jsonl_next(struct jsonl *lines, qkv_status *status, qkv_error *error);

/* The texts of the line, which live as long as *root, which the caller releases; how many. */
qkv_status jsonl_parse(const struct text *line, struct text texts[2], int *n_texts, json_t **root,
                       qkv_error *error);

#endif
