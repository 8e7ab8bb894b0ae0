/** Checks of a chart by the rules of qkv/picture.h. */
#include <math.h>

#include "core/options.h"
#include "files/encode.h"
#include "files/file.h"
#include "view/chart.h"
#include "view/series.h"

/* ---- Tables ---------------------------------------------------------------------------------- */

/*
 * The numbers of a chart as CSV (RFC 4180, lines end in LF): a line for each x, a column for each
 * series. A number has 9 digits; what is no number is an empty field.
 */

/* Quoted where it must be, and where a blank at an end might be dropped by a reader. */
static void add_text(qkvi_bytes *table, const char *text) {
    if (!text) return;
    const size_t n = strlen(text);
    const int blank = n > 0 && (strchr(" \t", text[0]) || strchr(" \t", text[n - 1]));
    const int plain = strpbrk(text, ",\"\r\n") == NULL && !blank;
    if (!plain) qkvi_bytes_text(table, "\"");
    for (const char *at = text; *at; at++) {
        if (*at == '"') qkvi_bytes_text(table, "\"");
        qkvi_bytes_add(table, at, 1);
    }
    if (!plain) qkvi_bytes_text(table, "\"");
}

static void add_number(qkvi_bytes *table, double x) {
    if (isfinite(x)) qkvi_json_real(table, x);
}

/* A series that has no name is called by its panel. */
static void add_heading(const qkv_chart *chart, qkvi_bytes *table) {
    add_text(table, chart->x_label && *chart->x_label ? chart->x_label : "x");
    if (chart->labels) qkvi_bytes_text(table, ",label");
    for (int64_t p = 0; p < chart->n_panels; p++) {
        const qkv_panel *const panel = &chart->panels[p];
        for (int64_t s = 0; s < panel->n_series; s++) {
            const char *const name = panel->series[s].name;
            qkvi_bytes_text(table, ",");
            add_text(table, name && *name ? name : panel->y_label ? panel->y_label : "y");
        }
    }
    qkvi_bytes_text(table, "\n");
}

/* The same numbers as a table: .csv. */
static qkv_status chart_table(const qkv_chart *chart, const char *path, qkv_error *error) {
    qkvi_bytes table = { 0 };
    add_heading(chart, &table);
    for (int64_t i = 0; i < chart->n; i++) {
        if (chart->x)
            add_number(&table, chart->x[i]);
        else
            qkvi_json_int(&table, i);
        if (chart->labels) qkvi_bytes_text(&table, ",");
        if (chart->labels) add_text(&table, chart->labels[i]);
        for (int64_t p = 0; p < chart->n_panels; p++) {
            for (int64_t s = 0; s < chart->panels[p].n_series; s++) {
                qkvi_bytes_text(&table, ",");
                add_number(&table, chart->panels[p].series[s].y[i]);
            }
        }
        qkvi_bytes_text(&table, "\n");
    }
    const qkv_status status =
        table.failed ? qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a table of %lld lines",
                                      (long long)chart->n)
                     : qkvi_file_save(path, table.data, table.n, error);
    qkvi_bytes_free(&table);
    return status;
}

enum { MAX_POINTS = 1 << 20, MAX_NUMBERS = 1 << 22 };

/* Copies of what a caller may have from another version of the header. */
typedef struct copies {
    qkv_panel panels[QKVI_MAX_PANELS];
    qkv_series series[QKVI_MAX_PANELS][QKVI_MAX_SERIES];
} copies;

