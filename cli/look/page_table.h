/* Tables of a page, beside its heads: what a command makes of them owns its texts and numbers. */
#ifndef QKV_CLI_LOOK_PAGE_TABLE_H
#define QKV_CLI_LOOK_PAGE_TABLE_H

#include "look/look.h"

/* Lists are those of qkv_page_table, with n_rows n_cols cells; elements are malloc'd or NULL. */
struct page_table {
    int64_t n_rows, n_cols;
    char name[200];
    struct caption caption;
    const char *corner;
    char **rows, **cols, **cells;
    double *values; /* NaN at first */
    const char *value_name;
    double high; /* 0: the largest of the values */
    bool is_signed;
    int64_t *queries, *heads, *others; /* -1 at first; NULL unless asked for */
};

struct page_tables {
    struct page_table *list[16];
    int n;
};

/* Lists that a table has beside names of rows and columns. */
enum { TABLE_CELLS = 1, TABLE_VALUES = 2, TABLE_QUERIES = 4, TABLE_HEADS = 8 };

/* A new table, the last of all; NULL: *error says why. */
struct page_table *page_table_add(struct page_tables *tables, int64_t n_rows, int64_t n_cols,
                                  int lists, qkv_error *error);
void page_tables_free(struct page_tables *tables);

/* "%.*f" and such; NULL without memory, which is an empty cell. */
char *page_table_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The page with the tables, which must live as long; to be freed. NULL: *error says why. */
qkv_page_table *page_tables_put(const struct page_tables *tables, qkv_page *page, qkv_error *error);

/* What each layer would predict at each token (page_lens.c). */
qkv_status page_lens(const struct look *look, const qkv_page *page, struct page_tables *tables,
                     qkv_error *error);

#endif
