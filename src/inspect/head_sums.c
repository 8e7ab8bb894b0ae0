/**
 * Sums over the rows of a head. Averages leave out rows whose query is [CLS], [SEP] or [PAD]:
 * special tokens mostly look at themselves or at each other (Clark et al. 2019, section 3.2), which
 * would dominate the average of a short sentence. If there are no other rows, all count. A row that
 * sees no key never counts. Sums are in double, over rows in ascending order.
 */
#include "inspect/head_rows.h"

#include <math.h>

enum { SINK_TOKENS = 64 }; /* only early tokens are sinks (Gu et al. 2024) */

static int is_averaged(const qkvi_head_input *input, int64_t i) {
    if (!input->query_kinds) return 1;
    const uint8_t kind = input->query_kinds[i];
    return kind == QKVI_TOKEN_TEXT || kind == QKVI_TOKEN_PUNCTUATION;
}

static void add_matches(qkvi_head_sums *sums, const qkvi_head_rows *rows, int64_t row,
                        unsigned matches) {
    sums->n_same += (matches & QKVI_HAS_SAME) != 0;
    sums->n_duplicate += (matches & QKVI_HAS_DUPLICATE) != 0;
    sums->n_induction += (matches & QKVI_HAS_INDUCTION) != 0;
    sums->same += (double)rows->same_token[row];
    sums->duplicate += (double)rows->duplicate[row];
    sums->induction += (double)rows->induction[row];
}

static void add_row(qkvi_head_sums *sums, const qkvi_head_rows *rows, int64_t row) {
    const qkvi_head_input *const input = sums->input;
    sums->n_rows++;
    sums->entropy += (double)rows->entropy[row];
    sums->largest += (double)rows->largest[row];
    sums->effective_keys += (double)rows->effective_keys[row];
    for (int c = 0; input->kinds && c < QKVI_N_TOKEN_KINDS; c++)
        sums->kinds[c] += (double)rows->kinds[row * QKVI_N_TOKEN_KINDS + c];
    if (input->places) sums->distance += (double)rows->mean_distance[row];
    for (int c = 0; input->places && c < QKVI_N_OFFSETS; c++)
        sums->offsets[c] += (double)rows->offsets[row * QKVI_N_OFFSETS + c];
}

static void add_rows(qkvi_head_sums *sums, const qkvi_head_rows *rows, int64_t head, int all) {
    const qkvi_head_input *const input = sums->input;
    sums->n_seeing = 0;
    for (int64_t i = 0; i < input->n; i++) {
        const int64_t row = head * input->n + i;
        if (rows->largest[row] == 0) continue;
        sums->n_seeing++;
        if (!all && !is_averaged(input, i)) continue;
        add_row(sums, rows, row);
        sums->log_keys += input->log_keys[i];
        if (input->matches) add_matches(sums, rows, row, input->matches[i]);
    }
}

/* ---- What keys receive ----------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/*
 * Gini coefficient of n numbers >= 0, which are sorted: sum over pairs of |x - y| / (2 n sum)
 * = (2 sum_k k x_(k)) / (n sum) - (n + 1) / n.
 */
static double gini(int64_t n, double *values) {
    double sum = 0, ranked = 0;
    for (int64_t j = 0; j < n; j++) sum += values[j];
    if (!(sum > 0)) return 0;
    qsort(values, (size_t)n, sizeof *values, ascending);
    for (int64_t k = 0; k < n; k++) ranked += (double)(k + 1) * values[k];
    const double result = 2 * ranked / ((double)n * sum) - (double)(n + 1) / (double)n;
    return result > 0 ? result : 0;
}

/* Of the key that most rows see. */
static int64_t most_queries(const int64_t *n_queries, int64_t n_keys) {
    int64_t most = 0;
    for (int64_t j = 0; j < n_keys; j++)
        if (n_queries[j] > most) most = n_queries[j];
    return most;
}

/*
 * A key that no row sees has no share, and is no key of the coefficient. One that few rows see (the
 * last of a decoder's) is no sink, whatever those think of it.
 */
static void add_received(const qkvi_head_rows *rows, int64_t head, double *shares,
                         qkvi_head_sums *sums) {
    const int64_t *const n_queries = rows->n_queries + head * rows->n_keys;
    const float *const received = rows->received + head * rows->n_keys;
    const int64_t most = most_queries(n_queries, rows->n_keys);
    int64_t n_seen = 0;
    for (int64_t j = 0; j < rows->n_keys; j++) {
        if (n_queries[j] == 0) continue;
        const double share = (double)received[j] / (double)n_queries[j];
        shares[n_seen++] = (double)received[j];
        if (j < SINK_TOKENS && 2 * n_queries[j] >= most && share > sums->received_early)
            sums->received_early = share;
        if (!(share > sums->received_largest)) continue;
        sums->received_largest = share;
        sums->received_key = j;
    }
    sums->received_gini = gini(n_seen, shares);
}

void qkvi_head_sums_make(const qkvi_head_input *input, const qkvi_head_rows *rows, int64_t head,
                         double *shares, qkvi_head_sums *sums) {
    *sums = (qkvi_head_sums){ .input = input, .received_key = -1 };
    add_rows(sums, rows, head, 0);
    if (sums->n_rows == 0) add_rows(sums, rows, head, 1);
    sums->scale = sums->n_rows ? 1.0 / (double)sums->n_rows : 0;
    if (input->columns) add_received(rows, head, shares, sums);
}
