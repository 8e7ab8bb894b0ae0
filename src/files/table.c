/**
 * Tables of keys and values (qkv/files.h has the format). All bytes are checked first: a byte order
 * mark is skipped, a NUL or invalid UTF-8 is refused. Then each record of the file becomes a key
 * and its numbers (table_rows.c). The first record determines how many numbers there are.
 */
#include <strings.h>

#include "core/fpstate.h"
#include "files/file.h"
#include "files/table.h"
#include "files/utf8.h"

enum { MAX_FILE = 1 << 26 };

/* ---- Names of columns ------------------------------------------------------------------------ */

bool qkvi_table_like_number(const qkvi_field *field) {
    static const char *const words[] = { "nan", "inf", "infinity" };
    if (field->n == 0) return false;
    for (int i = 0; i < 3; i++)
        if (field->n == strlen(words[i]) && strncasecmp(field->text, words[i], field->n) == 0)
            return true;
    return strchr("0123456789+-.[", field->text[0]) != NULL;
}

/* The first record has names if no value of it looks like a number. */
static bool has_names(const qkvi_table_reader *r) {
    bool empty = true;
    for (int i = 1; i < r->n_fields; i++) {
        if (qkvi_table_like_number(&r->fields[i])) return false;
        empty = empty && r->fields[i].n == 0;
    }
    return !empty;
}

static void free_names(char **names, int64_t n) {
    for (int64_t i = 0; names && i < n; i++) free(names[i]);
    free(names);
}

static qkv_status take_names(qkvi_table_builder *b, char ***names, int64_t *n_names,
                             qkv_error *error) {
    *n_names = b->reader.n_fields - 1;
    *names = qkvi_calloc_array((size_t)*n_names, sizeof **names);
    if (!*names) return qkvi_table_no_memory(error);
    for (int64_t i = 0; i < *n_names; i++)
        QKV_TRY(qkvi_table_copy(&b->reader.fields[i + 1], &(*names)[i], error));
    return QKV_OK;
}

/* Names of a table whose single column is a list say nothing about its numbers. */
static qkv_status settle_names(qkvi_table_builder *b, char **names, int64_t n_names,
                               qkv_error *error) {
    qkv_table *t = b->table;
    if (!names || t->n_values == n_names) {
        t->names = names;
        return QKV_OK;
    }
    free_names(names, n_names);
    if (n_names == 1 && b->has_lists) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_FORMAT,
                          "%s: line 1 names %lld values, the lines below have %lld", b->reader.name,
                          (long long)n_names, (long long)t->n_values);
}

/* ---- The file -------------------------------------------------------------------------------- */

/* Line and column of a byte of the file. */
static qkv_status bad_byte(const qkvi_table_reader *r, size_t at, const char *what,
                           qkv_error *error) {
    int64_t line = 1, column = 1;
    for (size_t i = 0; i < at; i++) {
        column++;
        if (r->at[i] == '\n') line++, column = 1;
    }
    return qkvi_table_error(r, line, column, QKV_ERR_FORMAT, what, error);
}

qkv_status qkvi_table_check(qkvi_table_reader *r, qkv_error *error) {
    r->at += qkvi_utf8_mark(r->at, (size_t)(r->end - r->at));
    const size_t n = (size_t)(r->end - r->at);
    const size_t valid = qkvi_utf8_valid(r->at, n);
    const char *nul = memchr(r->at, '\0', valid);
    if (nul) return bad_byte(r, (size_t)(nul - r->at), "a NUL byte", error);
    return valid == n ? QKV_OK : bad_byte(r, valid, "not valid UTF-8", error);
}

static qkv_status read_rows(qkvi_table_builder *b, qkv_error *error) {
    char **names = NULL;
    int64_t n_names = 0;
    QKV_TRY(qkvi_table_next(&b->reader, error));
    qkv_status status = QKV_OK;
    if (has_names(&b->reader)) {
        status = take_names(b, &names, &n_names, error);
        if (status == QKV_OK) status = qkvi_table_next(&b->reader, error);
    }
    while (status == QKV_OK && b->reader.n_fields > 0) {
        status = qkvi_table_add(b, error);
        if (status == QKV_OK) status = qkvi_table_next(&b->reader, error);
    }
    if (status == QKV_OK && b->table->n_rows == 0)
        status = qkvi_error_set(error, QKV_ERR_FORMAT, "%s: no line has a key and a value",
                                b->reader.name);
    if (status == QKV_OK) return settle_names(b, names, n_names, error);
    free_names(names, n_names);
    return status;
}

/* bytes are ours to change. */
static qkv_status parse(const char *name, char *bytes, size_t n_bytes, qkv_table **table,
                        qkv_error *error) {
    char shown[QKVI_NAME_BYTES];
    qkvi_table_builder *b = qkvi_calloc_array(1, sizeof *b);
    if (!b) return qkvi_table_no_memory(error);
    b->reader = (qkvi_table_reader){ .name = qkvi_escape(shown, sizeof shown, name, strlen(name)),
                                     .at = bytes,
                                     .end = bytes + n_bytes };
    b->table = qkvi_calloc_array(1, sizeof *b->table);
    b->reader.fields = qkvi_malloc_array(QKVI_TABLE_FIELDS, sizeof *b->reader.fields);
    qkv_status status = b->table && b->reader.fields ? qkvi_table_check(&b->reader, error)
                                                     : qkvi_table_no_memory(error);
    if (status == QKV_OK) {
        qkvi_table_begin(&b->reader);
        const qkvi_fpstate saved = qkvi_fpstate_enter();
        status = read_rows(b, error);
        qkvi_fpstate_leave(saved);
    }
    if (status == QKV_OK)
        *table = b->table;
    else
        qkv_table_free(b->table);
    free(b->reader.fields);
    free(b);
    return status;
}

qkv_status qkv_table_read(const char *path, qkv_table **table, qkv_error *error) {
    if (!path || !table)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", path ? "table" : "path");
    *table = NULL;
    char *bytes;
    size_t n_bytes;
    QKV_TRY(qkvi_file_load_text(path, MAX_FILE, &bytes, &n_bytes, error));
    const qkv_status status = parse(path, bytes, n_bytes, table, error);
    free(bytes);
    return status;
}

qkv_status qkv_table_parse(const char *name, const void *bytes, size_t n_bytes, qkv_table **table,
                           qkv_error *error) {
    if (!name || !table || (!bytes && n_bytes > 0))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !name    ? "name"
                              : !table ? "table"
                                       : "bytes");
    *table = NULL;
    if (n_bytes > MAX_FILE)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "a table of %zu bytes, the limit is %d",
                              n_bytes, MAX_FILE);
    char *copy = qkvi_malloc_array(n_bytes + 1, 1);
    if (!copy) return qkvi_table_no_memory(error);
    if (n_bytes > 0) memcpy(copy, bytes, n_bytes);
    const qkv_status status = parse(name, copy, n_bytes, table, error);
    free(copy);
    return status;
}

void qkv_table_free(qkv_table *table) {
    if (!table) return;
    free_names(table->keys, table->n_rows);
    free_names(table->names, table->n_values);
    free(table->values);
    free(table);
}
