/** Parts of a page that are text: the manifest, and a table for readers without scripts. */
#ifndef QKVI_PAGE_PARTS_H
#define QKVI_PAGE_PARTS_H

#include "page/head.h"
#include "qkv/page.h"

/** Queries in the plain table. */
enum { QKVI_PAGE_PLAIN_ROWS = 64 };

/** Any text between tags: what cannot be shown is escaped, and so is what HTML would read. */
void qkvi_page_add_shown(qkvi_bytes *file, const char *text);

/** <script type="application/json" id="qkv-manifest">: docs/page.md. */
void qkvi_page_add_manifest(qkvi_bytes *file, const qkv_page *page,
                            const qkvi_page_measure *measures, int64_t n_heads);

/** "rules":{...}, of the manifest: what the page's own function of visibility reads. */
void qkvi_page_add_rules(qkvi_bytes *file, const qkv_page *page);

/** "tables":[...], of the manifest, and what a caller may have got wrong in them (tables.c). */
void qkvi_page_add_tables(qkvi_bytes *file, const qkv_page *page);
size_t qkvi_page_tables_bytes(const qkv_page *page);
qkv_status qkvi_page_check_tables(const qkv_page *page, qkv_error *error);

/** <noscript>: a drawing of the first head, and the strongest keys of its first queries. */
void qkvi_page_add_plain(qkvi_bytes *file, const qkv_page *page, const qkvi_page_measure *measure);
void qkvi_page_add_drawing(qkvi_bytes *file, const qkv_page *page,
                           const qkvi_page_measure *measure);

/** Characters of everything but heads, script and style, at most; tokens counted as 6 a byte. */
size_t qkvi_page_fixed_bytes(const qkv_page *page);

/** What 'sha256-…' of the page's policy allows: the bytes of a script or a style. */
void qkvi_page_add_hash(qkvi_bytes *file, const char *what, const void *data, size_t n);

/** The script of a page, with the views that its data has (code.c). NULL: only how long it is. */
size_t qkvi_page_add_script(qkvi_bytes *script, const qkv_page *page);

/** The lists of a qkv_page, whose elements may be those of another version of the header. */

typedef struct qkvi_page_lists {
    qkv_page_head *heads;
    qkv_page_text *texts, *queries;
    qkv_page_table *tables;
} qkvi_page_lists;

/**
 * Copies heads, texts, queries and tables, and lets page point to the copies. A list of a length
 * that is not allowed stays: it is refused by the checks that follow. MEMORY, ARGUMENT, VERSION;
 * free in any case.
 */
qkv_status qkvi_page_lists_read(qkv_page *page, qkvi_page_lists *lists, qkv_error *error);
void qkvi_page_lists_free(qkvi_page_lists *lists);

/** Refuses what is wrong in a page whose lists are there. */
qkv_status qkvi_page_check(const qkv_page *page, qkv_error *error);

/** The page's own files: src/page/web, placed into the library by files.S. */

extern const char qkvi_page_style[], qkvi_page_style_end[]; /* style.css */
extern const char qkvi_page_shell[],
    qkvi_page_shell_end[]; /* shell.html: what <body> begins with */
extern const char qkvi_page_script[], qkvi_page_script_end[]; /* *.js, one after the other … */
extern const char qkvi_page_tables[], qkvi_page_tables_end[]; /* … tables.js, if there are any … */
extern const char qkvi_page_image[], qkvi_page_image_end[]; /* … image.js, if there is one … */
extern const char qkvi_page_made_by[],
    qkvi_page_made_by_end[]; /* … made_by.js, if the page names who made it … */
extern const char qkvi_page_main[], qkvi_page_main_end[]; /* … and main.js, which begins */

#endif
