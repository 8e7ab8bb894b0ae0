/*
 * The result of `qkv lookup`: for each query the nearest keys, their weights, and the mean value.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lookup/lookup.h"

static const char *metric_name(const struct lookup *l) {
    return l->options->metric.value == LOOKUP_COSINE ? "cosine" : "q·k";
}

/*
 * Digits after the point in which all values of the table can be written, at least 2, at most 4; -1
 * if some are too large or too small for that.
 */
static int decimals_of(const qkv_table *t) {
    int decimals = 2;
    for (int64_t i = 0; i < t->n_rows * t->n_values; i++) {
        const double size = fabs((double)t->values[i]);
        if (size >= 1e7 || (size > 0 && size < 1e-3)) return -1;
        double power = 100;
        for (int d = 2; d < 4 && fabs(size * power - round(size * power)) > 1e-6 * size * power;) {
            power *= 10;
            if (++d > decimals) decimals = d;
        }
    }
    return decimals;
}

static void put_value(struct report *report, int decimals, double value) {
    if (decimals < 0)
        report_cell(report, "%.4g", value);
    else
        report_cell(report, "%.*f", decimals, value);
}

/* Names of the columns of values; the first ones that are shown. */
static void begin_table(struct report *report, const struct lookup *l, int64_t n_shown) {
    const qkv_table *t = l->table;
    char kinds[16] = "wnn";
    const char *names[12] = { "key", metric_name(l), "weight" };
    char *made[8] = { NULL };
    int n = 3;
    for (int64_t c = 0; c < n_shown; c++) {
        made[c] = t->names ? term_escape(t->names[c], strlen(t->names[c])) : NULL;
        names[n] = made[c] ? made[c] : n_shown == 1 ? "value" : "";
        kinds[n++] = 'n';
    }
    if (n_shown < t->n_values) {
        names[n] = "…";
        kinds[n++] = 'n';
    }
    names[n] = "";
    kinds[n++] = 'b';
    kinds[n] = '\0';
    report_table_named(report, kinds, names);
    for (int c = 0; c < 8; c++) free(made[c]);
}

static void put_values(struct report *report, const struct lookup *l, const float *values,
                       int64_t n_shown) {
    const int decimals = decimals_of(l->table);
    for (int64_t c = 0; c < n_shown; c++) put_value(report, decimals, (double)values[c]);
    if (n_shown < l->table->n_values) report_cell(report, "…");
}

static void put_key(struct report *report, const struct lookup *l, int64_t key) {
    report_word(report, l->table->keys[key], strlen(l->table->keys[key]));
}

/* What has no key of its own here. */
static void put_rest(struct report *report, const struct lookup *l, double weight,
                     int64_t n_shown) {
    const int64_t n = l->table->n_rows - l->n_top;
    if (n <= 0) return;
    report_row(report, false);
    report_cell(report, "%" PRId64 " other%s", n, n == 1 ? "" : "s");
    report_cell(report, " ");
    report_cell(report, "%.3f", weight > 0 ? weight : 0);
    for (int64_t c = 0; c < n_shown + (n_shown < l->table->n_values); c++) report_cell(report, " ");
    report_bar(report, weight > 0 ? weight : 0);
}

static void soft(struct report *report, const struct lookup *l, int64_t query, int64_t n_shown) {
    double rest = 1;
    begin_table(report, l, n_shown);
    for (int64_t i = 0; i < l->n_top; i++) {
        const int64_t key = l->top_keys[query * l->n_top + i];
        const double weight = (double)l->top_weights[query * l->n_top + i];
        if (key < 0) continue;
        rest -= weight;
        report_row(report, false);
        put_key(report, l, key);
        report_cell(report, "%.3f", lookup_similarity(l, query, key));
        report_cell(report, "%.3f", weight);
        put_values(report, l, l->table->values + key * l->table->n_values, n_shown);
        report_bar(report, weight);
    }
    put_rest(report, l, rest, n_shown);
    report_row(report, true);
    report_cell(report, "Σ weight · value");
    report_cell(report, " ");
    report_cell(report, "1.000");
    put_values(report, l, l->values + query * l->table->n_values, n_shown);
    /* as many keys with equal weights would be as undecided */
    const double n_alike = exp((double)l->entropy[query]);
    if (l->table->n_rows > 2 && n_alike > 0.8 * (double)l->table->n_rows)
        report_note(report, "No key stands out: the query is like none of them, and the value is "
                            "not far from the mean of the table.");
}

