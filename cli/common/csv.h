/*
 * A CSV file while it grows in memory: quotes as RFC 4180 says, lines end in a line feed. A failure
 * is kept: glibc's memory streams drop what they have no room for, and tell only the call that put
 * it.
 */
#ifndef QKV_CLI_COMMON_CSV_H
#define QKV_CLI_COMMON_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <qkv/status.h>

struct csv {
    FILE *out;
    char *text;
    size_t n_bytes;
    bool failed;
};

void csv_open(struct csv *csv);
void csv_put(struct csv *csv, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * In quotes if it holds a comma, a quote or a line break, or has a blank at an end, which some
 * readers drop; a quote inside is doubled.
 */
void csv_field(struct csv *csv, const char *text, size_t n);
/* Writes the file, whole or not at all, and frees the text. */
qkv_status csv_write(struct csv *csv, const char *path, qkv_error *error);

#endif
