/** A table while it grows: records become keys and numbers. */
#ifndef QKVI_STORE_TABLE_ROWS_H
#define QKVI_STORE_TABLE_ROWS_H

#include <locale.h>

#include "model/store/table_fields.h"
#include "qkv/files.h"

typedef struct qkvi_table_builder {
    qkvi_table_reader reader;
    qkv_table *table;
    int64_t room;     /* of the table, in rows */
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