static void hard(struct report *report, const struct lookup *l, int64_t query, int64_t n_shown) {
    const int64_t equal = lookup_equal(l, query);
    const int64_t key = equal >= 0 ? equal : l->top_keys[query * l->n_top];
    begin_table(report, l, n_shown);
    report_row(report, true);
    put_key(report, l, key);
    report_cell(report, "%.3f", lookup_similarity(l, query, key));
    report_cell(report, "1");
    put_values(report, l, l->table->values + key * l->table->n_values, n_shown);
    report_note(report, equal >= 0
                            ? "A key that is equal: what a dictionary finds."
                            : "No key is equal, so a dictionary has nothing; this is the nearest.");
}

static void add_vectors(const struct lookup *l, struct caption *caption) {
    if (!l->own) {
        caption_add(caption, "%s vectors of the model %s",
                    l->options->sentence ? "sentence" : "word", l->session->info->source);
        return;
    }
    char *const shown = term_escape(l->options->vectors, strlen(l->options->vectors));
    caption_add(caption, "vectors of %.200s", shown ? shown : "a file");
    free(shown);
}

void lookup_source(const struct lookup *l, struct caption *caption) {
    caption_add(caption, "Points are ");
    add_vectors(l, caption);
    caption_add(caption, ".");
}

qkv_status lookup_print(const struct lookup *l, qkv_error *error) {
    enum { LEAST_VALUES = 3, MOST_VALUES = 6 };
    struct term term;
    struct report report;
    term_init(&term, stdout, &l->options->common);
    report_begin(&report, 0, false);
    const int64_t room = (term.width - 50) / 9;
    const int64_t shown = room < LEAST_VALUES  ? LEAST_VALUES
                          : room > MOST_VALUES ? MOST_VALUES
                                               : room;
    const int64_t n_shown = shown < l->table->n_values ? shown : l->table->n_values;
    for (int64_t i = 0; i < l->n_queries; i++) {
        if (i > 0) report_text(&report, "%s", "");
        report_heading_word(&report, "", l->queries[i], strlen(l->queries[i]));
        if (l->options->hard)
            hard(&report, l, i, n_shown);
        else
            soft(&report, l, i, n_shown);
    }
    report_text(&report, "%s", "");
    struct caption vectors = { "" };
    add_vectors(l, &vectors);
    if (l->options->hard)
        report_note(&report, "%s: of %s.", metric_name(l), vectors.text);
    else
        report_note(&report, "weight = softmax(%s / %.3g) over all %" PRId64 " keys, with %s.",
                    metric_name(l), l->temperature, l->table->n_rows, vectors.text);
    return report_end(&report, &term, error);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *value_json(const struct lookup *l, const float *values) {
    if (l->table->n_values == 1) return json_number((double)values[0]);
    return json_floats(l->table->n_values, values);
}

static json_t *key_json(const struct lookup *l, int64_t query, int64_t key, double weight) {
    return json_set(NULL, "key:t similarity:n weight:n value:o", l->table->keys[key],
                    lookup_similarity(l, query, key), weight,
                    value_json(l, l->table->values + key * l->table->n_values));
}

static json_t *result_json(const struct lookup *l, int64_t query) {
    const int64_t equal = lookup_equal(l, query), nearest = l->top_keys[query * l->n_top];
    const int64_t found = equal >= 0 ? equal : nearest;
    json_t *keys = json_array();
    if (l->options->hard)
        json_array_append_new(keys, key_json(l, query, found, 1));
    else
        for (int64_t i = 0; i < l->n_top; i++)
            json_array_append_new(keys, key_json(l, query, l->top_keys[query * l->n_top + i],
                                                 (double)l->top_weights[query * l->n_top + i]));
    const float *values = l->options->hard ? l->table->values + found * l->table->n_values
                                           : l->values + query * l->table->n_values;
    return json_set(NULL, "query:t value:o unknown:b equal:b keys:o", l->queries[query],
                    value_json(l, values), l->unknown[query], equal >= 0, keys);
}

qkv_status lookup_json(const struct lookup *l, json_t **json, qkv_error *error) {
    json_t *results = json_array();
    for (int64_t i = 0; i < l->n_queries; i++) json_array_append_new(results, result_json(l, i));
    *json = json_set(NULL, "metric:s temperature:n vectors:s results:o",
                     l->options->metric.value == LOOKUP_COSINE ? "cosine" : "dot",
                     l->options->hard ? NAN : l->temperature,
                     l->own                 ? "own"
                     : l->options->sentence ? "sentence"
                                            : "word",
                     results);
    return *json ? QKV_OK : text_no_memory(error);
}
