/** What a chart may be: qkv/picture.h says it. */
#include <math.h>

#include "core/options.h"
#include "view/chart.h"
#include "view/series.h"

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

qkv_status qkv_view_chart_write(const qkv_chart *given, const char *path, qkv_error *error) {
    qkv_chart chart = { 0 };
    copies own = { 0 };
    if (given == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "chart is NULL");
    QKV_TRY(qkvi_options_read(&chart, sizeof chart, given, "qkv_chart", error));
    QKV_TRY(check(&chart, path, &own, error));
    if (qkvi_chart_is_table(path)) return qkvi_chart_table(&chart, path, error);
    qkvi_frame frame;
    qkv_status status = qkvi_frame_open(&frame, path, chart.theme, error);
    if (status == QKV_OK) status = qkvi_chart_draw(&frame, &chart, error);
    qkvi_frame_close(&frame);
    return status;
}
