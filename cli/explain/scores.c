/*
 * `qkv explain --scores 4,-1,2.1`: softmax of given scores. They become attention: a query of one
 * channel, 1 (1 / T at temperature T), keys of one channel, the scores, and the rows of the
 * identity as values, so that the output is the weights.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "explain/explain.h"

enum { MOST_SCORES = 100, N_TEMPERATURES = 3, USUAL = 1 };
static const double most_score = 1e38; /* the double of it is a float */
static const float temperatures[N_TEMPERATURES] = { 0.5f, 1, 2 };

struct scores {
    int64_t n;
    float s[MOST_SCORES];
    qkv_steps *at[N_TEMPERATURES]; /* at[USUAL]: of the scores as they are */
    double entropy;
};

/* ---- Reading --------------------------------------------------------------------------------- */

/* "4, -1, 2.1", with -inf for a key that is hidden. */
static qkv_status read_scores(const char *text, struct scores *x, qkv_error *error) {
    for (x->n = 0;; text++) {
        char word[32];
        const size_t end = strcspn(text, ","), from = strspn(text, " ");
        size_t n = end > from ? end - from : 0;
        while (n > 0 && text[from + n - 1] == ' ') n--;
        if (x->n == MOST_SCORES)
            return text_error(error, QKV_ERR_LIMIT, "--scores: more than %d", (int)MOST_SCORES);
        snprintf(word, sizeof word, "%.*s", (int)(n < 31 ? n : 31), text + from);
        double score = -INFINITY;
        if (strcmp(word, "-inf") != 0 &&
            (n > 31 || !number_real(word, &score) || fabs(score) > most_score))
            return text_error(error, QKV_ERR_ARGUMENT,
                              "--scores: '%s', number %" PRId64
                              ", is no number from -1e38 to 1e38, nor -inf",
                              word, x->n);
        x->s[x->n++] = (float)score;
        text += end;
        if (!*text) return QKV_OK;
    }
}

/* ---- Computing ------------------------------------------------------------------------------- */

static void scores_free(struct scores *x) {
    for (int t = 0; t < N_TEMPERATURES; t++) qkv_steps_free(x->at[t]);
}

static qkv_status compute(qkv_ctx *ctx, struct scores *x, qkv_error *error) {
    float *const identity = calloc((size_t)(x->n * x->n), sizeof *identity);
    if (!identity) return text_no_memory(error);
    for (int64_t j = 0; j < x->n; j++) identity[j * (x->n + 1)] = 1;
    qkv_status status = QKV_OK;
    for (int t = 0; status == QKV_OK && t < N_TEMPERATURES; t++) {
        const float q = 1 / temperatures[t];
        status =
            qkv_inspect_vectors(ctx, x->n, 1, x->n, &q, x->s, identity, 0, 0, &x->at[t], error);
    }
    free(identity);
    if (status != QKV_OK) return status;
    const double *const weights = x->at[USUAL]->weights;
    x->entropy = 0;
    for (int64_t j = 0; j < x->n; j++)
        if (weights[j] > 0) x->entropy -= weights[j] * log(weights[j]);
    return QKV_OK;
}

static qkv_status make(const struct explain *e, struct scores *x, qkv_error *error) {
    *x = (struct scores){ 0 };
    const qkv_status status = read_scores(e->options->scores, x, error);
    bool seen = false;
    if (status != QKV_OK) return status;
    for (int64_t j = 0; j < x->n; j++) seen |= x->s[j] > -INFINITY;
    if (!seen)
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--scores: all are -inf, so no key is seen: there are no weights");
    return compute(e->ctx, x, error);
}

static double lse_of(const struct scores *x) {
    return x->at[USUAL]->largest + log(x->at[USUAL]->sum);
}

/* ---- Showing --------------------------------------------------------------------------------- */

static void show_softmax(struct report *report, const struct scores *x) {
    const qkv_steps *const s = x->at[USUAL];
    const int64_t best = explain_best_key(s);
    char most[NUMBER_BYTES];
    report_step(report, "Softmax", "wⱼ = exp(sⱼ − max s) / Σ exp(s − max s)", NULL);
    report_text(report,
                "max s = %s; minus that, no exp is above 1, so none overflows, and the weights are "
                "the same.",
                report_format(most, s->largest));
    report_table(report, "nnnnnb", "", "score", "−max", "exp", "weight", "");
    for (int64_t j = 0; j < x->n; j++) {
        report_row(report, j == best);
        report_cell(report, "%" PRId64, j);
        report_number(report, s->scores[j]);
        report_number(report, s->shifted[j]);
        report_number(report, s->exponentials[j]);
        report_number(report, s->weights[j]);
        report_bar(report, s->weights[j]);
    }
    report_row(report, false);
    report_cell(report, "Σ");
    report_cell(report, " ");
    report_cell(report, " ");
    report_number(report, s->sum);
    report_number(report, 1);
}

static void show_temperatures(struct report *report, const struct scores *x) {
    const int64_t best = explain_best_key(x->at[USUAL]);
    report_step(report, "Temperature", "softmax(s / T)", NULL);
    report_table(report, "nnnnn", "", "score", "T = 0.5", "T = 1", "T = 2");
    for (int64_t j = 0; j < x->n; j++) {
        report_row(report, j == best);
        report_cell(report, "%" PRId64, j);
        report_number(report, (double)x->s[j]);
        for (int t = 0; t < N_TEMPERATURES; t++) report_number(report, x->at[t]->weights[j]);
    }
    report_note(report, "Below 1 the greatest score takes more; above 1 the weights come nearer to "
                        "each other. 1/√d is such a factor.");
}

qkv_status explain_scores(struct report *report, const struct explain *e, qkv_error *error) {
    struct scores x;
    char lse[NUMBER_BYTES], entropy[NUMBER_BYTES], most[NUMBER_BYTES];
    const qkv_status status = make(e, &x, error);
    if (status == QKV_OK) {
        report_title(report, "Softmax of %" PRId64 " score%s", x.n, x.n == 1 ? "" : "s");
        report_subtitle(report, "Weights that sum to 1, as attention makes them of the products of "
                                "a query with its keys. With vectors: qkv explain.");
        show_softmax(report, &x);
        show_temperatures(report, &x);
        report_step(report, "Two numbers of the row", "lse = log Σ exp s     H = −Σ w log w", NULL);
        report_text(report, "lse = %s, with which wⱼ = exp(sⱼ − lse).",
                    report_format(lse, lse_of(&x)));
        report_text(report,
                    "H = %s nats, of at most log %" PRId64 " = %s, where all weights are equal.",
                    report_format(entropy, x.entropy), x.n, report_format(most, log((double)x.n)));
        explain_check_step(report);
        report_text(report, "Largest difference: weights %.1e, log Σ exp s %.1e.",
                    x.at[USUAL]->y_error, x.at[USUAL]->lse_error);
    }
    scores_free(&x);
    return status;
}

qkv_status explain_scores_json(const struct explain *e, json_t **json, qkv_error *error) {
    struct scores x;
    qkv_status status = make(e, &x, error);
    if (status == QKV_OK) {
        *json = json_set(NULL, "scores:o weights:o lse:n entropy:n difference:n",
                         json_floats(x.n, x.s), json_doubles(x.n, x.at[USUAL]->weights), lse_of(&x),
                         x.entropy, x.at[USUAL]->y_error);
        if (!*json) status = text_no_memory(error);
    }
    scores_free(&x);
    return status;
}
