/** The lists of a qkv_page, whose elements may be those of another version of the header. */
#ifndef QKVI_PAGE_LISTS_H
#define QKVI_PAGE_LISTS_H

#include "qkv/page.h"

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

#endif
