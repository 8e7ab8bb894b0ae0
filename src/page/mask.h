/**
 * Which keys a query of a page sees, and the scores of keys. Rules of position give an interval of
 * keys, without dropped keys and those that the bits of a mask hide.
 */
#ifndef QKVI_PAGE_MASK_H
#define QKVI_PAGE_MASK_H

#include <assert.h>
#include <math.h>

#include "qkv/page.h"

/** Query i is at the position of key i + qkvi_page_offset. */
static inline int64_t qkvi_page_offset(const qkv_page *page) {
    return page->rules && page->rules->flags & QKV_SET_Q_OFFSET ? page->rules->q_offset : 0;
}

/** Applies the head's own window. It subtracts, since sums with a large side would overflow. */
static inline void qkvi_page_narrow(const qkv_page *page, const qkv_page_head *head, int64_t i,
                                    int64_t *first, int64_t *end) {
    const int64_t at = i + qkvi_page_offset(page), left = head->window_left,
                  right = head->window_right;
    if (left >= 0 && left < at - *first) *first = at - left;
    if (right >= 0 && right < *end - 1 - at) *end = at + right + 1;
    if (*first > page->n) *first = page->n;
    if (*end < *first) *end = *first;
}

/** The keys *first <= j < *end that the rules let query i see. page.c has checked the rules. */
static inline void qkvi_page_visible(const qkv_page *page, const qkv_page_head *head, int64_t i,
                                     int64_t *first, int64_t *end) {
    *first = 0;
    *end = page->n;
    if (page->rules) {
        const qkv_status status =
            qkv_attention_visible_keys(page->rules, 0, i, 0, first, end, NULL);
        assert(status == QKV_OK);
        (void)status;
    }
    if (head->has_window) qkvi_page_narrow(page, head, i, first, end);
}

static inline size_t qkvi_page_mask_row_bytes(const qkv_page *page) {
    return ((size_t)page->n + 7) / 8;
}

/** Is a key of that range hidden from query i, because it is dropped or by a mask? */
static inline int qkvi_page_hidden(const qkv_page *page, const qkv_page_head *head, int64_t i,
                                   int64_t j) {
    if (page->dropped != NULL && page->dropped[j] != 0) return 1;
    if (head->mask == NULL) return 0;
    return !(head->mask[(size_t)i * qkvi_page_mask_row_bytes(page) + (size_t)j / 8] >> j % 8 & 1);
}

/** The scale of a head. */
static inline float qkvi_page_scale(const qkv_page *page, const qkv_page_head *head) {
    return head->scale != 0 ? head->scale : page->scale;
}

/**
 * The bias of a head for a distance key - query; distances beyond its ends have that of the end.
 */
static inline double qkvi_page_bias(const qkv_page_head *head, int64_t distance) {
    const int64_t before = head->distance_before, after = head->distance_after;
    const int64_t n = distance < -before ? -before : distance > after ? after : distance;
    return (double)head->distance_bias[before + n];
}

/** The score of dot = q_i . k_j: scaled, capped, plus ALiBi and the bias by distance. */
static inline double qkvi_page_score(const qkv_page *page, const qkv_page_head *head, int64_t i,
                                     int64_t j, double dot) {
    const double scaled = dot * (double)qkvi_page_scale(page, head),
                 capped = page->softcap > 0 ? page->softcap * tanh(scaled / page->softcap) : scaled;
    const int64_t distance = j - i - qkvi_page_offset(page);
    const double score = head->alibi != 0 ? capped + head->alibi * (double)distance : capped;
    return head->distance_bias ? score + qkvi_page_bias(head, distance) : score;
}

/** The text of keys. */
static inline qkv_page_text qkvi_page_keys(const qkv_page *page) {
    return (qkv_page_text){ .tokens = page->tokens,
                            .special = page->special,
                            .segments = page->segments,
                            .words = page->words,
                            .image = page->image };
}

/** The text of queries: their own, or that of keys. */
static inline qkv_page_text qkvi_page_queries(const qkv_page *page) {
    return page->queries ? *page->queries : qkvi_page_keys(page);
}

#endif
