/** Tables of a page: their checks, and their JSON in the manifest. See parts.h. */
#include <math.h>

#include "files/encode.h"
#include "page/parts.h"

enum { MOST_TABLES = 64, MOST_NAMES = 1 << 16, MOST_CELLS = 1 << 18 };

/* ---- Checks ---------------------------------------------------------------------------------- */

static qkv_status check_shape(const qkv_page_table *table, int64_t t, qkv_error *error) {
    if (table->n_rows < 1 || table->n_rows > MOST_NAMES || table->n_cols < 1 ||
        table->n_cols > MOST_NAMES || table->n_rows * table->n_cols > MOST_CELLS)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "tables[%lld] has n_rows = %lld and n_cols = %lld: each must be 1 to "
                              "%d, and their product at most %d",
                              (long long)t, (long long)table->n_rows, (long long)table->n_cols,
                              MOST_NAMES, MOST_CELLS);
    if (table->row_names == NULL || table->col_names == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "tables[%lld].%s is NULL", (long long)t,
                              table->row_names ? "col_names" : "row_names");
    if (table->cells == NULL && table->values == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "tables[%lld].cells and values are both NULL", (long long)t);
    if (table->values && !(table->high > 0 && isfinite(table->high)))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "tables[%lld].high = %g must be finite and above 0", (long long)t,
                              table->high);
    if (table->others && table->heads == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "tables[%lld].heads is NULL, others is not",
                              (long long)t);
    return QKV_OK;
}

/* -1, or below `end`. */
static qkv_status check_places(const int64_t *places, int64_t n, int64_t end, int64_t t,
                               const char *name, qkv_error *error) {
    for (int64_t i = 0; places && i < n; i++)
        if (places[i] < -1 || places[i] >= end)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "tables[%lld].%s[%lld] = %lld is neither -1 nor below %lld",
                                  (long long)t, name, (long long)i, (long long)places[i],
                                  (long long)end);
    return QKV_OK;
}

qkv_status qkvi_page_check_tables(const qkv_page *page, qkv_error *error) {
    if (page->n_tables < 0 || page->n_tables > MOST_TABLES)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "n_tables = %lld must be 0 to %d",
                              (long long)page->n_tables, MOST_TABLES);
    if (page->n_tables > 0 && page->tables == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "tables is NULL");
    for (int64_t t = 0; t < page->n_tables; t++) {
        const qkv_page_table *const table = &page->tables[t];
        QKV_TRY(check_shape(table, t, error));
        const int64_t n = table->n_rows * table->n_cols;
        QKV_TRY(check_places(table->queries, table->n_cols, page->n_queries, t, "queries", error));
        QKV_TRY(check_places(table->heads, n, page->n_heads, t, "heads", error));
        QKV_TRY(check_places(table->others, n, page->n_heads, t, "others", error));
    }
    return QKV_OK;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void add_comma(qkvi_bytes *file, int64_t i) { qkvi_bytes_text(file, i ? "," : "["); }

static void add_key(qkvi_bytes *file, const char *key) {
    qkvi_bytes_text(file, ",\"");
    qkvi_bytes_text(file, key);
    qkvi_bytes_text(file, "\":");
}

static void add_texts(qkvi_bytes *file, const char *key, const char *const *texts, int64_t n) {
    if (texts == NULL) return;
    add_key(file, key);
    for (int64_t i = 0; i < n; i++) {
        add_comma(file, i);
        qkvi_json_text(file, texts[i]);
    }
    qkvi_bytes_text(file, "]");
}

static void add_reals(qkvi_bytes *file, const char *key, const double *values, int64_t n) {
    if (values == NULL) return;
    add_key(file, key);
    for (int64_t i = 0; i < n; i++) {
        add_comma(file, i);
        qkvi_json_real(file, values[i]);
    }
    qkvi_bytes_text(file, "]");
}

static void add_ints(qkvi_bytes *file, const char *key, const int64_t *values, int64_t n) {
    if (values == NULL) return;
    add_key(file, key);
    for (int64_t i = 0; i < n; i++) {
        add_comma(file, i);
        qkvi_json_int(file, values[i]);
    }
    qkvi_bytes_text(file, "]");
}

static void add_text(qkvi_bytes *file, const char *key, const char *text) {
    if (text == NULL) return;
    add_key(file, key);
    qkvi_json_text(file, text);
}

static void add_table(qkvi_bytes *file, const qkv_page_table *table) {
    const int64_t n = table->n_rows * table->n_cols;
    qkvi_bytes_text(file, "{\"name\":");
    qkvi_json_text(file, table->name);
    add_text(file, "caption", table->caption);
    add_text(file, "corner", table->corner);
    add_texts(file, "rows", table->row_names, table->n_rows);
    add_texts(file, "columns", table->col_names, table->n_cols);
    add_texts(file, "cells", table->cells, n);
    add_reals(file, "values", table->values, n);
    if (table->values) {
        add_text(file, "value", table->value_name);
        add_key(file, "high");
        qkvi_json_real(file, table->high);
    }
    if (table->values && table->is_signed) qkvi_bytes_text(file, ",\"signed\":true");
    add_ints(file, "queries", table->queries, table->n_cols);
    add_ints(file, "heads", table->heads, n);
    add_ints(file, "others", table->others, n);
    qkvi_bytes_text(file, "}");
}

void qkvi_page_add_tables(qkvi_bytes *file, const qkv_page *page) {
    qkvi_bytes_text(file, "\"tables\":");
    for (int64_t t = 0; t < page->n_tables; t++) {
        add_comma(file, t);
        add_table(file, &page->tables[t]);
    }
    qkvi_bytes_text(file, "],");
}

/* ---- Size ------------------------------------------------------------------------------------ */

enum { A_NUMBER = 24, A_TEXT = 4, ESCAPED = 6, FIELDS = 300 };

static size_t text_bytes(const char *text) { return A_TEXT + (text ? ESCAPED * strlen(text) : 0); }

static size_t texts_bytes(const char *const *texts, int64_t n) {
    size_t used = 0;
    for (int64_t i = 0; texts && i < n; i++) used += text_bytes(texts[i]);
    return used;
}

size_t qkvi_page_tables_bytes(const qkv_page *page) {
    size_t used = 0;
    for (int64_t t = 0; t < page->n_tables; t++) {
        const qkv_page_table *const table = &page->tables[t];
        const int64_t n = table->n_rows * table->n_cols;
        const int lists = !!table->values + !!table->heads + !!table->others;
        used += FIELDS + text_bytes(table->name) + text_bytes(table->caption);
        used += text_bytes(table->corner) + text_bytes(table->value_name);
        used += texts_bytes(table->row_names, table->n_rows);
        used += texts_bytes(table->col_names, table->n_cols) + texts_bytes(table->cells, n);
        used += A_NUMBER * ((size_t)n * (size_t)lists);
        if (table->queries) used += A_NUMBER * (size_t)table->n_cols;
    }
    return used;
}
