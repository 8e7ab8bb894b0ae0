/**
 * Who may see whom, by position: causal with or without a prefix, windows, chunks, lengths and
 * offsets. Kernels get no rule but the interval of each query: forward_head.c puts it into
 * scratch->begin and ->end, decode_plan.c into rows of decode. The explicit mask
 * (kernels/tmpl/mask_bits.h) and segments are not in here: where there are any, QKVI_SEE_ALL only
 * means that nothing but them hides a key.
 *
 * Query i of a batch stands at position p = i + offset and sees the keys of an interval, in which
 * c = floor(p / chunk) chunk:
 *     from  max(0, p - left, c)    up to  min(n_keys, p + right, max(p, prefix - 1), c + chunk - 1)
 * Both ends never fall as i grows, so the keys seen by a block of queries, and the queries that see
 * a block of keys, are intervals too, and a block is classified from its first and last row alone.
 * A query whose own position is a key sees it, so the intervals of neighbours leave no gap. No sum
 * here can overflow: see desc.h.
 */
#ifndef QKVI_ATTN_MASK_H
#define QKVI_ATTN_MASK_H

#include "attn/sequence.h"

/** [begin, end); empty when begin >= end, and then begin == end. */
typedef struct qkvi_range {
    int64_t begin, end;
} qkvi_range;

/** The rules of one batch. */
typedef struct qkvi_rules {
    int64_t n_queries; /* rows at or beyond it are neither read nor written */
    int64_t n_keys;    /* keys at or beyond it are hidden and never read */
    int64_t offset, left, right;
    /*
     * A query sees keys before max(p + 1, causal_end): 0 is causal, above 0 causal with a prefix,
     * QKVI_NO_WINDOW not causal.
     */
    int64_t causal_end;
    int64_t chunk; /* 0: none */
} qkvi_rules;

typedef enum qkvi_sight { QKVI_SEE_NONE, QKVI_SEE_SOME, QKVI_SEE_ALL } qkvi_sight;

static inline qkvi_range qkvi_range_clip(int64_t begin, int64_t end, int64_t limit) {
    const int64_t first = qkvi_min_i64(qkvi_max_i64(begin, 0), limit);
    const int64_t last = qkvi_min_i64(end, limit);
    return (qkvi_range){ first, qkvi_max_i64(first, last) };
}

static inline qkvi_rules qkvi_rules_of(const qkvi_problem *p, int64_t b) {
    const int64_t n_keys = p->kv_len ? p->kv_len[b] : qkvi_len_k(p, b);
    return (qkvi_rules){
        .n_queries = qkvi_rows_that_count(p, b),
        .n_keys = qkvi_min_i64(n_keys, p->mask_len_k),
        .offset = qkvi_position(p, b),
        .left = p->window_left,
        .right = p->window_right,
        .causal_end = !p->causal      ? QKVI_NO_WINDOW
                      : p->prefix_len ? p->prefix_len[b]
                                      : 0,
        .chunk = p->chunk,
    };
}

/** Of causal and a window alone; a bound of the window below 0 is none. */
static inline qkvi_rules qkvi_rules_of_window(int64_t n_queries, int64_t n_keys, int64_t offset,
                                              bool causal, int64_t left, int64_t right) {
    return (qkvi_rules){
        .n_queries = n_queries,
        .n_keys = n_keys,
        .offset = offset,
        .left = left < 0 ? QKVI_NO_WINDOW : qkvi_min_i64(left, QKVI_NO_WINDOW),
        .right = right < 0 ? QKVI_NO_WINDOW : qkvi_min_i64(right, QKVI_NO_WINDOW),
        .causal_end = causal ? 0 : QKVI_NO_WINDOW,
    };
}

/** What query i may see, ends not clipped to the keys that there are. */
static inline qkvi_range qkvi_span_of(const qkvi_rules *r, int64_t i) {
    const int64_t at = i + r->offset;
    qkvi_range keys = { at - r->left,
                        qkvi_min_i64(at + r->right + 1, qkvi_max_i64(at + 1, r->causal_end)) };
    if (r->chunk) {
        const int64_t begin = (at - (at % r->chunk + r->chunk) % r->chunk);
        keys.begin = qkvi_max_i64(keys.begin, begin);
        keys.end = qkvi_min_i64(keys.end, begin + r->chunk);
    }
    return keys;
}

/** Whether the span moves by one key from each query to the next: no rule's end stays, or jumps. */
static inline int qkvi_moves_by_one(const qkvi_rules *r) {
    return !r->chunk && (r->causal_end <= 0 || r->causal_end == QKVI_NO_WINDOW);
}

/** Keys that query i may see. */
static inline qkvi_range qkvi_keys_of(const qkvi_rules *r, int64_t i) {
    const qkvi_range keys = qkvi_span_of(r, i);
    return qkvi_range_clip(keys.begin, keys.end, r->n_keys);
}

/**
 * The smallest interval of keys that holds all that a query of [begin, end) may see; begin < end.
 */
static inline qkvi_range qkvi_keys_of_block(const qkvi_rules *r, int64_t begin, int64_t end) {
    return qkvi_range_clip(qkvi_span_of(r, begin).begin, qkvi_span_of(r, end - 1).end, r->n_keys);
}

/** The first query whose interval ends after a key, or (if `begins`) begins at it or later. */
static inline int64_t qkvi_first_query(const qkvi_rules *r, int64_t key, bool begins) {
    int64_t low = 0, high = r->n_queries;
    while (low < high) {
        const int64_t i = low + (high - low) / 2;
        const qkvi_range keys = qkvi_span_of(r, i);
        if (begins ? keys.begin >= key : keys.end > key)
            high = i;
        else
            low = i + 1;
    }
    return low;
}

/** Queries that may see a key of [begin, end), begin < end <= n_keys: all of an interval. */
static inline qkvi_range qkvi_queries_of_block(const qkvi_rules *r, int64_t begin, int64_t end) {
    const int64_t first = qkvi_first_query(r, begin, false);
    return (qkvi_range){ first, qkvi_max_i64(first, qkvi_first_query(r, end, true)) };
}

/**
 * What the queries [i0, i1) see of the keys [j0, j1): nothing, everything, or something between.
 * Both are not empty.
 */
static inline qkvi_sight qkvi_sight_of(const qkvi_rules *r, int64_t i0, int64_t i1, int64_t j0,
                                       int64_t j1) {
    const qkvi_range any = qkvi_keys_of_block(r, i0, i1);
    if (any.end <= j0 || any.begin >= j1) return QKVI_SEE_NONE;
    /* All of them see what the first sees at its end and the last at its beginning. */
    const bool all = qkvi_keys_of(r, i0).end >= j1 && qkvi_keys_of(r, i1 - 1).begin <= j0;
    return all ? QKVI_SEE_ALL : QKVI_SEE_SOME;
}

/**
 * The explicit mask's row of a query; key j lies mask_stride[3] * j elements further, a bit mask's
 * in byte j / 8.
 */
static inline const void *qkvi_mask_row(const qkvi_problem *p, int64_t b, int64_t h, int64_t i) {
    const int64_t at = b * p->mask_stride[0] + h * p->mask_stride[1] + i * p->mask_stride[2];
    const int64_t bytes = qkvi_mask_bytes(p);
    return (const char *)p->mask + at * bytes;
}

#endif
