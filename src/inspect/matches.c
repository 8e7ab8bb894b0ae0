/*
 * Keys that a query's own token leads to: other places of it (same), earlier ones (duplicate), and
 * keys after an earlier one (induction; Olsson et al. 2022).
 *
 *     same       j != i, token j = token i
 *     duplicate  j < i,  token j = token i
 *     induction  1 <= j <= i, token j - 1 = token i
 *
 * Weights on them are row statistics (qkv/stats.h); here is which queries see such a key at all, so
 * that means are over those. Places are sorted by token, and those of one token walked in ascending
 * order, then in descending.
 */
#include "inspect/matches.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/status.h"

typedef struct placed_token {
    int32_t id;
    int64_t place;
} placed_token;

static int compare(const void *a, const void *b) {
    const placed_token *const x = a, *const y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static int is_seen(const qkv_capture *capture, int64_t j) {
    return !capture->seen || capture->seen[j];
}

/* The places of one token. */
static void mark(const qkv_capture *capture, const placed_token *places, int64_t n,
                 uint8_t *matches) {
    int before = 0, after = 0,
        follows = 0; /* a key is seen: at a place before, after; behind one before */
    for (int64_t t = 0; t < n; t++) {
        const int64_t i = places[t].place;
        if (before) matches[i] |= QKVI_HAS_SAME | QKVI_HAS_DUPLICATE;
        if (follows) matches[i] |= QKVI_HAS_INDUCTION;
        before |= is_seen(capture, i);
        follows |= i + 1 < capture->n && is_seen(capture, i + 1);
    }
    for (int64_t t = n - 1; t >= 0 && !capture->causal; t--) {
        if (after) matches[places[t].place] |= QKVI_HAS_SAME;
        after |= is_seen(capture, places[t].place);
    }
}

qkv_status qkvi_matches_find(const qkv_capture *capture, const int32_t *ids, uint8_t *matches,
                             qkv_error *error) {
    const int64_t n = capture->n;
    placed_token *const sorted = qkvi_malloc_array((size_t)n, sizeof *sorted);
    if (!sorted) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for places of tokens");
    for (int64_t i = 0; i < n; i++) sorted[i] = (placed_token){ ids[i], i };
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    for (int64_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && sorted[to].id == sorted[from].id; to++) {
        }
        mark(capture, sorted + from, to - from, matches);
    }
    free(sorted);
    return QKV_OK;
}
