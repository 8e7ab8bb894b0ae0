/* Pictures of `qkv explain`: sinusoids as a heat map, saturation as curves over d. */
#include <inttypes.h>
#include <stdlib.h>

#include "explain/explain.h"
#include <qkv/picture.h>

static qkv_theme theme_of(const struct explain_options *options) {
    return options->common.theme.set ? (qkv_theme)options->common.theme.value : QKV_THEME_LIGHT;
}

/* ---- Sinusoids ------------------------------------------------------------------------------- */

/* Sines to the left, cosines to the right. */
static qkv_status draw_sinusoids(const struct explain_options *options, const struct sinusoids *s,
                                 float *cells, char (*names)[32], const char **labels,
                                 qkv_error *error) {
    const int64_t sines = (s->dim + 1) / 2;
    for (int64_t p = 0; p < s->length; p++) {
        for (int64_t c = 0; c < s->dim; c++)
            cells[p * s->dim + c / 2 + c % 2 * sines] = s->table[p * s->dim + c];
        snprintf(names[p], sizeof names[p], "%" PRId64, p);
        labels[p] = names[p];
    }
    for (int64_t c = 0; c < s->dim; c++) {
        const int64_t at = s->length + c / 2 + c % 2 * sines;
        snprintf(names[at], sizeof names[at], "%s %" PRId64, c % 2 ? "cos" : "sin", c);
        labels[at] = c / 2 % 4 ? NULL : names[at]; /* every eighth channel is named */
    }
    char caption[400];
    snprintf(
        caption, sizeof caption,
        "x[p][2i] = sin(p / 10000^(2i/d)), x[p][2i+1] = cos(p / 10000^(2i/d)), positions p = 0 "
        "to %" PRId64 ", d = %" PRId64
        " channels: on the left the sines of channels 0, 2, 4 …, on the right the cosines of "
        "channels 1, 3, 5 …",
        s->length - 1, s->dim);
    const qkv_heatmap map = { .struct_size = sizeof map,
                              .n_rows = s->length,
                              .n_cols = s->dim,
                              .weights = cells,
                              .row_labels = labels,
                              .col_labels = labels + s->length,
                              .title = "Sinusoidal positions",
                              .caption = caption,
                              .theme = theme_of(options),
                              .low = -1,
                              .high = 1,
                              .row_axis = "position",
                              .col_axis = "channel" };
    return qkv_view_heatmap_write(&map, options->out, error);
}

qkv_status explain_positions_picture(const struct explain_options *options, qkv_error *error) {
    struct sinusoids s;
    qkv_status status = explain_sinusoids(options, &s, error);
    const size_t n = (size_t)(s.length + s.dim);
    float *cells = malloc((size_t)(s.length * s.dim) * sizeof(*cells));
    char(*names)[32] = malloc(n * sizeof(*names));
    const char **labels = malloc(n * sizeof(*labels));
    if (status == QKV_OK && cells && names && labels)
        status = draw_sinusoids(options, &s, cells, names, labels, error);
    else if (status == QKV_OK)
        status = text_error(error, QKV_ERR_MEMORY, "out of memory");
    free(s.table);
    free(cells);
    free(names);
    free(labels);
    return status;
}

/* ---- Saturation ------------------------------------------------------------------------------ */

qkv_status explain_scale_picture(qkv_ctx *ctx, const struct explain_options *options,
                                 qkv_error *error) {
    qkv_saturation rows[EXPLAIN_DIMS][2];
    double x[EXPLAIN_DIMS], y[3][2][EXPLAIN_DIMS];
    char caption[600];
    const uint64_t seed = (uint64_t)options->seed.value;
    const qkv_status status = explain_measure(ctx, seed, rows, error);
    if (status != QKV_OK) return status;
    for (int i = 0; i < EXPLAIN_DIMS; i++) {
        x[i] = (double)rows[i][0].head_dim;
        for (int scaled = 0; scaled < 2; scaled++) {
            y[0][1 - scaled][i] = rows[i][scaled].entropy;
            y[1][1 - scaled][i] = rows[i][scaled].largest;
            y[2][1 - scaled][i] = rows[i][scaled].gradient;
        }
    }
    snprintf(
        caption, sizeof caption,
        "Softmax over dot products of random vectors with components of mean 0 and variance 1 "
        "(seed %" PRIu64 "), %d keys: mean entropy −Σ w ln w of a row of weights (at most ln %d), "
        "mean largest weight, and mean Frobenius norm of its gradient ∂w/∂s = diag(w) − w wᵀ. "
        "Without the factor the scores have variance d, softmax saturates, and hardly anything "
        "is learned through it.",
        seed, EXPLAIN_KEYS, EXPLAIN_KEYS);
    static const char *const measures[3] = { "entropy, nats", "largest weight",
                                             "norm of the gradient" };
    qkv_series series[3][2];
    qkv_panel panels[3];
    for (int i = 0; i < 3; i++) {
        series[i][0] = (qkv_series){ .name = "softmax(q·k / √d)", .y = y[i][0] };
        series[i][1] = (qkv_series){ .name = "softmax(q·k)", .y = y[i][1] };
        panels[i] = (qkv_panel){
            .y_label = measures[i], .from_zero = 1, .n_series = 2, .series = series[i]
        };
    }
    const qkv_chart chart = { .struct_size = sizeof chart,
                              .n = EXPLAIN_DIMS,
                              .x = x,
                              .x_label = "d",
                              .log_x = 1,
                              .n_panels = 3,
                              .panels = panels,
                              .panel_bytes = sizeof(qkv_panel),
                              .series_bytes = sizeof(qkv_series),
                              .title = "Why scores are divided by √d",
                              .caption = caption,
                              .theme = theme_of(options) };
    return qkv_view_chart_write(&chart, options->out, error);
}
