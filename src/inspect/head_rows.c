/*
 * Statistics of rows by one forward call (qkv/stats.h), and of columns by one pass over columns
 * (qkv/columns.h): O(n) memory at any length, the same bits for any number of threads. head_dim_v
 * is 0: values are not read, and there is no output but lse and statistics.
 */
#include "inspect/head_rows.h"

#include "files/base.h"
#include "inspect/share.h"

/* ---- Matches --------------------------------------------------------------------------------- */

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

/*
 * The places of one token. What a query sees is an interval around it: the nearest place decides.
 */
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
    if (!sorted) return qkvi_no_memory(error, "places of tokens");
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

/* Bounds of key - query for QKVI_OFFSET_…. */
const int64_t qkvi_head_offsets[QKVI_N_OFFSETS + 1] = { -QKVI_HEAD_WINDOW,   -1, 0, 1, 2,
                                                        QKVI_HEAD_WINDOW + 1 };

enum {
    FLOATS_A_ROW = 7 + QKVI_N_TOKEN_KINDS + QKVI_N_OFFSETS + QKVI_N_TOP,
    COUNTS_A_ROW = QKVI_N_TOP
};

/* Cuts the next part of an allocation. */
static float *cut(float **from, int64_t n) {
    float *const part = *from;
    *from += n;
    return part;
}

static int64_t *cut_counts(int64_t **from, int64_t n) {
    int64_t *const part = *from;
    *from += n;
    return part;
}

qkv_status qkvi_head_rows_make(int64_t n_heads, int64_t n, int64_t n_keys, qkvi_head_rows *rows,
                               qkv_error *error) {
    int64_t n_rows = 0, n_of_keys = 0, n_floats, n_counts;
    float *all = NULL;
    int64_t *counts = NULL;
    *rows = (qkvi_head_rows){ .n_heads = n_heads, .n = n, .n_keys = n_keys };
    if (qkvi_mul_i64(n_heads, n, &n_rows) && qkvi_mul_i64(n_heads, n_keys, &n_of_keys) &&
        qkvi_mul_i64(n_rows, FLOATS_A_ROW, &n_floats) &&
        qkvi_add_i64(n_floats, n_of_keys, &n_floats) &&
        qkvi_mul_i64(n_rows, COUNTS_A_ROW, &n_counts) &&
        qkvi_add_i64(n_counts, n_of_keys + 2 * n_heads, &n_counts)) {
        all = qkvi_malloc_array((size_t)n_floats, sizeof *all);
        counts = qkvi_malloc_array((size_t)n_counts, sizeof *counts);
    }
    rows->entropy = all;
    rows->n_queries = counts;
    if (!all || !counts)
        return qkvi_error_set(error, QKV_ERR_MEMORY,
                              "no memory for statistics of %lld heads of %lld tokens",
                              (long long)n_heads, (long long)n);
    rows->entropy = cut(&all, n_rows);
    rows->largest = cut(&all, n_rows);
    rows->effective_keys = cut(&all, n_rows);
    rows->mean_distance = cut(&all, n_rows);
    rows->same_token = cut(&all, n_rows);
    rows->duplicate = cut(&all, n_rows);
    rows->induction = cut(&all, n_rows);
    rows->received = cut(&all, n_of_keys);
    rows->kinds = cut(&all, QKVI_N_TOKEN_KINDS * n_rows);
    rows->offsets = cut(&all, QKVI_N_OFFSETS * n_rows);
    rows->top_weights = all;
    rows->n_queries = cut_counts(&counts, n_of_keys);
    rows->top_keys = cut_counts(&counts, QKVI_N_TOP * n_rows);
    rows->n_empty_rows = cut_counts(&counts, n_heads);
    rows->n_nan_rows = counts;
    return QKV_OK;
}

void qkvi_head_rows_free(qkvi_head_rows *rows) {
    free(rows->entropy);
    free(rows->n_queries);
    *rows = (qkvi_head_rows){ 0 };
}

static void ask_about_places(const qkvi_head_rows *rows, qkv_attention_stats *stats) {
    stats->mean_distance = rows->mean_distance;
    stats->n_offsets = QKVI_N_OFFSETS;
    stats->offsets = qkvi_head_offsets;
    stats->offset_mass = rows->offsets;
}

static void ask_about_tokens(const int32_t *ids, const qkvi_head_rows *rows,
                             qkv_attention_stats *stats) {
    stats->tokens_q = stats->tokens_k = ids;
    stats->same_token = rows->same_token;
    stats->duplicate = rows->duplicate;
    stats->induction = rows->induction;
}

static void ask(const qkvi_head_pass *pass, const qkvi_head_rows *rows,
                qkv_attention_stats *stats) {
    stats->entropy = rows->entropy;
    stats->largest = rows->largest;
    stats->effective_keys = rows->effective_keys;
    stats->n_empty_rows = rows->n_empty_rows;
    stats->n_nan_rows = rows->n_nan_rows;
    if (pass->kinds) {
        stats->n_classes = QKVI_N_TOKEN_KINDS;
        stats->classes = pass->kinds;
        stats->class_mass = rows->kinds;
    }
    if (pass->places) ask_about_places(rows, stats);
    if (pass->ids) ask_about_tokens(pass->ids, rows, stats);
    if (!pass->top) return;
    stats->top_k = QKVI_N_TOP;
    stats->top_keys = rows->top_keys;
    stats->top_weights = rows->top_weights;
}

static qkv_status compute_rows(const qkvi_share *share, const qkvi_head_pass *pass,
                               const qkvi_head_rows *rows, qkv_error *error) {
    qkv_attention_stats stats;
    qkv_attention_stats_contiguous(&stats, pass->desc);
    ask(pass, rows, &stats);
    return qkvi_share_forward(share, QKV_OK, pass->make_lse ? pass->lse : NULL, &stats, error);
}

static qkv_status compute_columns(const qkvi_share *share, const qkvi_head_pass *pass,
                                  const qkvi_head_rows *rows, qkv_error *error) {
    qkv_attention_columns columns;
    qkv_attention_columns_contiguous(&columns, pass->desc);
    columns.received = rows->received;
    columns.n_queries = rows->n_queries;
    return qkvi_share_received(share, QKV_OK, pass->lse, &columns, error);
}

qkv_status qkvi_head_rows_compute(const qkvi_head_pass *pass, qkvi_head_rows *rows,
                                  qkv_error *error) {
    const qkvi_share share = { .peers = pass->peers,
                               .rules = pass->rules,
                               .ctx = pass->ctx,
                               .desc = pass->desc,
                               .q = pass->q,
                               .k = pass->k,
                               .pieces = pass->pieces,
                               .call = pass->call };
    qkv_error reason = { QKV_OK, "" };
    qkv_status status = compute_rows(&share, pass, rows, &reason);
    if (status == QKV_OK && pass->columns) status = compute_columns(&share, pass, rows, &reason);
    if (status == QKV_OK) return QKV_OK;
    return qkvi_error_set(error, status, "statistics of heads: %.900s", reason.message);
}
