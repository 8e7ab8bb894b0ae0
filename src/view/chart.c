/**
 * A chart: panels one below the other on one x axis, each with its y axis, its series and a legend.
 *
 *     y label                          sample name  sample name
 *     numbers | field
 *             |
 *     ...     + numbers or labels of positions
 *                                                        x label
 */
#include <math.h>

#include "core/options.h"
#include "view/chart.h"
#include "view/series.h"

enum {
    WIDTH = 1280,
    BAND = 62, /* of names above a field */
    PANEL_GAP = 30,
    NUMBER_GAP = 16,
    RIGHT = 24,
    MOST_LABELS = 64,
    LABEL_SIZE = 19,
    LABEL_WIDTH = 150,
    SAMPLE = 52
};

static const double tilt = M_PI / 3; /* of labels that have no room side by side */

struct drawing {
    qkvi_frame *frame;
    const qkv_chart *chart;
    qkvi_axis x_axis, y_axes[QKVI_MAX_PANELS];
    int has_labels, tilted;
    double left, height, below; /* of fields: numbers on the left, height, what is below the last */
};

/* ---- Measuring ------------------------------------------------------------------------------- */

static int has_style(const qkv_panel *panel, qkv_series_style style) {
    for (int64_t s = 0; s < panel->n_series; s++)
        if (panel->series[s].style == style) return 1;
    return 0;
}

static qkvi_axis measure_x(const qkv_chart *chart) {
    qkvi_axis_range range = QKVI_RANGE_NONE;
    for (int64_t i = 0; i < chart->n && (chart->x || chart->log_x); i++) {
        const double x = chart->x ? chart->x[i] : (double)i;
        if (!chart->log_x || x > 0) qkvi_range_add(&range, x);
    }
    if (chart->log_x) return qkvi_axis_log(range);
    if (!chart->x) return qkvi_axis_exact(-0.5, (double)chart->n - 0.5, 1, 8);
    const double span = range.high - range.low, margin = 0.015 * span;
    if (!(span > 1e-9 * fabs(range.high))) return qkvi_axis_linear(range, 8);
    return qkvi_axis_exact(range.low - margin, range.high + margin, 0, 8);
}

static qkvi_axis measure_y(const qkv_chart *chart, const qkv_panel *panel) {
    qkvi_axis_range range = QKVI_RANGE_NONE;
    const int stands_on_zero =
        panel->from_zero || has_style(panel, QKV_SERIES_AREA) || has_style(panel, QKV_SERIES_BARS);
    if (stands_on_zero && !panel->log_y) qkvi_range_add(&range, 0);
    for (int64_t s = 0; s < panel->n_series; s++)
        for (int64_t i = 0; i < chart->n; i++)
            if (!panel->log_y || panel->series[s].y[i] > 0)
                qkvi_range_add(&range, panel->series[s].y[i]);
    return panel->log_y ? qkvi_axis_log(range)
                        : qkvi_axis_linear(range, chart->n_panels > 2 ? 4 : 6);
}

static qkvi_line label_style(const struct drawing *d) {
    return (qkvi_line){ .size = LABEL_SIZE,
                        .color = d->frame->palette->text,
                        .max_width = LABEL_WIDTH,
                        .align = d->tilted ? 1 : 0.5,
                        .turn = d->tilted ? -tilt : 0 };
}

/* The widest label; -1 without memory. */
static double measure_labels(const struct drawing *d) {
    const qkvi_line style = { .size = LABEL_SIZE };
    double widest = 0;
    for (int64_t i = 0; i < d->chart->n; i++) {
        char *const text = qkvi_shown(d->chart->labels[i]);
        if (!text) return -1;
        widest = fmax(widest, qkvi_line_width(&d->frame->type, text, &style));
        free(text);
    }
    return fmin(widest, LABEL_WIDTH);
}

static double numbers_width(const qkvi_frame *frame, const qkvi_axis *axis) {
    const qkvi_line style = { .size = LABEL_SIZE };
    double width = 0;
    for (int i = 0; i < axis->n_ticks; i++) {
        char number[48];
        qkvi_axis_number(axis, axis->ticks[i].value, number, sizeof number);
        width = fmax(width, qkvi_line_width(&frame->type, number, &style));
    }
    return ceil(width);
}

static qkv_status measure(struct drawing *d, qkv_error *error) {
    const qkv_chart *const chart = d->chart;
    static const double heights[QKVI_MAX_PANELS] = { 560, 340, 260, 220 };
    d->x_axis = measure_x(chart);
    d->height = heights[chart->n_panels - 1];
    for (int64_t p = 0; p < chart->n_panels; p++) {
        d->y_axes[p] = measure_y(chart, &chart->panels[p]);
        d->left = fmax(d->left, numbers_width(d->frame, &d->y_axes[p]) + NUMBER_GAP);
    }
    d->has_labels = chart->labels && !chart->x && !chart->log_x && chart->n <= MOST_LABELS;
    d->below = 2 * LABEL_SIZE;
    if (d->has_labels) {
        const double widest = measure_labels(d);
        if (widest < 0) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the labels");
        d->tilted = widest + 14 > WIDTH / (double)chart->n;
        if (d->tilted) d->below = ceil(widest * sin(tilt)) + 2 * LABEL_SIZE;
    }
    d->below += 44; /* the name of the axis */
    return QKV_OK;
}

