/*
 * An HTML page while it is made: the texts, heads and tables that a source puts into it, and their
 * memory. page_write.c adds maps of queries and keys and writes the file.
 */
#ifndef QKV_CLI_SINKS_PAGE_H
#define QKV_CLI_SINKS_PAGE_H

#include "common/what_if.h"
#include "sinks/seen.h"
#include <qkv/page.h>

enum {
    PAGE_BYTES = 32000000,             /* the most of a page with several heads */
    PAGE_TITLE = 200,                  /* bytes of the title of a text */
    PAGE_CAPTION = 600 + WHAT_IF_WORDS /* and of its caption */
};

/* A block; if n > 0, a list of n strings, which are freed, too. */
struct page_memory {
    void *bytes;
    int64_t n;
};

struct page {
    qkv_page desc; /* for the library; its heads and tables are set at the end */
    const struct cli_common *common;
    const struct sink_options *sink;
    qkv_page_head *heads; /* [desc.n_heads] */
    struct page_table *tables[16];
    int n_tables;
    struct caption title, caption;
    char modified[WHAT_IF_WORDS + 60];
    char note[200];             /* a remark that is printed when the page is written */
    struct page_memory *memory; /* [n_memory], freed with the page */
    int64_t n_memory, room;
};

/* Begins a page with the sizes of seen, without texts and heads. */
void page_begin(struct page *page, const struct seen *seen);
void page_free(struct page *page);

/*
 * Memory that page_free frees: n elements, zeros; or a list of n strings, NULL at first, which the
 * caller sets to memory of malloc.
 */
void *page_room(struct page *page, int64_t n, size_t bytes);
char **page_texts(struct page *page, int64_t n);

/* The tokens of a text for a page, and for each token the index of its word. */
struct page_tokens {
    char **texts;
    int32_t *words;
};
qkv_status page_tokens(struct page *page, const qkv_token_list *list, struct page_tokens *tokens,
                       qkv_error *error);

/* The causal rule of heads that have it, and of --what-if the badge and the keys that it drops. */
void page_rules(struct page *page, const struct seen *seen, const struct what_if *what_if);

/* Fills in one head, whose scale is told where it is not that of the page. */
qkv_status page_head(struct page *page, const struct seen *seen, int64_t index, qkv_page_head *head,
                     qkv_error *error);
/*
 * Adds heads, and sets the scale of their colours: those of seen->order; if that is NULL, the head
 * `first` and those with the sharpest queries.
 */
qkv_status page_heads(struct page *page, const struct seen *seen, int64_t first, int64_t run,
                      qkv_error *error);
/* Adds n heads to the page, for the caller to fill in; NULL: *error says why. */
qkv_page_head *page_heads_room(struct page *page, int64_t n, qkv_error *error);

/* ---- Tables beside the heads ----------------------------------------------------------------- */

/* The lists of a qkv_page_table; strings are from malloc, or NULL. */
struct page_table {
    qkv_page_table put; /* the caller sets corner, value_name, is_signed, and high (0: automatic) */
    char name[200];
    struct caption caption;
    char **rows, **cols, **cells;
    double *values;                    /* NaN at first */
    int64_t *queries, *heads, *others; /* -1 at first; NULL unless asked for */
};

/* Which lists a table has besides the names of rows and columns. */
enum { TABLE_CELLS = 1, TABLE_VALUES = 2, TABLE_QUERIES = 4, TABLE_HEADS = 8 };

/* Appends a table, with names of columns unless cols is NULL; NULL: *error says why. */
struct page_table *page_table(struct page *page, int64_t n_rows, int64_t n_cols, int lists,
                              const char *const *cols, qkv_error *error);
/* Formats a cell, from malloc; NULL without memory, which is an empty cell. */
char *page_cell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Puts all tables into page->desc, when they are complete. */
qkv_status page_tables(struct page *page, qkv_error *error);

#endif
