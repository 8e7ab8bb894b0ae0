/*
 * Attention without a model, in numbers that can be checked by hand: which "bank" is it, beside a
 * river? The library computes the same, and must agree.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "explain/explain.h"

enum { N = 5, D = 4, D_V = 2, BANK = 4 };

static const char *const words[N] = { "fish", "near", "the", "river", "bank" };
static const float q[N][D] = {
    { 0, 2, 0, 1 }, { 1, 0, 1, 0 }, { 0, 0, 0, 1 }, { 1, 0, 0, 2 }, { 2, 0, 2, 0 }
};
static const float k[N][D] = {
    { 1, 0, 1, 2 }, { 0, 1, 0, 0 }, { 0, 0, -1, 1 }, { 2, 0, 2, 1 }, { 1, 0, 0, 1 }
};
static const float v[N][D_V] = { { 1, 0 }, { 0, 0 }, { 0, 0 }, { 1, 0 }, { 1, 1 } };

static void show_vectors(struct report *report, const struct vectors *x) {
    report_step(report, "Queries, keys, values",
                "what a word asks for, what it offers, what it says",
                "Q (5, 4)   K (5, 4)   V (5, 2)");
    report_table(report, "wnnnnwnnnnwnn", "", "q 0", "1", "2", "3", " ", "k 0", "1", "2", "3", " ",
                 "water", "money");
    for (int j = 0; j < N; j++) {
        report_row(report, j == x->query);
        report_cell(report, "%s", words[j]);
        for (int c = 0; c < D; c++) report_cell(report, "%.0f", (double)q[j][c]);
        report_cell(report, " ");
        for (int c = 0; c < D; c++) report_cell(report, "%.0f", (double)k[j][c]);
        report_cell(report, " ");
        for (int c = 0; c < D_V; c++) report_cell(report, "%.0f", (double)v[j][c]);
    }
    const float *row = q[x->query];
    report_text(report,
                "%s asks with q = (%.0f, %.0f, %.0f, %.0f). The value of bank, (1, 1), says both "
                "water and money.",
                words[x->query], (double)row[0], (double)row[1], (double)row[2], (double)row[3]);
}

static void tell(struct report *report, const struct vectors *x, const qkv_steps *made) {
    char number[NUMBER_BYTES];
    report_title(report, "Attention in numbers that can be checked by hand");
    report_subtitle(
        report,
        "\"fish near the river bank\": one query, that of %s, and five keys. With a text, the "
        "same steps in a model: qkv explain \"I was watching the [MASK] when it opened.\"",
        words[x->query]);
    show_vectors(report, x);
    explain_vectors(report, x, made, N);
    if (x->query == BANK)
        report_text(
            report,
            "Beside a river, bank says water: %.2f, and hardly money: %.2f. The context decided.",
            made->o[0], made->o[1]);
    report_step(report, "Why minus max", "exp(s − max) / Σ exp(s − max) = exp(s) / Σ exp(s)", NULL);
    report_text(report,
                "In floats exp(1004) is %s, and scores near 1000 would be lost; 1004 − 1004 = 0, "
                "and the weights are the same as at 4.",
                report_format(number, (double)expf(1004.0f)));
    explain_check(report, made);
}

/* A word, or its place. */
static qkv_status find_query(const char *name, int64_t *query, qkv_error *error) {
    if (number_int(name, 0, N - 1, query)) return QKV_OK;
    for (*query = 0; *query < N; ++*query)
        if (strcmp(words[*query], name) == 0) return QKV_OK;
    return text_error(error, QKV_ERR_ARGUMENT,
                      "--query: '%.60s' is none of fish, near, the, river, bank, nor 0 to 4", name);
}

qkv_status explain_example(struct report *report, const struct explain *e, qkv_error *error) {
    struct vectors x = { .n_keys = N,
                         .head_dim = D,
                         .head_dim_v = D_V,
                         .k = k[0],
                         .v = v[0],
                         .key_labels = (char *const *)(uintptr_t)words,
                         .query = BANK,
                         .causal = e->options->causal };
    const char *query = e->options->query;
    qkv_steps *made = NULL;
    qkv_status status = query ? find_query(query, &x.query, error) : QKV_OK;
    if (status != QKV_OK) return status;
    x.q = q[x.query];
    x.query_label = words[x.query];
    status = explain_compute(e->ctx, &x, &made, error);
    if (status == QKV_OK) tell(report, &x, made);
    qkv_steps_free(made);
    return status;
}
