/**
 * The fields of a CSV or TSV file, record by record (RFC 4180). Bytes are checked for NUL and UTF-8
 * before; fields are unquoted in place, so the bytes are the reader's to change.
 */
#ifndef QKVI_FILES_TABLE_H
#define QKVI_FILES_TABLE_H

#include <locale.h>
#include <stdbool.h>

#include "files/base.h"
#include "qkv/files.h"

enum { QKVI_TABLE_FIELD_BYTES = 1 << 16, QKVI_TABLE_FIELDS = 4097 };

/** Where it begins is for messages: line and column from 1, in bytes. */
typedef struct qkvi_field {
    char *text; /* not terminated */
    size_t n;
    int64_t line, column;
} qkvi_field;

typedef struct qkvi_table_reader {
    const char *name; /* of the file, escaped */
    char *at, *end, *line_begin;
    int64_t line; /* of `at` */
    char separator;
    qkvi_field *fields; /* [QKVI_TABLE_FIELDS]: of the last record */
    int n_fields;
} qkvi_table_reader;

/** Skips a byte order mark. FORMAT for a NUL, or for what is not UTF-8. Before all else. */
qkv_status qkvi_table_check(qkvi_table_reader *reader, qkv_error *error);

/** A value, if perhaps a broken one, and no name. */
bool qkvi_table_like_number(const qkvi_field *field);

/** Starts at the bytes of a file without its byte order mark: finds the separator. */
void qkvi_table_begin(qkvi_table_reader *reader);

/** The next record that is not an empty line; n_fields is 0 at the end. FORMAT, LIMIT. */
qkv_status qkvi_table_next(qkvi_table_reader *reader, qkv_error *error);

/** "FILE: line 3, column 7: …" */
qkv_status qkvi_table_error(const qkvi_table_reader *reader, int64_t line, int64_t column,
                            qkv_status status, const char *what, qkv_error *error);

typedef struct qkvi_table_builder {
    qkvi_table_reader reader;
    qkv_table *table;
    size_t room;      /* of the table, in rows */
    locale_t numbers; /* "C", whatever the host's is */
    float row[QKVI_TABLE_FIELDS];
    int64_t n_row;  /* numbers of the last record */
    bool has_lists; /* a single field had several numbers */
} qkvi_table_builder;

/** "no memory for a table" */
qkv_status qkvi_table_no_memory(qkv_error *error);

/** A copy of a field, terminated. */
qkv_status qkvi_table_copy(const qkvi_field *field, char **text, qkv_error *error);

/** The last record as a row of the table. */
qkv_status qkvi_table_add(qkvi_table_builder *b, qkv_error *error);

#endif
