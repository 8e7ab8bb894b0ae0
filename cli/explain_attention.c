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

#include "explain.h"

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

void explain_scores(struct lesson *lesson, const struct explained *e) {
    const qkv_steps *s = e->steps;
    const int64_t d = s->head_dim, j = best_key(s);
    char shape[128], text[400] = "", number[NUMBER_BYTES];
    snprintf(shape, sizeof shape,
             "q (1, %" PRId64 ") · Kᵀ (%" PRId64 ", %" PRId64 ") → (1, %" PRId64 ")", d, d, s->n,
             s->n);
    lesson_step(lesson, "Similarity: the query with every key", "q·kⱼ = Σ q[c] kⱼ[c]", shape);
    const int64_t shown = d <= 4 ? d : SHOWN_PRODUCTS;
    for (int64_t c = 0; c < shown; c++) {
        text_append(text, sizeof text, "%s%s·", c ? " + " : "", lesson_factor(number, s->q[c]));
        text_append(text, sizeof text, "%s", lesson_factor(number, s->k[j * d + c]));
    }
    if (shown < d) text_append(text, sizeof text, " + … (%" PRId64 " products)", d);
    text_append(text, sizeof text, " = %s", lesson_format(number, s->products[j]));
    lesson_text(lesson, WORD " with " WORD ": %s", e->query_label, e->labels[j], text);

    snprintf(shape, sizeof shape, "(1, %" PRId64 ")", s->n);
    char product[NUMBER_BYTES], root[NUMBER_BYTES];
    if (!is_usual(s)) {
        lesson_step(lesson, "Scale", "sⱼ = scale · q·kⱼ", shape);
        lesson_text(lesson, WORD ": %s · %s = %s", e->labels[j], lesson_format(root, s->scale),
                    lesson_format(product, s->products[j]),
                    lesson_format(number, s->scale * s->products[j]));
        lesson_note(lesson, "The model's scale in this layer is not 1 / √d = %s.",
                    lesson_format(number, 1 / sqrt((double)d)));
        return;
    }
    lesson_step(lesson, "Scale", "sⱼ = q·kⱼ / √d", shape);
    lesson_text(lesson, WORD ": %s / √%" PRId64 " = %s / %s = %s", e->labels[j],
                lesson_format(product, s->products[j]), d, product,
                lesson_format(root, sqrt((double)d)), lesson_format(number, s->scores[j]));
    lesson_note(lesson, "A dot product of d random numbers has variance d; divided by √d it has 1 "
                        "again, and softmax does not saturate (qkv explain --no-scale).");
}

void explain_mask(struct lesson *lesson, const struct explained *e, const char *why) {
    char shape[64];
    snprintf(shape, sizeof shape, "(1, %" PRId64 ")", e->steps->n);
    lesson_step(lesson, "Mask", "sⱼ = −∞ for keys that must not be seen", shape);
    lesson_text(lesson, "%s", why);
}

void explain_softmax(struct lesson *lesson, const struct explained *e) {
    const qkv_steps *s = e->steps;
    char shape[64], largest[NUMBER_BYTES];
    snprintf(shape, sizeof shape, "(1, %" PRId64 "), which sum to 1", s->n);
    lesson_step(lesson, "Softmax", "wⱼ = exp(sⱼ − max s) / Σ exp(s − max s)", shape);
    lesson_text(lesson,
                "max s = %s; minus that, no exp is above 1, so none overflows, and the weights are "
                "the same.",
                lesson_format(largest, s->largest));
    bool *marks = mark_keys(s, e->n_rows);
    lesson->failed |= !marks;
    if (!marks) return;
    const char *scaled = is_usual(s) ? "q·k/√d" : "scaled";
    const int64_t best = best_key(s);
    int64_t n_others = 0;
    double exponentials = 0, weights = 0;
    if (e->masked)
        lesson_table(lesson, "nwnnnnnnb", "", "key", "q·k", scaled, "masked", "−max", "exp",
                     "weight", "");
    else
        lesson_table(lesson, "nwnnnnnb", "", "key", "q·k", scaled, "−max", "exp", "weight", "");
    for (int64_t j = 0; j < s->n; j++) {
        if (!marks[j]) {
            n_others++;
            exponentials += s->exponentials[j];
            weights += s->weights[j];
            continue;
        }
        lesson_row(lesson, j == best);
        lesson_cell(lesson, "%" PRId64, j);
        lesson_cell(lesson, WORD, e->labels[j]);
        lesson_number(lesson, s->products[j]);
        lesson_number(lesson, s->scale * s->products[j]);
        if (e->masked) lesson_number(lesson, s->scores[j]);
        lesson_number(lesson, s->shifted[j]);
        lesson_number(lesson, s->exponentials[j]);
        lesson_number(lesson, s->weights[j]);
        lesson_bar(lesson, s->weights[j]);
    }
    if (n_others > 0) {
        lesson_row(lesson, false);
        lesson_cell(lesson, " ");
        lesson_cell(lesson, "%" PRId64 " others", n_others);
        for (int c = 0; c < 3 + e->masked; c++) lesson_cell(lesson, " ");
        lesson_number(lesson, exponentials);
        lesson_number(lesson, weights);
        lesson_bar(lesson, weights);
    }
    lesson_row(lesson, false);
    lesson_cell(lesson, " ");
    lesson_cell(lesson, "Σ");
    for (int c = 0; c < 3 + e->masked; c++) lesson_cell(lesson, " ");
    lesson_number(lesson, s->sum);
    lesson_number(lesson, sum_of(s->n, s->weights));
    free(marks);
}

/* w_j v_j of some keys, and of all others together. */
void explain_values(struct lesson *lesson, const struct explained *e) {
    const qkv_steps *s = e->steps;
    const int64_t d = e->head_dim_v;
    char shape[96];
    snprintf(shape, sizeof shape,
             "(1, %" PRId64 ") · V (%" PRId64 ", %" PRId64 ") → (1, %" PRId64 ")", s->n, s->n, d,
             d);
    lesson_step(lesson, "Mix the values", "o = Σ wⱼ vⱼ", shape);
    const int64_t n = s->n <= 6 ? s->n : SHOWN_VALUES;
    bool *marks = mark_keys(s, n);
    double *sum = calloc((size_t)(2 * d) + 1, sizeof(*sum)), *part = sum + d;
    lesson->failed |= !marks || !sum;
    if (marks && sum) {
        lesson_vectors(lesson, d);
        for (int64_t j = 0; j < s->n; j++) {
            for (int64_t c = 0; c < d; c++) {
                part[c] = s->weights[j] * s->v[j * d + c];
                if (!marks[j]) sum[c] += part[c];
            }
            char weight[NUMBER_BYTES];
            lesson_format(weight, s->weights[j]);
            if (marks[j]) lesson_vector(lesson, d, part, false, "%s·" WORD, weight, e->labels[j]);
        }
        if (n < s->n) lesson_vector(lesson, d, sum, false, "%" PRId64 " others", s->n - n);
        lesson_vector(lesson, d, s->o, true, "o");
    }
    free(marks);
    free(sum);
}