/* ---- What is said below ---------------------------------------------------------------------- */

static int64_t count_without_place(const struct drawing *d) {
    int64_t n = 0;
    for (int64_t p = 0; p < d->chart->n_panels; p++) {
        const qkv_panel *const panel = &d->chart->panels[p];
        for (int64_t s = 0; s < panel->n_series; s++) {
            for (int64_t i = 0; i < d->chart->n; i++) {
                const double x = d->chart->x ? d->chart->x[i] : (double)i;
                n += isfinite(panel->series[s].y[i]) &&
                     ((panel->log_y && !(panel->series[s].y[i] > 0)) ||
                      (d->chart->log_x && !(x > 0)));
            }
        }
    }
    return n;
}

static void make_notes(const struct drawing *d, char *notes, size_t bytes) {
    const int64_t hidden = count_without_place(d), fold = qkvi_series_fold(d->chart->n, WIDTH);
    int bars = 0, lines = 0, used = 0;
    for (int64_t p = 0; p < d->chart->n_panels; p++) {
        bars |= has_style(&d->chart->panels[p], QKV_SERIES_BARS);
        lines |= has_style(&d->chart->panels[p], QKV_SERIES_LINE) ||
                 has_style(&d->chart->panels[p], QKV_SERIES_AREA);
    }
    notes[0] = '\0';
    if (hidden > 0)
        used = snprintf(notes, bytes,
                        "%lld values that are not above 0 have no place on a logarithmic axis. ",
                        (long long)hidden);
    if (lines && qkvi_series_is_dense(d->chart->n))
        used += snprintf(notes + used, bytes - (size_t)used,
                         "Points share pixels: a line is their mean, its band reaches from the "
                         "smallest to the largest. ");
    if (bars && fold > 1)
        snprintf(notes + used, bytes - (size_t)used, "A bar is the largest of %lld.",
                 (long long)fold);
}

/* ---- Drawing --------------------------------------------------------------------------------- */

/* The line at 0 is that of the axis; without one it is the lowest. */
static void draw_y_axis(const qkvi_plot_area *field) {
    const qkvi_frame *const frame = field->frame;
    const int has_zero = !field->y_axis.log && field->y_axis.low <= 0 && field->y_axis.high >= 0;
    const qkvi_line style = { .size = LABEL_SIZE, .color = frame->palette->faint, .align = 1 };
    for (int i = 0; i < field->y_axis.n_ticks; i++) {
        const qkvi_tick *const tick = &field->y_axis.ticks[i];
        const double place = qkvi_axis_place(&field->y_axis, tick->value);
        const double at = floor(field->top + field->height * (1 - place));
        const int is_axis =
            has_zero ? fabs(tick->value) < 1e-9 * (field->y_axis.high - field->y_axis.low) : i == 0;
        char number[48];
        qkvi_frame_fill(frame, is_axis ? frame->palette->faint : frame->palette->line, field->left,
                        at, field->width, 2);
        qkvi_axis_number(&field->y_axis, tick->value, number, sizeof number);
        if (tick->labelled)
            qkvi_line_draw(&frame->type, frame->cr, number, &style, field->left - NUMBER_GAP,
                           at + 1);
    }
}

/* Where x is on both sides of 0, a line tells them apart. */
static void draw_x_ticks(const qkvi_plot_area *field, int numbers) {
    const qkvi_frame *const frame = field->frame;
    const double zero = qkvi_axis_place(&field->x_axis, 0);
    if (field->x && zero > 0 && zero < 1)
        qkvi_frame_fill(frame, frame->palette->line, floor(field->left + field->width * zero),
                        field->top, 2, field->height);
    const qkvi_line style = { .size = LABEL_SIZE, .color = frame->palette->faint, .align = 0.5 };
    for (int i = 0; i < field->x_axis.n_ticks; i++) {
        const qkvi_tick *const tick = &field->x_axis.ticks[i];
        const double at =
            floor(field->left + field->width * qkvi_axis_place(&field->x_axis, tick->value));
        char number[48];
        qkvi_frame_fill(frame, frame->palette->faint, at, field->top + field->height, 2, 8);
        qkvi_axis_number(&field->x_axis, tick->value, number, sizeof number);
        if (numbers && tick->labelled)
            qkvi_line_draw(&frame->type, frame->cr, number, &style, at + 1,
                           field->top + field->height + 26);
    }
}

