/**
 * What a query of a page does with a key: which keys it may see, and their scores. Causal masks and windows
 * are a range, from which keys that nobody sees and the bits of a mask take some away.
 */
#ifndef QKVI_VIEW_PAGE_MASK_H
#define QKVI_VIEW_PAGE_MASK_H

#include <math.h>

#include "qkv/view.h"

/** |q_offset| is below this. */
#define QKVI_PAGE_FAR_AWAY ((int64_t)1 << 40)

static inline int64_t qkvi_page_clamp(int64_t x, int64_t high) {
    return x < 0 ? 0 : x > high ? high : x;
}

/** Keys *first <= j < *end; as QKV_SET_CAUSAL, QKV_SET_WINDOW and QKV_SET_Q_OFFSET say. */
static inline void qkvi_page_visible(const qkv_page *page, int64_t i, int64_t *first,
                                     int64_t *end) {
    const int window = (page->flags & QKV_PAGE_WINDOW) != 0;
    const int64_t place = i + page->q_offset, n = page->n;
    *first = 0;
    *end = n;
    if (page->flags & QKV_PAGE_CAUSAL) *end = qkvi_page_clamp(place + 1, n);
    if (window && page->window_left >= 0 && page->window_left < place)
        *first = qkvi_page_clamp(place - page->window_left, n);
    if (window && page->window_right >= 0 && page->window_right < *end - 1 - place)
        *end = qkvi_page_clamp(place + page->window_right + 1, n);
    if (*end < *first) *end = *first;
}

static inline size_t qkvi_page_mask_row_bytes(const qkv_page *page) {
    return ((size_t)page->n + 7) / 8;
}

/** Of a key in the range: is it one that query i does not see for another reason? */
static inline int qkvi_page_hidden(const qkv_page *page, const qkv_page_head *head, int64_t i,
                                   int64_t j) {
    if (page->dropped != NULL && page->dropped[j] != 0) return 1;
    if (head->mask == NULL) return 0;
    return !(head->mask[(size_t)i * qkvi_page_mask_row_bytes(page) + (size_t)j / 8] >> j % 8 & 1);
}

/** The factor on q.k of a head. */
static inline float qkvi_page_scale(const qkv_page *page, const qkv_page_head *head) {
    return head->scale != 0 ? head->scale : page->scale;
}

/** The score that dot = q_i . k_j becomes. */
static inline double qkvi_page_score(const qkv_page *page, const qkv_page_head *head, int64_t i,
                                     int64_t j, double dot) {
    const double scaled = dot * (double)qkvi_page_scale(page, head),
                 capped = page->softcap > 0 ? page->softcap * tanh(scaled / page->softcap) : scaled;
    return head->alibi != 0 ? capped + head->alibi * (double)(j - i - page->q_offset) : capped;
}

/** Names and so on of queries: their own, or those of keys. */
static inline qkv_page_run qkvi_page_queries(const qkv_page *page) {
    if (page->queries) return *page->queries;
    return (qkv_page_run){ NULL, page->tokens, page->special, page->segments, page->words };
}

#endif
