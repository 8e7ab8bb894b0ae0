/*
 * A page while it is made: texts, heads and tables that a source puts into it, and what they are
 * made of. It is written with maps of its first head, or of all where that is quick.
 */
#ifndef QKV_CLI_SINKS_PAGE_H
#define QKV_CLI_SINKS_PAGE_H

#include "common/what_if.h"
#include "sinks/seen.h"
#include <qkv/page.h>

enum {
    PAGE_BYTES = 32000000, /* of a page with several heads */
    PAGE_TITLE = 200,      /* room for a title and a caption of a text */
    PAGE_CAPTION = 600 + WHAT_IF_WORDS
};

/* Bytes, or a list of n texts. */
struct page_memory {
    void *bytes;
    int64_t n;
};

struct page {
    qkv_page desc; /* what the library is told; heads and tables are put in at the end */
    const struct cli_common *common;
    const struct sink_options *sink;
    qkv_page_head *heads; /* [desc.n_heads] */
    struct page_table *tables[16];
    int n_tables;
    struct caption title, caption;
    char modified[WHAT_IF_WORDS + 60];
    char note[200];             /* said when it is written */
    struct page_memory *memory; /* all that lives as long as the page */
    int64_t n_memory, room;
};

/* A page of heads of these sizes, without texts. */
void page_begin(struct page *page, const struct seen *seen);
void page_free(struct page *page); /* what it is made of */

/*
 * Memory that lives as long as the page: n elements of zeros; or a list of n texts, each
 * malloc'd.
 */
void *page_room(struct page *page, int64_t n, size_t bytes);
char **page_texts(struct page *page, int64_t n);

/* Tokens as a page has them, and the word of each. */
struct page_tokens {
    char **texts;
    int32_t *words;
};
qkv_status page_tokens(struct page *page, const qkv_token_list *list, struct page_tokens *tokens,
                       qkv_error *error);

/* One head; scale: that of the page. */
qkv_status page_head(const struct seen *seen, int64_t index, float scale, qkv_page_head *head,
                     qkv_error *error);
/* Adds those of seen->order, else `first` and those with the sharpest queries; and their scale. */
qkv_status page_heads(struct page *page, const struct seen *seen, int64_t first, int64_t run,
                      qkv_error *error);
/* Room for n heads more, which count from now on; NULL: *error says why. */
qkv_page_head *page_heads_room(struct page *page, int64_t n, qkv_error *error);

/* ---- Tables beside the heads ----------------------------------------------------------------- */

/* Lists are those of qkv_page_table; elements are malloc'd texts or NULL. */
struct page_table {
    qkv_page_table put; /* corner, value_name, is_signed; high 0: the largest of the values */
    char name[200];
    struct caption caption;
    char **rows, **cols, **cells;
    double *values;                    /* NaN at first */
    int64_t *queries, *heads, *others; /* -1 at first; NULL unless asked for */
};

/* Lists that a table has beside names of rows and columns. */
enum { TABLE_CELLS = 1, TABLE_VALUES = 2, TABLE_QUERIES = 4, TABLE_HEADS = 8 };

/*
 * A new table, the last of all, with names of columns if cols is not NULL; NULL: *error says why.
 */
struct page_table *page_table(struct page *page, int64_t n_rows, int64_t n_cols, int lists,
                              const char *const *cols, qkv_error *error);
/* "%.*f" and such; NULL without memory, which is an empty cell. */
char *page_cell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The page has its tables from now on. */
qkv_status page_tables(struct page *page, qkv_error *error);

#endif
