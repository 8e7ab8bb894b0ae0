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

#include "model/base.h"

typedef struct placed_token {
    int32_t id;
    int64_t place;
} placed_token;

static int compare(const void *a, const void *b) {
    const placed_token *const x = a, *const y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static int is_in(qkvi_range keys, int64_t j) { return j >= keys.begin && j < keys.end; }

/* The places of one token. What a query sees is an interval around it: the nearest place decides. */
static void mark(const qkvi_rules *rules, const uint8_t *seen, const placed_token *places,
                 int64_t n, uint8_t *matches) {
    int64_t before = -1, after = -1, follows = -1; /* the nearest key: at a place before, after it;
                                                      behind one before */
    for (int64_t t = 0; t < n; t++) {
        const int64_t i = places[t].place;
        const qkvi_range keys = qkvi_keys_of(rules, i);
        if (before >= 0 && is_in(keys, before)) matches[i] |= QKVI_HAS_SAME | QKVI_HAS_DUPLICATE;
        if (follows >= 0 && is_in(keys, follows)) matches[i] |= QKVI_HAS_INDUCTION;
        if (!seen || seen[i]) before = i;
        if (i + 1 < rules->n_keys && (!seen || seen[i + 1])) follows = i + 1;
    }
    for (int64_t t = n - 1; t >= 0; t--) {
        const int64_t i = places[t].place;
        if (after >= 0 && is_in(qkvi_keys_of(rules, i), after)) matches[i] |= QKVI_HAS_SAME;
        if (!seen || seen[i]) after = i;
    }
}

qkv_status qkvi_matches_find(const qkvi_rules *rules, const uint8_t *seen, const int32_t *ids,
                             uint8_t *matches, qkv_error *error) {
    const int64_t n = rules->n_queries;
    placed_token *const sorted = qkvi_malloc_array((size_t)n, sizeof *sorted);
    if (!sorted) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for places of tokens");
    for (int64_t i = 0; i < n; i++) sorted[i] = (placed_token){ ids[i], i };
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    for (int64_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && sorted[to].id == sorted[from].id; to++) {
        }
        mark(rules, seen, sorted + from, to - from, matches);
    }
    free(sorted);
    return QKV_OK;
}
