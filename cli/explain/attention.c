/*
 * The steps of attention itself for one query, in the order of a textbook:
 *
 *     q . k_j    / sqrt(d)    mask    minus the largest    exp    / sum    sum of w_j v_j
 *
 * Keys are those with the largest weights, in the order of the text; the others are summed up in one row.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explain/explain.h"

enum { SHOWN_PRODUCTS = 3, SHOWN_VALUES = 3 };

static int64_t best_key(const qkv_steps *s) {
    int64_t best = 0;
    for (int64_t j = 1; j < s->n; j++)
        if (s->weights[j] > s->weights[best]) best = j;
    return best;
}

static double sum_of(int64_t n, const double *values) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += values[i];
    return sum;
}

/* Marks the `n` keys with the largest weights; of equal ones the first. */
static bool *mark_keys(const qkv_steps *s, int64_t n) {
    bool *marks = calloc((size_t)s->n + 1, sizeof(*marks));
    for (int64_t turn = 0; marks && turn < n && turn < s->n; turn++) {
        int64_t best = -1;
        for (int64_t j = 0; j < s->n; j++)
            if (!marks[j] && (best < 0 || s->weights[j] > s->weights[best])) best = j;
        marks[best] = true;
    }
    return marks;
}

/* GPT-2 may divide by something else than √d. */
static bool is_usual(const qkv_steps *s) {
    return fabs(s->scale * sqrt((double)s->head_dim) - 1) < 1e-6;
}

void explain_scores(struct report *report, const struct explained *e) {
    const qkv_steps *s = e->steps;
    const int64_t d = s->head_dim, j = best_key(s);
    char shape[128], text[400] = "", number[NUMBER_BYTES];
    snprintf(shape, sizeof shape,
             "q (1, %" PRId64 ") · Kᵀ (%" PRId64 ", %" PRId64 ") → (1, %" PRId64 ")", d, d, s->n,
             s->n);
    report_step(report, "Similarity: the query with every key", "q·kⱼ = Σ q[c] kⱼ[c]", shape);
    const int64_t shown = d <= 4 ? d : SHOWN_PRODUCTS;
    for (int64_t c = 0; c < shown; c++) {
        text_append(text, sizeof text, "%s%s·", c ? " + " : "", report_factor(number, s->q[c]));
        text_append(text, sizeof text, "%s", report_factor(number, s->k[j * d + c]));
    }
    if (shown < d) text_append(text, sizeof text, " + … (%" PRId64 " products)", d);
    text_append(text, sizeof text, " = %s", report_format(number, s->products[j]));
    report_text(report, WORD " with " WORD ": %s", e->query_label, e->labels[j], text);

    snprintf(shape, sizeof shape, "(1, %" PRId64 ")", s->n);
    char product[NUMBER_BYTES], root[NUMBER_BYTES];
    if (!is_usual(s)) {
        report_step(report, "Scale", "sⱼ = scale · q·kⱼ", shape);
        report_text(report, WORD ": %s · %s = %s", e->labels[j], report_format(root, s->scale),
                    report_format(product, s->products[j]),
                    report_format(number, s->scale * s->products[j]));
        report_note(report, "The model's scale in this layer is not 1 / √d = %s.",
                    report_format(number, 1 / sqrt((double)d)));
        return;
    }
    report_step(report, "Scale", "sⱼ = q·kⱼ / √d", shape);
    report_text(report, WORD ": %s / √%" PRId64 " = %s / %s = %s", e->labels[j],
                report_format(product, s->products[j]), d, product,
                report_format(root, sqrt((double)d)), report_format(number, s->scores[j]));
    report_note(report, "A dot product of d random numbers has variance d; divided by √d it has 1 "
                        "again, and softmax does not saturate (qkv explain --no-scale).");
}

void explain_mask(struct report *report, const struct explained *e, const char *why) {
    char shape[64];
    snprintf(shape, sizeof shape, "(1, %" PRId64 ")", e->steps->n);
    report_step(report, "Mask", "sⱼ = −∞ for keys that must not be seen", shape);
    report_text(report, "%s", why);
}

