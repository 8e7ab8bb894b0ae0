/* `qkv explain --scores 4,-1,2.1`: softmax alone, of scores that are given. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explain/explain.h"

enum { MOST_SCORES = 100, N_TEMPERATURES = 3 };
static const double temperatures[N_TEMPERATURES] = { 0.5, 1, 2 };

struct scores {
    int64_t n, best; /* best: the first of the greatest */
    double s[MOST_SCORES], exponentials[MOST_SCORES], weights[MOST_SCORES];
    double cooled[N_TEMPERATURES][MOST_SCORES]; /* softmax(s / T) */
    double sum, entropy;
    double error; /* how far the library's weights are from these */
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
        double *const score = &x->s[x->n++];
        if (strcmp(word, "-inf") == 0)
            *score = -INFINITY;
        else if (n > 31 || !args_real(word, score) || fabs(*score) > (double)FLT_MAX)
            return text_error(error, QKV_ERR_ARGUMENT,
                              "--scores: '%s', number %" PRId64
                              ", is no number that a float can hold, nor -inf",
                              word, x->n - 1);
        *score = (double)(float)*score;
        text += end;
        if (!*text) return QKV_OK;
    }
}

/* ---- Computing ------------------------------------------------------------------------------- */

/* exp((s - most) / t) and their sum. */
static double exponentials_of(const struct scores *x, double t, double *to) {
    double sum = 0;
    for (int64_t j = 0; j < x->n; j++) sum += to[j] = exp((x->s[j] - x->s[x->best]) / t);
    return sum;
}

static qkv_status compute(struct scores *x, qkv_error *error) {
    x->best = 0;
    for (int64_t j = 1; j < x->n; j++)
        if (x->s[j] > x->s[x->best]) x->best = j;
    if (x->s[x->best] == -INFINITY)
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--scores: all are -inf, so no key is seen: there are no weights");
    x->sum = exponentials_of(x, 1, x->exponentials);
    x->entropy = 0;
    for (int64_t j = 0; j < x->n; j++) {
        x->weights[j] = x->exponentials[j] / x->sum;
        if (x->weights[j] > 0) x->entropy -= x->weights[j] * log(x->weights[j]);
    }
    for (int t = 0; t < N_TEMPERATURES; t++) {
        const double sum = exponentials_of(x, temperatures[t], x->cooled[t]);
        for (int64_t j = 0; j < x->n; j++) x->cooled[t][j] /= sum;
    }
    return QKV_OK;
}

/* The library's weights: the scores are added to products of nothing, as a mask. */
static qkv_status ask_library(qkv_ctx *ctx, struct scores *x, qkv_error *error) {
    const float nothing[MOST_SCORES] = { 0 };
    float added[MOST_SCORES], weights[MOST_SCORES], lse, o = 0;
    qkv_attention_desc d;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, 1, x->n, 1, 0);
    d.flags = QKV_SET_MASK;
    d.mask = added;
    d.mask_type = QKV_MASK_F32;
    d.mask_stride[3] = 1;
    for (int64_t j = 0; j < x->n; j++) added[j] = (float)x->s[j];
    qkv_status status = qkv_attention_forward(ctx, &d, nothing, nothing, nothing, &o, &lse, NULL);
    if (status == QKV_OK)
        status = qkv_attention_weights(ctx, &d, nothing, nothing, &lse, 0, 0, 0, 1, 0, x->n,
                                       weights, x->n, NULL);
    if (status != QKV_OK) return text_error(error, status, "%s", qkv_ctx_message(ctx));
    x->error = 0;
    for (int64_t j = 0; j < x->n; j++)
        x->error = fmax(x->error, fabs((double)weights[j] - x->weights[j]));
    return QKV_OK;
}

static qkv_status make(const struct explain *e, struct scores *x, qkv_error *error) {
    qkv_status status = read_scores(e->options->scores, x, error);
    if (status == QKV_OK) status = compute(x, error);
    if (status == QKV_OK) status = ask_library(e->ctx, x, error);
    return status;
}

/* ---- Showing --------------------------------------------------------------------------------- */

static void show_softmax(struct report *report, const struct scores *x) {
    char most[NUMBER_BYTES];
    report_step(report, "Softmax", "wⱼ = exp(sⱼ − max s) / Σ exp(s − max s)", NULL);
    report_text(report,
                "max s = %s; minus that, no exp is above 1, so none overflows, and the weights are "
                "the same.",
                report_format(most, x->s[x->best]));
    report_table(report, "nnnnnb", "", "score", "−max", "exp", "weight", "");
    for (int64_t j = 0; j < x->n; j++) {
        report_row(report, j == x->best);
        report_cell(report, "%" PRId64, j);
        report_number(report, x->s[j]);
        report_number(report, x->s[j] - x->s[x->best]);
        report_number(report, x->exponentials[j]);
        report_number(report, x->weights[j]);
        report_bar(report, x->weights[j]);
    }
    report_row(report, false);
    report_cell(report, "Σ");
    report_cell(report, " ");
    report_cell(report, " ");
    report_number(report, x->sum);
    report_number(report, 1);
}

static void show_temperatures(struct report *report, const struct scores *x) {
    report_step(report, "Temperature", "softmax(s / T)", NULL);
    report_table(report, "nnnnn", "", "score", "T = 0.5", "T = 1", "T = 2");
    for (int64_t j = 0; j < x->n; j++) {
        report_row(report, j == x->best);
        report_cell(report, "%" PRId64, j);
        report_number(report, x->s[j]);
        for (int t = 0; t < N_TEMPERATURES; t++) report_number(report, x->cooled[t][j]);
    }
    report_note(report, "Below 1 the greatest score takes more; above 1 the weights come nearer to "
                        "each other. 1/√d is such a factor.");
}

qkv_status explain_scores(struct report *report, const struct explain *e, qkv_error *error) {
    struct scores x;
    char lse[NUMBER_BYTES], entropy[NUMBER_BYTES], most[NUMBER_BYTES];
    const qkv_status status = make(e, &x, error);
    if (status != QKV_OK) return status;
    report_title(report, "Softmax of %" PRId64 " score%s", x.n, x.n == 1 ? "" : "s");
    report_subtitle(report, "Weights that sum to 1, as attention makes them of the products of a "
                            "query with its keys. With vectors: qkv explain.");
    show_softmax(report, &x);
    show_temperatures(report, &x);
    report_step(report, "Two numbers of the row", "lse = log Σ exp s     H = −Σ w log w", NULL);
    report_text(report, "lse = %s, with which wⱼ = exp(sⱼ − lse).",
                report_format(lse, x.s[x.best] + log(x.sum)));
    report_text(report,
                "H = %s nats, of at most log %" PRId64 " = %s, where all weights are equal.",
                report_format(entropy, x.entropy), x.n, report_format(most, log((double)x.n)));
    explain_check_step(report);
    report_text(report, "Largest difference of a weight: %.1e.", x.error);
    return QKV_OK;
}

qkv_status explain_scores_json(const struct explain *e, json_t **json, qkv_error *error) {
    struct scores x;
    const qkv_status status = make(e, &x, error);
    if (status != QKV_OK) return status;
    json_t *scores = json_array(), *weights = json_array();
    for (int64_t j = 0; j < x.n; j++) {
        json_array_append_new(scores, json_number(x.s[j]));
        json_array_append_new(weights, json_number(x.weights[j]));
    }
    *json = json_set(NULL, "scores:o weights:o lse:n entropy:n difference:n", scores, weights,
                     x.s[x.best] + log(x.sum), x.entropy, x.error);
    return *json ? QKV_OK : text_no_memory(error);
}
