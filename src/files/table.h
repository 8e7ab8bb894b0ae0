/**
 * Reading a CSV or TSV file record by record (RFC 4180). Bytes are checked for NUL and UTF-8 first;
 * quotes are removed in place, so the bytes are changed.
 */
#ifndef QKVI_FILES_TABLE_H
#define QKVI_FILES_TABLE_H

#include <stdbool.h>

#include "files/base.h"
#include "qkv/files.h"

enum { QKVI_TABLE_FIELD_BYTES = 1 << 16, QKVI_TABLE_FIELDS = 4097 };

/** A field. line and column, from 1 and in bytes, are for messages. */
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
    qkvi_field *fields; /* [QKVI_TABLE_FIELDS]: the n_fields of the last record */
    int n_fields;
} qkvi_table_reader;

/** To be called first: skips a byte order mark. FORMAT for a NUL or invalid UTF-8. */
qkv_status qkvi_table_check(qkvi_table_reader *reader, qkv_error *error);

/** Does a field look like a number, perhaps an invalid one, rather than a name? */
bool qkvi_table_like_number(const qkvi_field *field);

/** To be called after qkvi_table_check: finds the separator. */
void qkvi_table_begin(qkvi_table_reader *reader);

/** Reads the next record that is not an empty line; n_fields is 0 at the end. FORMAT, LIMIT. */
qkv_status qkvi_table_next(qkvi_table_reader *reader, qkv_error *error);

/** Sets "FILE: line 3, column 7: WHAT"; returns status. */
qkv_status qkvi_table_error(const qkvi_table_reader *reader, int64_t line, int64_t column,
                            qkv_status status, const char *what, qkv_error *error);

typedef struct qkvi_table_builder {
    qkvi_table_reader reader;
    qkv_table *table;
    size_t room;                  /* rows that the table has room for */
    float row[QKVI_TABLE_FIELDS]; /* the n_row numbers of the last record */
    int64_t n_row;
    bool has_lists; /* some field had several numbers */
} qkvi_table_builder;

/** "no memory for a table" */
qkv_status qkvi_table_no_memory(qkv_error *error);

/** Copies a field to a string. */
qkv_status qkvi_table_copy(const qkvi_field *field, char **text, qkv_error *error);

/** Adds the last record as a row of the table. */
qkv_status qkvi_table_add(qkvi_table_builder *b, qkv_error *error);

#endif
