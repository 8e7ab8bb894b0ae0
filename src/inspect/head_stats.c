/**
 * Means over the rows of one head, and what its keys receive. Queries of a decoder do not see all
 * keys: entropy is compared with that of as many equal weights as a row has keys, and a key's sum with
 * the rows that see it.
 *
 * The rows averaged are those whose query is neither [CLS], [SEP] nor [PAD]: special tokens mostly
 * look at themselves or at each other (Clark et al. 2019, section 3.2) and would drown a sentence
 * of ten words. If there is no other row, all count; a row that sees no key never does. Sums are in
 * double, over rows in ascending order.
 */
#include "inspect/head_stats.h"

#include <math.h>
#include <stdlib.h>

#include "inspect/matches.h"

enum { SINK_TOKENS = 64 }; /* only early tokens are sinks (Gu et al. 2024) */

/* Sums over the rows seen so far, in the units of qkv_head_stats. */
struct sums {
    int64_t n_rows, n_same, n_duplicate, n_induction; /* the latter: rows that have such a key */
    double entropy, log_keys, largest, effective_keys, distance, same, duplicate, induction;
    double kinds[QKVI_N_TOKEN_KINDS], offsets[QKVI_N_OFFSETS];
};

static int is_averaged(uint8_t kind) {
    return kind == QKVI_TOKEN_TEXT || kind == QKVI_TOKEN_PUNCTUATION;
}

static void add_matches(struct sums *sums, const qkvi_head_rows *rows, int64_t row,
                        unsigned matches) {
    sums->n_same += (matches & QKVI_HAS_SAME) != 0;
    sums->n_duplicate += (matches & QKVI_HAS_DUPLICATE) != 0;
    sums->n_induction += (matches & QKVI_HAS_INDUCTION) != 0;
    sums->same += (double)rows->same_token[row];
    sums->duplicate += (double)rows->duplicate[row];
    sums->induction += (double)rows->induction[row];
}

static void add_row(struct sums *sums, const qkvi_head_rows *rows, int64_t row) {
    sums->n_rows++;
    sums->entropy += (double)rows->entropy[row];
    sums->largest += (double)rows->largest[row];
    sums->effective_keys += (double)rows->effective_keys[row];
    for (int c = 0; c < QKVI_N_TOKEN_KINDS; c++)
        sums->kinds[c] += (double)rows->kinds[row * QKVI_N_TOKEN_KINDS + c];
}

/* What a query and its keys have to do with one another, which are tokens of one text. */
static void add_places(struct sums *sums, const qkvi_head_rows *rows, int64_t row) {
    sums->distance += (double)rows->mean_distance[row];
    for (int c = 0; c < QKVI_N_OFFSETS; c++)
        sums->offsets[c] += (double)rows->offsets[row * QKVI_N_OFFSETS + c];
}

static void add_rows(struct sums *sums, const qkvi_head_input *input, const qkvi_head_rows *rows,
                     int64_t head, int all) {
    for (int64_t i = 0; i < input->n; i++) {
        const int64_t row = head * input->n + i;
        if ((!all && !is_averaged(input->kinds[i])) || rows->largest[row] == 0) continue;
        add_row(sums, rows, row);
        sums->log_keys += input->log_keys[i];
        if (!input->matches) continue;
        add_places(sums, rows, row);
        add_matches(sums, rows, row, input->matches[i]);
    }
}

/* Over the rows that have such a key; NaN if none has. */
static double mean_of_some(double sum, int64_t n) { return n ? sum / (double)n : NAN; }

static void set_places(const struct sums *sums, double scale, qkv_head_stats *stats) {
    double window = 0;
    for (int c = 0; c < QKVI_N_OFFSETS; c++) window += sums->offsets[c];
    stats->mean_distance = sums->distance * scale;
    stats->mass_self = sums->offsets[QKVI_OFFSET_SELF] * scale;
    stats->mass_previous = sums->offsets[QKVI_OFFSET_PREVIOUS] * scale;
    stats->mass_next = sums->offsets[QKVI_OFFSET_NEXT] * scale;
    stats->mass_window = window * scale;
    stats->mass_same_token = mean_of_some(sums->same, sums->n_same);
    stats->mass_duplicate = mean_of_some(sums->duplicate, sums->n_duplicate);
    stats->mass_induction = mean_of_some(sums->induction, sums->n_induction);
}

static void set_no_places(qkv_head_stats *stats) {
    stats->mean_distance = stats->mass_self = stats->mass_previous = stats->mass_next = NAN;
    stats->mass_window = stats->mass_same_token = NAN;
    stats->mass_duplicate = stats->mass_induction = NAN;
}

void qkvi_head_means(const qkvi_head_input *input, const qkvi_head_rows *rows, int64_t head,
                     qkv_head_stats *stats) {
    struct sums sums = { 0 };
    add_rows(&sums, input, rows, head, 0);
    if (sums.n_rows == 0) add_rows(&sums, input, rows, head, 1);
    const double scale = sums.n_rows ? 1.0 / (double)sums.n_rows : 0;
    stats->n_queries = sums.n_rows;
    stats->entropy = sums.entropy * scale;
    if (stats->entropy < 0 && stats->entropy > -1e-6) stats->entropy = 0; /* a sum above 1 */
    stats->entropy_normalized =
        sums.log_keys > 0 ? stats->entropy / (sums.log_keys * scale) : stats->entropy * 0;
    stats->confidence = sums.largest * scale;
    stats->effective_keys = sums.effective_keys * scale;
    stats->mass_cls = sums.kinds[QKVI_TOKEN_CLS] * scale;
    stats->mass_sep = sums.kinds[QKVI_TOKEN_SEP] * scale;
    stats->mass_punctuation = sums.kinds[QKVI_TOKEN_PUNCTUATION] * scale;
    if (input->matches)
        set_places(&sums, scale, stats);
    else
        set_no_places(stats);
}

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
static int64_t most_queries(const qkvi_head_rows *rows, int64_t head) {
    const int64_t *const n_queries = rows->n_queries + head * rows->n_keys;
    int64_t most = 0;
    for (int64_t j = 0; j < rows->n_keys; j++)
        if (n_queries[j] > most) most = n_queries[j];
    return most;
}

/*
 * A key that no row sees has no share, and is no key of the coefficient. One that few rows see (the last
 * of a decoder's) is no sink, whatever those think of it.
 */
void qkvi_head_received(const qkvi_head_rows *rows, int64_t head, double *shares,
                        qkv_head_stats *stats) {
    const int64_t most = most_queries(rows, head);
    int64_t n_seen = 0;
    stats->received_largest = stats->received_early = 0;
    stats->received_key = -1;
    for (int64_t j = 0; j < rows->n_keys; j++) {
        const int64_t at = head * rows->n_keys + j;
        if (rows->n_queries[at] == 0) continue;
        const double share = (double)rows->received[at] / (double)rows->n_queries[at];
        shares[n_seen++] = (double)rows->received[at];
        if (j < SINK_TOKENS && 2 * rows->n_queries[at] >= most && share > stats->received_early)
            stats->received_early = share;
        if (!(share > stats->received_largest)) continue;
        stats->received_largest = share;
        stats->received_key = j;
    }
    stats->received_gini = gini(n_seen, shares);
}
