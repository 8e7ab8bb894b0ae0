/** Parts of a page: manifest, tables, drawing and table for readers without scripts, script. */
#ifndef QKVI_PAGE_PARTS_H
#define QKVI_PAGE_PARTS_H

#include "page/head.h"
#include "qkv/page.h"

/** The most queries in the table for readers without scripts. */
enum { QKVI_PAGE_PLAIN_ROWS = 64 };

/** Adds any text between tags: unprintable bytes are escaped, then characters of HTML. */
void qkvi_page_add_shown(qkvi_bytes *file, const char *text);

/** Adds <script type="application/json" id="qkv-manifest">: docs/page.md. */
void qkvi_page_add_manifest(qkvi_bytes *file, const qkv_page *page,
                            const qkvi_page_measure *measures, int64_t n_heads);

/** Adds "rules":{...}, of the manifest, which the scripts of the page read (visible.js). */
void qkvi_page_add_rules(qkvi_bytes *file, const qkv_page *page);

/** Adds "tables":[...], of the manifest; their size; their checks (tables.c). */
void qkvi_page_add_tables(qkvi_bytes *file, const qkv_page *page);
size_t qkvi_page_tables_bytes(const qkv_page *page);
qkv_status qkvi_page_check_tables(const qkv_page *page, qkv_error *error);

/** Adds <noscript>: a drawing of the first head, and the strongest keys of its first queries. */
void qkvi_page_add_plain(qkvi_bytes *file, const qkv_page *page, const qkvi_page_measure *measure);
void qkvi_page_add_drawing(qkvi_bytes *file, const qkv_page *page,
                           const qkvi_page_measure *measure);

/** The most characters of all but heads, script and style, with 6 for each byte of a token. */
size_t qkvi_page_fixed_bytes(const qkv_page *page);

/** Adds 'sha256-…' of a script or a style to the page's Content-Security-Policy. */
void qkvi_page_add_hash(qkvi_bytes *file, const char *what, const void *data, size_t n);

/** Adds the script for the data of a page (code.c); returns its length. NULL: only the length. */
size_t qkvi_page_add_script(qkvi_bytes *script, const qkv_page *page);

/**
 * Copies of the lists of a qkv_page, whose structs may be those of another version of the header.
 */
typedef struct qkvi_page_lists {
    qkv_page_head *heads;
    qkv_page_text *texts, *queries;
    qkv_page_table *tables;
} qkvi_page_lists;

/**
 * Copies heads, texts, queries and tables, and makes page point to the copies. A list whose length
 * is out of range is not copied: qkvi_page_check refuses it. MEMORY, ARGUMENT, VERSION; to be freed
 * in any case.
 */
qkv_status qkvi_page_lists_read(qkv_page *page, qkvi_page_lists *lists, qkv_error *error);
void qkvi_page_lists_free(qkvi_page_lists *lists);

/** Checks a page, after qkvi_page_lists_read. */
qkv_status qkvi_page_check(const qkv_page *page, qkv_error *error);

/**
 * The files of src/page/web, which files.S puts into the library. The script of a page is script,
 * then those that its data needs, then main, which starts it.
 */

extern const char qkvi_page_style[], qkvi_page_style_end[];     /* style.css */
extern const char qkvi_page_shell[], qkvi_page_shell_end[];     /* shell.html: begin of <body> */
extern const char qkvi_page_script[], qkvi_page_script_end[];   /* most *.js, joined */
extern const char qkvi_page_tables[], qkvi_page_tables_end[];   /* tables.js, for tables */
extern const char qkvi_page_image[], qkvi_page_image_end[];     /* image.js, for an image */
extern const char qkvi_page_made_by[], qkvi_page_made_by_end[]; /* made_by.js, for made_by */
extern const char qkvi_page_main[], qkvi_page_main_end[];       /* main.js */

#endif
