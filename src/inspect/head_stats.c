/**
 * Means over the rows of one head, and its label.
 *
 * The rows averaged are those whose query is neither [CLS], [SEP] nor [PAD]: special tokens mostly
 * look at themselves or at each other (Clark et al. 2019, section 3.2) and would drown a sentence
 * of ten words. If there is no other row, all count. Sums are in double, over the weights as they
 * are shown.
 */
#include "inspect/head_stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "inspect/tokens.h"

enum { SINK_TOKENS = 64 }; /* only early tokens are sinks (Gu et al. 2024) */

/* Sums over the rows seen so far, in the units of qkv_head_stats. */
struct sums {
    int64_t n_rows, n_same; /* n_same: rows whose token occurs elsewhere too */
    double entropy, confidence, distance, self, previous, next, same;
    double kinds[QKVI_TOKEN_PAD + 1];
};

static int is_averaged(uint8_t kind) {
    return kind == QKVI_TOKEN_TEXT || kind == QKVI_TOKEN_PUNCTUATION;
}

static void add_row(struct sums *sums, const float *row, int64_t n, int64_t i, const int32_t *ids,
                    const uint8_t *kinds) {
    double largest = 0, same = 0;
    int has_same = 0;
    for (int64_t j = 0; j < n; j++) {
        const double p = row[j];
        if (p > largest || isnan(p)) largest = p;
        if (p != 0) sums->entropy -= p * log(p);
        sums->distance += p * fabs((double)(i - j));
        sums->kinds[kinds[j]] += p;
        if (j != i && ids[j] == ids[i]) {
            has_same = 1;
            same += p;
        }
    }
    sums->confidence += largest;
    sums->self += row[i];
    if (i > 0) sums->previous += row[i - 1];
    if (i + 1 < n) sums->next += row[i + 1];
    sums->same += same;
    sums->n_same += has_same;
    sums->n_rows++;
}

static void add_rows(struct sums *sums, const float *weights, int64_t n, const int32_t *ids,
                     const uint8_t *kinds, int all) {
    for (int64_t i = 0; i < n; i++) {
        if (all || is_averaged(kinds[i])) add_row(sums, weights + i * n, n, i, ids, kinds);
    }
}

/* The largest share that one early key receives of all rows: max over j of (1/n) sum_i p_ij. */
static double largest_received(const float *weights, int64_t n) {
    double largest = 0;
    for (int64_t j = 0; j < n && j < SINK_TOKENS; j++) {
        double received = 0;
        for (int64_t i = 0; i < n; i++) received += weights[i * n + j];
        if (received / (double)n > largest) largest = received / (double)n;
    }
    return largest;
}

/* The first rule that holds, in the order of docs/statistics.md. */
static const char *label_of(const qkv_head_stats *stats, double received, double same) {
    if (isnan(stats->entropy)) return "";
    if (stats->mass_next > 0.5) return "next";
    if (stats->mass_previous > 0.5) return "prev";
    if (stats->mass_cls > 0.6) return "[CLS]";
    if (stats->mass_sep > 0.6) return "[SEP]";
    if (stats->mass_punctuation > 0.6) return "punctuation";
    if (stats->entropy_normalized > 0.78) return "broad";
    if (received > 0.3) return "sink";
    if (same > 0.4) return "same-token";
    return "";
}

void qkvi_head_stats(const float *weights, int64_t n, const int32_t *ids, const uint8_t *kinds,
                     qkv_head_stats *stats) {
    struct sums sums = { 0 };
    add_rows(&sums, weights, n, ids, kinds, 0);
    if (sums.n_rows == 0) add_rows(&sums, weights, n, ids, kinds, 1);
    const double scale = sums.n_rows ? 1.0 / (double)sums.n_rows : 0;
    stats->entropy = sums.entropy * scale;
    if (stats->entropy < 0 && stats->entropy > -1e-6) stats->entropy = 0; /* a weight above 1 */
    stats->entropy_normalized = n > 1 ? stats->entropy / log((double)n) : 0;
    stats->confidence = sums.confidence * scale;
    stats->mean_distance = sums.distance * scale;
    stats->mass_cls = sums.kinds[QKVI_TOKEN_CLS] * scale;
    stats->mass_sep = sums.kinds[QKVI_TOKEN_SEP] * scale;
    stats->mass_punctuation = sums.kinds[QKVI_TOKEN_PUNCTUATION] * scale;
    stats->mass_self = sums.self * scale;
    stats->mass_previous = sums.previous * scale;
    stats->mass_next = sums.next * scale;
    const double same = sums.n_same ? sums.same / (double)sums.n_same : 0;
    snprintf(stats->label, sizeof stats->label, "%s",
             label_of(stats, largest_received(weights, n), same));
}
