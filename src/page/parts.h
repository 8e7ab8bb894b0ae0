/** Parts of a page that are text: the manifest, and a table for readers without scripts. */
#ifndef QKVI_PAGE_PARTS_H
#define QKVI_PAGE_PARTS_H

#include "page/head.h"

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

#endif
