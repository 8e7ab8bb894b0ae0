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

/** <noscript>: a drawing of the first head, and the strongest keys of its first queries. */
void qkvi_page_add_plain(qkvi_bytes *file, const qkv_page *page, const qkvi_page_measure *measure);
void qkvi_page_add_drawing(qkvi_bytes *file, const qkv_page *page,
                           const qkvi_page_measure *measure);

/** Characters of everything but heads, script and style, at most; tokens counted as 6 a byte. */
size_t qkvi_page_fixed_bytes(const qkv_page *page);

/** The lists of a qkv_page, whose elements may be those of another version of the header. */

typedef struct qkvi_page_lists {
    qkv_page_head *heads;
    qkv_page_run *runs, *queries;
} qkvi_page_lists;

/**
 * Copies heads, runs and queries, and lets page point to the copies. A list of a length that is not
 * allowed stays: it is refused by the checks that follow. MEMORY, ARGUMENT, VERSION; free in any case.
 */
qkv_status qkvi_page_lists_read(qkv_page *page, qkvi_page_lists *lists, qkv_error *error);
void qkvi_page_lists_free(qkvi_page_lists *lists);

/** Refuses what is wrong in a page whose lists are there, and a path that does not end in .html. */
qkv_status qkvi_page_check(const qkv_page *page, const char *path, qkv_error *error);

/** The page's own files: src/page/web, placed into the library by files.S. */

extern const char qkvi_page_style[], qkvi_page_style_end[]; /* style.css */
extern const char qkvi_page_shell[],
    qkvi_page_shell_end[]; /* shell.html: what <body> begins with */
extern const char qkvi_page_script[], qkvi_page_script_end[]; /* all *.js, one after the other */

#endif
