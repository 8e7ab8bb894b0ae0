/*
 * A CSV file that is made in memory: quotes as in RFC 4180, but lines end in a line feed. Each call
 * notes a failure in `failed`, since a memory stream of glibc reports a failed allocation only to
 * the call that met it.
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
 * Puts a field, in quotes if it has a comma, a quote, a line break, or a space at an end, which
 * some readers drop; a quote in it is doubled.
 */
void csv_field(struct csv *csv, const char *text, size_t n);
/* Writes the file, whole or not at all, and frees the text. */
qkv_status csv_write(struct csv *csv, const char *path, qkv_error *error);

#endif
