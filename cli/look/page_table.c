/* Tables of a page: their texts and numbers. See page.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "look/page.h"

static int64_t *places(struct page *page, int64_t n) {
    int64_t *const made = page_room(page, n, sizeof *made);
    for (int64_t i = 0; made && i < n; i++) made[i] = -1;
    return made;
}

struct page_table *page_table(struct page *page, int64_t n_rows, int64_t n_cols, int lists,
                              const char *const *cols, qkv_error *error) {
    const int64_t n = n_rows * n_cols;
    const bool has_room = page->n_tables < (int)CLI_COUNT(page->tables);
    struct page_table *const table = has_room ? page_room(page, 1, sizeof *table) : NULL;
    bool made = table;
    if (made) {
        page->tables[page->n_tables++] = table;
        table->put = (qkv_page_table){ .n_rows = n_rows, .n_cols = n_cols, .corner = "" };
        made = (table->rows = page_texts(page, n_rows)) && (table->cols = page_texts(page, n_cols));
    }
    if (made && lists & TABLE_CELLS) made = (table->cells = page_texts(page, n));
    if (made && lists & TABLE_VALUES)
        made = (table->values = page_room(page, n, sizeof *table->values));
    if (made && lists & TABLE_QUERIES) made = (table->queries = places(page, n_cols));
    if (made && lists & TABLE_HEADS)
        made = (table->heads = places(page, n)) && (table->others = places(page, n));
    if (!made) {
        text_no_memory(error);
        return NULL;
    }
    for (int64_t i = 0; table->values && i < n; i++) table->values[i] = NAN;
    for (int64_t c = 0; cols && c < n_cols; c++) table->cols[c] = page_text("%s", cols[c]);
    return table;
}

char *page_text(const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    const int n = vasprintf(&text, format, arguments);
    va_end(arguments);
    return n < 0 ? NULL : text;
}

/* The largest magnitude of the values, or 1: a scale ends somewhere. */
static double high_of(const qkv_page_table *put, const double *values) {
    double high = put->high;
    for (int64_t i = 0; values && !(put->high > 0) && i < put->n_rows * put->n_cols; i++)
        if (fabs(values[i]) > high) high = fabs(values[i]);
    return high > 0 ? high : 1;
}

qkv_status page_tables(struct page *page, qkv_error *error) {
    qkv_page_table *const made = page_room(page, page->n_tables, sizeof *made);
    if (!made) return text_no_memory(error);
    for (int t = 0; t < page->n_tables; t++) {
        const struct page_table *const table = page->tables[t];
        made[t] = table->put;
        made[t].name = table->name;
        made[t].caption = table->caption.text;
        made[t].row_names = (const char *const *)table->rows;
        made[t].col_names = (const char *const *)table->cols;
        made[t].cells = (const char *const *)table->cells;
        made[t].values = table->values;
        made[t].high = high_of(&table->put, table->values);
        made[t].queries = table->queries;
        made[t].heads = table->heads;
        made[t].others = table->others;
    }
    page->page.n_tables = page->n_tables;
    page->page.tables = made;
    page->page.table_bytes = sizeof *made;
    return QKV_OK;
}
