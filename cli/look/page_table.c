/* Tables of a page: their texts and numbers. See page_table.h. */
#include "look/page_table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int64_t *places(int64_t n) {
    int64_t *const made = calloc((size_t)n + 1, sizeof *made);
    for (int64_t i = 0; made && i < n; i++) made[i] = -1;
    return made;
}

static void table_free(struct page_table *table) {
    session_labels_free(table->rows, table->n_rows);
    session_labels_free(table->cols, table->n_cols);
    session_labels_free(table->cells, table->n_rows * table->n_cols);
    free(table->values);
    free(table->queries);
    free(table->heads);
    free(table->others);
    free(table);
}

struct page_table *page_table_add(struct page_tables *tables, int64_t n_rows, int64_t n_cols,
                                  int lists, qkv_error *error) {
    const int64_t n = n_rows * n_cols;
    struct page_table *const table = calloc(1, sizeof *table);
    if (!table || tables->n == (int)CLI_COUNT(tables->list)) {
        free(table);
        text_no_memory(error);
        return NULL;
    }
    tables->list[tables->n++] = table;
    table->n_rows = n_rows;
    table->n_cols = n_cols;
    table->corner = "";
    table->rows = calloc((size_t)n_rows + 1, sizeof *table->rows);
    table->cols = calloc((size_t)n_cols + 1, sizeof *table->cols);
    if (lists & TABLE_CELLS) table->cells = calloc((size_t)n + 1, sizeof *table->cells);
    if (lists & TABLE_VALUES) table->values = calloc((size_t)n + 1, sizeof *table->values);
    for (int64_t i = 0; table->values && i < n; i++) table->values[i] = NAN;
    if (lists & TABLE_QUERIES) table->queries = places(n_cols);
    if (lists & TABLE_HEADS) {
        table->heads = places(n);
        table->others = places(n);
    }
    if (table->rows && table->cols && (table->cells || !(lists & TABLE_CELLS)) &&
        (table->values || !(lists & TABLE_VALUES)) &&
        (table->queries || !(lists & TABLE_QUERIES)) &&
        ((table->heads && table->others) || !(lists & TABLE_HEADS)))
        return table;
    text_no_memory(error);
    return NULL;
}

void page_tables_free(struct page_tables *tables) {
    for (int t = 0; t < tables->n; t++) table_free(tables->list[t]);
}

char *page_table_text(const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    const int n = vasprintf(&text, format, arguments);
    va_end(arguments);
    return n < 0 ? NULL : text;
}

/* The largest magnitude of the values, or 1: a scale ends somewhere. */
static double high_of(const struct page_table *table) {
    double high = table->high;
    for (int64_t i = 0; table->values && !(table->high > 0) && i < table->n_rows * table->n_cols;
         i++)
        if (fabs(table->values[i]) > high) high = fabs(table->values[i]);
    return high > 0 ? high : 1;
}

qkv_page_table *page_tables_put(const struct page_tables *tables, qkv_page *page,
                                qkv_error *error) {
    qkv_page_table *const made = calloc((size_t)tables->n + 1, sizeof *made);
    if (!made) text_no_memory(error);
    for (int t = 0; made && t < tables->n; t++) {
        const struct page_table *const table = tables->list[t];
        made[t] = (qkv_page_table){ .name = table->name,
                                    .caption = table->caption.text,
                                    .n_rows = table->n_rows,
                                    .n_cols = table->n_cols,
                                    .row_names = (const char *const *)table->rows,
                                    .col_names = (const char *const *)table->cols,
                                    .corner = table->corner,
                                    .cells = (const char *const *)table->cells,
                                    .values = table->values,
                                    .value_name = table->value_name,
                                    .high = high_of(table),
                                    .is_signed = table->is_signed,
                                    .queries = table->queries,
                                    .heads = table->heads,
                                    .others = table->others };
    }
    page->n_tables = tables->n;
    page->tables = made;
    page->table_bytes = sizeof *made;
    return made;
}
