/*
 * `qkv explain --no-scale`: what softmax does to dot products of random vectors as they get longer,
 * without the factor 1/√d and with it.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "explain/explain.h"
#include <qkv/picture.h>

enum { DIMS = 6, QUERIES = 32, KEYS = 64 };

/* For d = 4, 16 … 4096. */
struct saturation {
    qkv_saturation rows[DIMS][2]; /* without the factor and with it */
    uint64_t seed;
};

static qkv_status measure(const struct explain *e, struct saturation *s, qkv_error *error) {
    qkv_status status = QKV_OK;
    int64_t d = 4;
    s->seed = (uint64_t)e->options->seed.value;
    for (int i = 0; status == QKV_OK && i < DIMS; i++, d *= 4) {
        const int64_t n_draws = d < 32 ? 512 : d < 1024 ? 16384 / d : 16;
        status = qkv_inspect_saturation(e->ctx, d, n_draws, QUERIES, KEYS, s->seed, s->rows[i],
                                        sizeof s->rows[i][0], error);
    }
    return status;
}

static void tables(struct report *report, const qkv_saturation (*rows)[2]) {
    static const char *const titles[2] = { "Without 1/√d", "With 1/√d" };
    static const char *const formulas[2] = { "w = softmax(q·k)", "w = softmax(q·k / √d)" };
    const double most = log((double)rows[0][0].n_keys);
    for (int scaled = 0; scaled < 2; scaled++) {
        report_step(report, titles[scaled], formulas[scaled], NULL);
        report_table(report, "nnnnnb", "d", "variance", "largest", "gradient", "entropy", "");
        for (int i = 0; i < DIMS; i++) {
            const qkv_saturation *row = &rows[i][scaled];
            report_row(report, false);
            report_cell(report, "%" PRId64, row->head_dim);
            report_cell(report, scaled ? "%.3f" : "%.1f", row->score_variance);
            report_cell(report, "%.3f", row->largest);
            report_cell(report, "%.4f", row->gradient);
            report_cell(report, "%.3f", row->entropy);
            report_bar(report, row->entropy / most);
        }
    }
}

static void tell(struct report *report, const struct saturation *s) {
    const qkv_saturation(*rows)[2] = s->rows;
    const qkv_saturation *last = rows[DIMS - 1];
    report_title(report, "Why scores are divided by √d");
    report_subtitle(report,
                    "Random queries before %d random keys, independent components of mean 0 and "
                    "variance 1 (seed %" PRIu64 "). A dot product of d of them has variance d.",
                    KEYS, s->seed);
    tables(report, rows);
    report_text(
        report,
        "At d = %" PRId64 " softmax without the factor puts %.1f %% of a row on one key, and "
        "its gradient is %.4f: hardly anything can be learned through it. With the factor it is "
        "%.4f, as for any d.",
        last[0].head_dim, 100 * last[0].largest, last[0].gradient, last[1].gradient);
    report_note(
        report,
        "variance: of all scores. largest: mean of the largest weight of a row. gradient: mean "
        "Frobenius norm of ∂w/∂s = diag(w) − w wᵀ. entropy: mean of −Σ w ln w; a full bar is "
        "ln %d = %.3f, all keys alike. Computed by the library's attention, with the identity "
        "as values, so that its output is w; %" PRId64 " rows of weights at d = %" PRId64
        ", %" PRId64 " at d = %" PRId64 ".",
        KEYS, log((double)KEYS), rows[0][0].n_draws * rows[0][0].n_queries, rows[0][0].head_dim,
        last[0].n_draws * last[0].n_queries, last[0].head_dim);
}

qkv_status explain_scale(struct report *report, const struct explain *e, qkv_error *error) {
    struct saturation s;
    const qkv_status status = measure(e, &s, error);
    if (status == QKV_OK) tell(report, &s);
    return status;
}

qkv_status explain_scale_json(const struct explain *e, json_t **json, qkv_error *error) {
    struct saturation s;
    const qkv_status status = measure(e, &s, error);
    if (status != QKV_OK) return status;
    json_t *list = json_array();
    for (int i = 0; i < 2 * DIMS; i++) {
        const qkv_saturation *row = &s.rows[i / 2][i % 2];
        json_array_append_new(
            list,
            json_set(NULL, "d:i scale:n variance:n entropy:n largest:n gradient:n", row->head_dim,
                     row->scale, row->score_variance, row->entropy, row->largest, row->gradient));
    }
    *json = json_set(NULL, "seed:i n_keys:i rows:o", s.seed, (int64_t)KEYS, list);
    return *json ? QKV_OK : text_no_memory(error);
}

/* ---- As a picture ---------------------------------------------------------------------------- */

qkv_status explain_scale_picture(const struct explain *e, qkv_error *error) {
    struct saturation s;
    static const struct {
        const char *name;
        size_t field; /* of qkv_saturation */
    } measures[3] = { { "entropy, nats", offsetof(qkv_saturation, entropy) },
                      { "largest weight", offsetof(qkv_saturation, largest) },
                      { "norm of the gradient", offsetof(qkv_saturation, gradient) } };
    static const char *const names[2] = { "softmax(q·k / √d)", "softmax(q·k)" };
    double x[DIMS], y[3][2][DIMS];
    qkv_series series[3][2];
    qkv_panel panels[3];
    char caption[600];
    const qkv_status status = measure(e, &s, error);
    if (status != QKV_OK) return status;
    for (int i = 0; i < DIMS; i++) x[i] = (double)s.rows[i][0].head_dim;
    for (int m = 0; m < 3; m++) {
        for (int line = 0; line < 2; line++) {
            for (int i = 0; i < DIMS; i++)
                memcpy(&y[m][line][i], (const char *)&s.rows[i][1 - line] + measures[m].field,
                       sizeof(double));
            series[m][line] = (qkv_series){ .name = names[line], .y = y[m][line] };
        }
        panels[m] = (qkv_panel){
            .y_label = measures[m].name, .from_zero = 1, .n_series = 2, .series = series[m]
        };
    }
    snprintf(
        caption, sizeof caption,
        "Softmax over dot products of random vectors with components of mean 0 and variance 1 "
        "(seed %" PRIu64 "), %d keys: mean entropy −Σ w ln w of a row of weights (at most ln %d), "
        "mean largest weight, and mean Frobenius norm of its gradient ∂w/∂s = diag(w) − w wᵀ. "
        "Without the factor the scores have variance d, softmax saturates, and hardly anything "
        "is learned through it.",
        s.seed, KEYS, KEYS);
    const qkv_chart chart = { .struct_size = sizeof chart,
                              .n = DIMS,
                              .x = x,
                              .x_label = "d",
                              .log_x = 1,
                              .n_panels = 3,
                              .panels = panels,
                              .panel_bytes = sizeof(qkv_panel),
                              .series_bytes = sizeof(qkv_series),
                              .title = "Why scores are divided by √d",
                              .caption = caption,
                              .theme = (qkv_theme)e->options->common.theme.value };
    return qkv_picture_chart_write(&chart, e->options->out, error);
}
