/*
 * The steps of attention itself for one query, in the order of a textbook:
 *
 *     q . k_j    / sqrt(d)    mask    minus the largest    exp    / sum    sum of w_j v_j
 *
 * A table has the keys with the largest weights, in the order of the text, and one row with the sum
 * of all others.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explain/explain.h"

enum { SHOWN_PRODUCTS = 3, SHOWN_VALUES = 3 };

int64_t explain_best_key(const qkv_steps *s) {
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

static void show_scores(struct report *report, const struct explained *e) {
    const qkv_steps *s = e->steps;
    const int64_t d = s->head_dim, j = explain_best_key(s);
    char text[400] = "", number[NUMBER_BYTES];
    report_step(report, "Similarity: the query with every key", "q·kⱼ = Σ q[c] kⱼ[c]", NULL);
    report_shape(report, "q (1, %" PRId64 ") · Kᵀ (%" PRId64 ", %" PRId64 ") → (1, %" PRId64 ")", d,
                 d, s->n, s->n);
    const int64_t shown = d <= 4 ? d : SHOWN_PRODUCTS;
    for (int64_t c = 0; c < shown; c++) {
        text_append(text, sizeof text, "%s%s·", c ? " + " : "", report_factor(number, s->q[c]));
        text_append(text, sizeof text, "%s", report_factor(number, s->k[j * d + c]));
    }
    if (shown < d) text_append(text, sizeof text, " + … (%" PRId64 " products)", d);
    text_append(text, sizeof text, " = %s", report_format(number, s->products[j]));
    report_text(report, WORD " with " WORD ": %s", e->query_label, e->labels[j], text);
}

/* What a score becomes where there is a soft cap. */
static double capped(const qkv_steps *s, double score) {
    return s->softcap > 0 ? s->softcap * tanh(score / s->softcap) : score;
}

static void show_cap(struct report *report, const struct explained *e) {
    const qkv_steps *s = e->steps;
    const int64_t j = explain_best_key(s);
    char cap[NUMBER_BYTES], score[NUMBER_BYTES], result[NUMBER_BYTES];
    if (!(s->softcap > 0)) return;
    report_step(report, "Soft cap", "sⱼ = c tanh(sⱼ / c)", NULL);
    report_shape(report, "(1, %" PRId64 ")", s->n);
    report_format(cap, s->softcap);
    report_format(score, s->scale * s->products[j]);
    report_text(report, WORD ": %s tanh(%s / %s) = %s", e->labels[j], cap, score, cap,
                report_format(result, capped(s, s->scale * s->products[j])));
    report_note(report, "No score leaves −c … c, so no key gets all of the weight.");
}

static void show_bias(struct report *report, const struct explained *e) {
    const qkv_steps *s = e->steps;
    const int64_t j = explain_best_key(s);
    const double score = capped(s, s->scale * s->products[j]);
    char before[NUMBER_BYTES], bias[NUMBER_BYTES], after[NUMBER_BYTES];
    if (!s->biases) return;
    const bool alibi = s->alibi != 0;
    report_step(report, alibi ? "ALiBi" : "Bias by distance",
                alibi ? "sⱼ = sⱼ + m (j − i)" : "sⱼ = sⱼ + bias[j − i]", NULL);
    report_shape(report, "(1, %" PRId64 ")", s->n);
    report_text(report, WORD ": distance %" PRId64 ", %s + (%s) = %s", e->labels[j], j - s->query,
                report_format(before, score), report_format(bias, s->biases[j]),
                report_format(after, score + s->biases[j]));
    char slope[NUMBER_BYTES];
    if (alibi)
        report_note(report,
                    "The slope m = %s of the head is not learned: heads of a layer have a "
                    "geometric sequence of them, and all layers the same.",
                    report_format(slope, s->alibi));
    else
        report_note(report, "The head has learned a number for each distance, and from the largest "
                            "on one for all. All layers of the stack share them.");
}

static void show_scale(struct report *report, const struct explained *e) {
    const qkv_steps *s = e->steps;
    const int64_t d = s->head_dim, j = explain_best_key(s);
    char number[NUMBER_BYTES], product[NUMBER_BYTES], root[NUMBER_BYTES];
    report_step(report, "Scale", is_usual(s) ? "sⱼ = q·kⱼ / √d" : "sⱼ = scale · q·kⱼ", NULL);
    report_shape(report, "(1, %" PRId64 ")", s->n);
    report_format(product, s->products[j]);
    if (!is_usual(s)) {
        report_text(report, WORD ": %s · %s = %s", e->labels[j], report_format(root, s->scale),
                    product, report_format(number, s->scale * s->products[j]));
        report_note(report, "The model's scale in this layer is not 1 / √d = %s.",
                    report_format(number, 1 / sqrt((double)d)));
        return;
    }
    report_text(report, WORD ": %s / √%" PRId64 " = %s / %s = %s", e->labels[j], product, d,
                product, report_format(root, sqrt((double)d)),
                report_format(number, s->scale * s->products[j]));
    report_note(report, "A dot product of d random numbers has variance d; divided by √d it has 1 "
                        "again, and softmax does not saturate (qkv explain --no-scale).");
}

/* Whether scores are something else than what scale and cap made of products. */
static bool has_scores(const struct explained *e) { return e->masked || e->steps->biases; }