void explain_softmax(struct report *report, const struct explained *e) {
    const qkv_steps *s = e->steps;
    char shape[64], largest[NUMBER_BYTES];
    snprintf(shape, sizeof shape, "(1, %" PRId64 "), which sum to 1", s->n);
    report_step(report, "Softmax", "wⱼ = exp(sⱼ − max s) / Σ exp(s − max s)", shape);
    report_text(report,
                "max s = %s; minus that, no exp is above 1, so none overflows, and the weights are "
                "the same.",
                report_format(largest, s->largest));
    bool *marks = mark_keys(s, e->n_rows);
    report->failed |= !marks;
    if (!marks) return;
    const char *scaled = is_usual(s) ? "q·k/√d" : "scaled";
    const int64_t best = best_key(s);
    int64_t n_others = 0;
    double exponentials = 0, weights = 0;
    if (e->masked)
        report_table(report, "nwnnnnnnb", "", "key", "q·k", scaled, "masked", "−max", "exp",
                     "weight", "");
    else
        report_table(report, "nwnnnnnb", "", "key", "q·k", scaled, "−max", "exp", "weight", "");
    for (int64_t j = 0; j < s->n; j++) {
        if (!marks[j]) {
            n_others++;
            exponentials += s->exponentials[j];
            weights += s->weights[j];
            continue;
        }
        report_row(report, j == best);
        report_cell(report, "%" PRId64, j);
        report_cell(report, WORD, e->labels[j]);
        report_number(report, s->products[j]);
        report_number(report, s->scale * s->products[j]);
        if (e->masked) report_number(report, s->scores[j]);
        report_number(report, s->shifted[j]);
        report_number(report, s->exponentials[j]);
        report_number(report, s->weights[j]);
        report_bar(report, s->weights[j]);
    }
    if (n_others > 0) {
        report_row(report, false);
        report_cell(report, " ");
        report_cell(report, "%" PRId64 " others", n_others);
        for (int c = 0; c < 3 + e->masked; c++) report_cell(report, " ");
        report_number(report, exponentials);
        report_number(report, weights);
        report_bar(report, weights);
    }
    report_row(report, false);
    report_cell(report, " ");
    report_cell(report, "Σ");
    for (int c = 0; c < 3 + e->masked; c++) report_cell(report, " ");
    report_number(report, s->sum);
    report_number(report, sum_of(s->n, s->weights));
    free(marks);
}

/* w_j v_j of some keys, and of all others together. */
void explain_values(struct report *report, const struct explained *e) {
    const qkv_steps *s = e->steps;
    const int64_t d = e->head_dim_v;
    char shape[96];
    snprintf(shape, sizeof shape,
             "(1, %" PRId64 ") · V (%" PRId64 ", %" PRId64 ") → (1, %" PRId64 ")", s->n, s->n, d,
             d);
    report_step(report, "Mix the values", "o = Σ wⱼ vⱼ", shape);
    const int64_t n = s->n <= 6 ? s->n : SHOWN_VALUES;
    bool *marks = mark_keys(s, n);
    double *sum = calloc((size_t)(2 * d) + 1, sizeof(*sum)), *part = sum + d;
    report->failed |= !marks || !sum;
    if (marks && sum) {
        report_vectors(report, d);
        for (int64_t j = 0; j < s->n; j++) {
            for (int64_t c = 0; c < d; c++) {
                part[c] = s->weights[j] * s->v[j * d + c];
                if (!marks[j]) sum[c] += part[c];
            }
            char weight[NUMBER_BYTES];
            report_format(weight, s->weights[j]);
            if (marks[j]) report_vector(report, d, part, false, "%s·" WORD, weight, e->labels[j]);
        }
        if (n < s->n) report_vector(report, d, sum, false, "%" PRId64 " others", s->n - n);
        report_vector(report, d, s->o, true, "o");
    }
    free(marks);
    free(sum);
}
