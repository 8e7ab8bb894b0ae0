/** Which keys a query of a page may see: one range, since a page knows causal masks and windows. */
#ifndef QKVI_VIEW_PAGE_MASK_H
#define QKVI_VIEW_PAGE_MASK_H

#include "qkv/view.h"

/** Keys *first <= j < *end; as QKV_SET_CAUSAL and QKV_SET_WINDOW with q_offset 0 say. */
static inline void qkvi_page_visible(const qkv_page *page, int64_t i, int64_t *first,
                                     int64_t *end) {
    const int window = (page->flags & QKV_PAGE_WINDOW) != 0;
    *first = 0;
    *end = page->n;
    if (page->flags & QKV_PAGE_CAUSAL) *end = i + 1;
    if (window && page->window_left >= 0 && page->window_left < i) *first = i - page->window_left;
    if (window && page->window_right >= 0 && page->window_right < *end - 1 - i)
        *end = i + page->window_right + 1;
}

/** Does no query see this key? */
static inline int qkvi_page_dropped(const qkv_page *page, int64_t j) {
    return page->dropped != NULL && page->dropped[j] != 0;
}

#endif