/* Empty cells, then numbers: the end of a row that stands for several keys. */
static void sums(struct report *report, const struct explained *e, double exponentials,
                 double weights) {
    for (int c = 0; c < 3 + has_scores(e); c++) report_cell(report, " ");
    report_number(report, exponentials);
    report_number(report, weights);
}

static void key_row(struct report *report, const struct explained *e, int64_t j, bool best) {
    const qkv_steps *s = e->steps;
    report_row(report, best);
    report_cell(report, "%" PRId64, j);
    report_cell(report, WORD, e->labels[j]);
    report_number(report, s->products[j]);
    report_number(report, capped(s, s->scale * s->products[j]));
    if (has_scores(e)) report_number(report, s->scores[j]);
    report_number(report, s->shifted[j]);
    report_number(report, s->exponentials[j]);
    report_number(report, s->weights[j]);
    report_bar(report, s->weights[j]);
}

static void softmax_table(struct report *report, const struct explained *e, const bool *marks) {
    const qkv_steps *s = e->steps;
    const char *scaled = s->softcap > 0 ? "capped" : is_usual(s) ? "q·k/√d" : "scaled";
    const int64_t best = explain_best_key(s);
    int64_t n_others = 0;
    double exponentials = 0, weights = 0;
    if (has_scores(e))
        report_table(report, "nwnnnnnnb", "", "key", "q·k", scaled, s->biases ? "biased" : "masked",
                     "−max", "exp", "weight", "");
    else
        report_table(report, "nwnnnnnb", "", "key", "q·k", scaled, "−max", "exp", "weight", "");
    for (int64_t j = 0; j < s->n; j++) {
        if (marks[j]) {
            key_row(report, e, j, j == best);
            continue;
        }
        n_others++;
        exponentials += s->exponentials[j];
        weights += s->weights[j];
    }
    if (n_others > 0) {
        report_row(report, false);
        report_cell(report, " ");
        report_cell(report, "%" PRId64 " others", n_others);
        sums(report, e, exponentials, weights);
        report_bar(report, weights);
    }
    report_row(report, false);
    report_cell(report, " ");
    report_cell(report, "Σ");
    sums(report, e, s->sum, sum_of(s->n, s->weights));
}

static void show_softmax(struct report *report, const struct explained *e) {
    char largest[NUMBER_BYTES];
    report_step(report, "Softmax", "wⱼ = exp(sⱼ − max s) / Σ exp(s − max s)", NULL);
    report_shape(report, "(1, %" PRId64 "), which sum to 1", e->steps->n);
    report_text(report,
                "max s = %s; minus that, no exp is above 1, so none overflows, and the weights are "
                "the same.",
                report_format(largest, e->steps->largest));
    bool *marks = mark_keys(e->steps, e->n_rows);
    report->failed |= !marks;
    if (marks) softmax_table(report, e, marks);
    free(marks);
}

/* w_j v_j of some keys, and of all others together. */
static void show_values(struct report *report, const struct explained *e) {
    const qkv_steps *s = e->steps;
    const int64_t d = e->head_dim_v, n = s->n <= 6 ? s->n : SHOWN_VALUES;
    report_step(report, "Mix the values", "o = Σ wⱼ vⱼ", NULL);
    report_shape(report, "(1, %" PRId64 ") · V (%" PRId64 ", %" PRId64 ") → (1, %" PRId64 ")", s->n,
                 s->n, d, d);
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

void explain_attention(struct report *report, const struct explained *e, const char *why) {
    show_scores(report, e);
    show_scale(report, e);
    show_cap(report, e);
    show_bias(report, e);
    report_step(report, "Mask", "sⱼ = −∞ for keys that must not be seen", NULL);
    report_shape(report, "(1, %" PRId64 ")", e->steps->n);
    report_text(report, "%s", why);
    show_softmax(report, e);
    show_values(report, e);
}

/* ---- Vectors without a model ----------------------------------------------------------------- */

qkv_status explain_compute(qkv_ctx *ctx, const struct vectors *x, qkv_steps **made,
                           qkv_error *error) {
    return qkv_inspect_vectors(ctx, x->n_keys, x->head_dim, x->head_dim_v, x->q, x->k, x->v,
                               x->query, x->causal, made, error);
}

void explain_vectors(struct report *report, const struct vectors *x, const qkv_steps *made,
                     int64_t n_rows) {
    const int64_t n_hidden = x->causal ? x->n_keys - x->query - 1 : 0;
    const struct explained e = { made,          x->head_dim_v, x->query_label,
                                 x->key_labels, n_hidden > 0,  n_rows };
    char why[200];
    if (n_hidden > 0)
        snprintf(why, sizeof why,
                 "Causal: a query sees itself and what came before it, so %" PRId64
                 " key%s after place %" PRId64 " become%s −∞, whose exp is 0.",
                 n_hidden, n_hidden == 1 ? "" : "s", x->query, n_hidden == 1 ? "s" : "");
    explain_attention(report, &e,
                      n_hidden > 0 ? why
                      : x->causal
                          ? "Causal: keys after the query become −∞. There are none."
                          : "Nothing is hidden. With --causal the keys after the query become −∞.");
}

void explain_check_step(struct report *report) {
    report_step(report, "Check", "these steps, in double precision, against the library, in floats",
                NULL);
}

void explain_check(struct report *report, const qkv_steps *made) {
    explain_check_step(report);
    report_text(report, "Largest difference: o %.1e, log Σ exp s %.1e.", made->y_error,
                made->lse_error);
}