static qkv_status draw_labels(const struct drawing *d, const qkvi_plot_area *field) {
    const qkvi_line style = label_style(d);
    for (int64_t i = 0; i < field->n; i++) {
        char *const text = qkvi_shown(d->chart->labels[i]);
        if (!text) return QKV_ERR_MEMORY;
        const double x = field->left + field->width * qkvi_axis_place(&field->x_axis, (double)i);
        qkvi_line_draw(&d->frame->type, d->frame->cr, text, &style, x + (d->tilted ? 4 : 0),
                       field->top + field->height + (d->tilted ? 18 : 26));
        free(text);
    }
    return QKV_OK;
}

/* The y label on the left; of several series samples and names on the right. */
static qkv_status draw_names(const struct drawing *d, const qkv_panel *panel,
                             const qkvi_plot_area *field) {
    const qkvi_type *const type = &d->frame->type;
    const double y = field->top - 34;
    const double room = (WIDTH - 300.0) / (double)panel->n_series - SAMPLE - 48;
    qkvi_line style = { .size = 20, .color = d->frame->palette->text, .max_width = WIDTH };
    char *const label = qkvi_shown(panel->y_label);
    if (!label) return QKV_ERR_MEMORY;
    qkvi_line_draw(type, d->frame->cr, label, &style, d->frame->x, y);
    free(label);
    style.max_width = room;
    double right = field->left + field->width;
    for (int64_t s = panel->n_series - 1; s >= 0 && panel->n_series > 1; s--) {
        const qkv_series *const series = &panel->series[s];
        char *const name = qkvi_shown(series->name);
        if (!name) return QKV_ERR_MEMORY;
        const double width = fmin(qkvi_line_width(type, name, &style), room);
        if (*name) {
            qkvi_line_draw(type, d->frame->cr, name, &style, right - width, y);
            qkvi_series_sample(d->frame, series->style, s, field->n, right - width - SAMPLE - 12, y,
                               SAMPLE);
            right -= width + SAMPLE + 44;
        }
        free(name);
    }
    return QKV_OK;
}

static qkv_status draw_panel(const struct drawing *d, int64_t p, double top) {
    const qkv_chart *const chart = d->chart;
    const qkv_panel *const panel = &chart->panels[p];
    const int last = p == chart->n_panels - 1;
    qkvi_plot_area field = { .frame = d->frame,
                             .x_axis = d->x_axis,
                             .y_axis = d->y_axes[p],
                             .left = ceil(d->frame->x + d->left),
                             .top = top,
                             .width = WIDTH,
                             .height = d->height,
                             .n = chart->n,
                             .x = chart->x };
    int64_t bar = 0;
    for (int64_t s = 0; s < panel->n_series; s++)
        field.n_bars += panel->series[s].style == QKV_SERIES_BARS;
    draw_y_axis(&field);
    if (!d->has_labels) draw_x_ticks(&field, last);
    for (int64_t s = 0; s < panel->n_series; s++) {
        qkvi_series_draw(&field, &panel->series[s], s, bar);
        bar += panel->series[s].style == QKV_SERIES_BARS;
    }
    QKV_TRY(draw_names(d, panel, &field));
    return d->has_labels && last ? draw_labels(d, &field) : QKV_OK;
}

static qkv_status draw_x_name(const struct drawing *d, double bottom) {
    const qkvi_line style = {
        .size = 20, .color = d->frame->palette->text, .max_width = WIDTH, .align = 1
    };
    char *const name = qkvi_shown(d->chart->x_label);
    if (!name) return QKV_ERR_MEMORY;
    qkvi_line_draw(&d->frame->type, d->frame->cr, name, &style, ceil(d->frame->x + d->left) + WIDTH,
                   bottom + d->below - 12);
    free(name);
    return QKV_OK;
}

qkv_status qkvi_chart_draw(qkvi_frame *frame, const qkv_chart *chart, qkv_error *error) {
    struct drawing d = { .frame = frame, .chart = chart };
    char notes[320];
    QKV_TRY(measure(&d, error));
    make_notes(&d, notes, sizeof notes);
    const double n = (double)chart->n_panels, step = BAND + d.height + PANEL_GAP;
    QKV_TRY(qkvi_frame_begin(frame, chart->title, chart->caption, notes, d.left + WIDTH + RIGHT,
                             n * step - PANEL_GAP + d.below, error));
    qkv_status status = QKV_OK;
    for (int64_t p = 0; p < chart->n_panels && status == QKV_OK; p++)
        status = draw_panel(&d, p, ceil(frame->y + (double)p * step + BAND));
    if (status == QKV_OK) status = draw_x_name(&d, ceil(frame->y + n * step - PANEL_GAP));
    if (status != QKV_OK) return qkvi_error_set(error, status, "no memory for the names");
    return qkvi_frame_save(frame, error);
}