static qkv_status take_panel(const qkv_chart *chart, int64_t p, copies *own, int64_t *n_series,
                             qkv_error *error) {
    qkv_panel *const panel = &own->panels[p];
    QKV_TRY(qkvi_element_read(panel, sizeof *panel, chart->panels, p, chart->panel_bytes, "panels",
                              error));
    if (panel->n_series < 1 || panel->n_series > QKVI_MAX_SERIES)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "panels[%lld].n_series = %lld is not in 1 ... %d", (long long)p,
                              (long long)panel->n_series, QKVI_MAX_SERIES);
    if (!panel->series)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "panels[%lld].series is NULL", (long long)p);
    for (int64_t s = 0; s < panel->n_series; s++) {
        qkv_series *const one = &own->series[p][s];
        QKV_TRY(qkvi_element_read(one, sizeof *one, panel->series, s, chart->series_bytes, "series",
                                  error));
        if (!one->y)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "panels[%lld].series[%lld].y is NULL",
                                  (long long)p, (long long)s);
        if ((unsigned)one->style > QKV_SERIES_BARS)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "panels[%lld].series[%lld].style = %d is not in 0 ... 2",
                                  (long long)p, (long long)s, (int)one->style);
    }
    panel->series = own->series[p];
    *n_series += panel->n_series;
    return QKV_OK;
}

static qkv_status check_x(const qkv_chart *chart, qkv_error *error) {
    for (int64_t i = 0; i < chart->n; i++) {
        if (!(fabs(chart->x[i]) <= 1e14))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "x[%lld] = %g is not within 1e14",
                                  (long long)i, chart->x[i]);
        if (i > 0 && chart->x[i] < chart->x[i - 1])
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "x[%lld] = %g is below x[%lld] = %g",
                                  (long long)i, chart->x[i], (long long)(i - 1), chart->x[i - 1]);
    }
    return QKV_OK;
}

static qkv_status check(qkv_chart *chart, const char *path, copies *own, qkv_error *error) {
    int64_t n_series = 0;
    if (!path || !chart->panels)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", path ? "panels" : "path");
    if (chart->n < 1 || chart->n > MAX_POINTS)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "n = %lld is not in 1 ... %d",
                              (long long)chart->n, MAX_POINTS);
    if (chart->n_panels < 1 || chart->n_panels > QKVI_MAX_PANELS)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "n_panels = %lld is not in 1 ... %d",
                              (long long)chart->n_panels, QKVI_MAX_PANELS);
    if (chart->labels && chart->x)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "labels together with x");
    if (chart->theme != QKV_THEME_LIGHT && chart->theme != QKV_THEME_DARK)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "theme = %d is neither 0 nor 1",
                              (int)chart->theme);
    QKV_TRY(qkvi_element_check(chart->panel_bytes, sizeof(qkv_panel), "panel_bytes", error));
    QKV_TRY(qkvi_element_check(chart->series_bytes, sizeof(qkv_series), "series_bytes", error));
    for (int64_t p = 0; p < chart->n_panels; p++)
        QKV_TRY(take_panel(chart, p, own, &n_series, error));
    chart->panels = own->panels;
    if (n_series * chart->n > MAX_NUMBERS)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%lld series of %lld are above the limit of %d",
                              (long long)n_series, (long long)chart->n, MAX_NUMBERS);
    return chart->x ? check_x(chart, error) : QKV_OK;
}

int qkvi_chart_is_table(const char *path) {
    const char *const dot = path ? strrchr(path, '.') : NULL;
    return dot && strcmp(dot, ".csv") == 0;
}

qkv_status qkv_picture_chart_write(const qkv_chart *given, const char *path, qkv_error *error) {
    qkv_chart chart = { 0 };
    copies own = { 0 };
    if (given == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "chart is NULL");
    QKV_TRY(qkvi_options_read(&chart, sizeof chart, given, "qkv_chart", error));
    QKV_TRY(check(&chart, path, &own, error));
    if (qkvi_chart_is_table(path)) return chart_table(&chart, path, error);
    qkvi_frame frame;
    qkv_status status = qkvi_frame_open(&frame, path, chart.theme, error);
    if (status == QKV_OK) status = qkvi_chart_draw(&frame, &chart, error);
    qkvi_frame_close(&frame);
    return status;
}
