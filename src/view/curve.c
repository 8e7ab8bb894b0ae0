/**
 * A curve of y over x, such as the loss of a training run, with round numbers on both axes. A point
 * that is not finite leaves a gap.
 */
#include <math.h>

#include "core/options.h"
#include "view/axis.h"
#include "view/frame.h"

enum { WIDTH = 1280, HEIGHT = 620, AXIS_LABELS = 44, LABEL_GAP = 16, MAX_POINTS = 1 << 26 };

/* Of the points that have both coordinates. */
static qkvi_axis axis_of(const double *a, const double *other, int64_t n, int n_ticks) {
    qkvi_axis_range range = QKVI_RANGE_NONE;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(other[i])) qkvi_range_add(&range, a[i]);
    return qkvi_axis_linear(range, n_ticks);
}

static double numbers_width(const qkvi_frame *frame, const qkvi_axis *axis,
                            const qkvi_line *style) {
    double width = 0;
    for (int i = 0; i < axis->n_ticks; i++) {
        char number[40];
        qkvi_axis_number(axis, axis->ticks[i].value, number, sizeof number);
        width = fmax(width, qkvi_line_width(&frame->type, number, style));
    }
    return ceil(width);
}

static void draw_axes(const qkvi_frame *frame, const qkvi_axis *x_axis, const qkvi_axis *y_axis,
                      double x, double y) {
    char number[40];
    qkvi_line style = { .size = 19, .color = frame->palette->faint, .align = 1 };
    for (int i = 0; i < y_axis->n_ticks; i++) {
        const double value = y_axis->ticks[i].value;
        const double at = floor(y + HEIGHT * (1 - qkvi_axis_place(y_axis, value)));
        qkvi_frame_fill(frame, i ? frame->palette->line : frame->palette->faint, x, at, WIDTH, 2);
        qkvi_axis_number(y_axis, value, number, sizeof number);
        qkvi_line_draw(&frame->type, frame->cr, number, &style, x - LABEL_GAP, at + 1);
    }
    style.align = 0.5;
    for (int i = 0; i < x_axis->n_ticks; i++) {
        const double value = x_axis->ticks[i].value;
        const double at = floor(x + WIDTH * qkvi_axis_place(x_axis, value));
        qkvi_frame_fill(frame, frame->palette->faint, at, y + HEIGHT, 2, 8);
        qkvi_axis_number(x_axis, value, number, sizeof number);
        qkvi_line_draw(&frame->type, frame->cr, number, &style, at + 1, y + HEIGHT + 26);
    }
}

static void draw_line(const qkvi_frame *frame, const qkv_curve *curve, const qkvi_axis *x_axis,
                      const qkvi_axis *y_axis, double x, double y) {
    const qkvi_rgb color = frame->palette->mark;
    cairo_t *cr = frame->cr;
    int open = 0;
    cairo_set_source_rgb(cr, color.r / 255.0, color.g / 255.0, color.b / 255.0);
    cairo_set_line_width(cr, curve->n > 2 * WIDTH ? 2 : 3.5);
    cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_cap(cr, CAIRO_LINE_CAP_ROUND);
    for (int64_t i = 0; i < curve->n; i++) {
        const double px = x + WIDTH * qkvi_axis_place(x_axis, curve->x[i]);
        const double py = y + HEIGHT * (1 - qkvi_axis_place(y_axis, curve->y[i]));
        if (!(fabs(px) < 1e6 && fabs(py) < 1e6)) {
            open = 0;
            continue;
        }
        if (!open) cairo_move_to(cr, px, py);
        cairo_line_to(cr, px, py); /* a point alone is a dot, by its round cap */
        open = 1;
    }
    cairo_stroke(cr);
}

/* The last point, with its number. */
static void draw_last(const qkvi_frame *frame, const qkv_curve *curve, const qkvi_axis *x_axis,
                      const qkvi_axis *y_axis, double x, double y) {
    int64_t i = curve->n - 1;
    while (i >= 0 && !(isfinite(curve->x[i]) && isfinite(curve->y[i]))) i--;
    if (i < 0) return;
    char number[40];
    const double px = x + WIDTH * qkvi_axis_place(x_axis, curve->x[i]);
    const double py = y + HEIGHT * (1 - qkvi_axis_place(y_axis, curve->y[i]));
    if (!(fabs(px) < 1e6 && fabs(py) < 1e6)) return;
    cairo_arc(frame->cr, px, py, 6, 0, 2 * M_PI);
    cairo_fill(frame->cr);
    const qkvi_line style = { .size = 21, .bold = 1, .color = frame->palette->mark };
    qkvi_number(number, sizeof number, curve->y[i],
                y_axis->decimals < 8 ? y_axis->decimals + 2 : 9);
    qkvi_line_draw(&frame->type, frame->cr, number, &style, px + 16, py);
}

/* Axis names: of y above its numbers, of x below the right end of its own. */
static qkv_status draw_axis_names(const qkvi_frame *frame, const qkv_curve *curve, double x,
                                  double y) {
    char *x_name = qkvi_shown(curve->x_label), *y_name = qkvi_shown(curve->y_label);
    qkvi_line style = { .size = 20, .color = frame->palette->text, .max_width = WIDTH };
    if (x_name && y_name) {
        qkvi_line_draw(&frame->type, frame->cr, y_name, &style, frame->x, y - 38);
        style.align = 1;
        qkvi_line_draw(&frame->type, frame->cr, x_name, &style, x + WIDTH, y + HEIGHT + 62);
    }
    const int done = x_name && y_name;
    free(x_name);
    free(y_name);
    return done ? QKV_OK : QKV_ERR_MEMORY;
}

static qkv_status draw(qkvi_frame *frame, const qkv_curve *curve, qkv_error *error) {
    enum { NAME_BAND = 56, RIGHT = 96 };
    const qkvi_line numbers = { .size = 19 };
    const qkvi_axis x_axis = axis_of(curve->x, curve->y, curve->n, 8);
    const qkvi_axis y_axis = axis_of(curve->y, curve->x, curve->n, 6);
    const double left = numbers_width(frame, &y_axis, &numbers) + LABEL_GAP;
    QKV_TRY(qkvi_frame_begin(frame, curve->title, curve->caption, NULL, left + WIDTH + RIGHT,
                             NAME_BAND + HEIGHT + 2 * AXIS_LABELS, error));
    const double x = ceil(frame->x + left), y = ceil(frame->y + NAME_BAND);
    draw_axes(frame, &x_axis, &y_axis, x, y);
    draw_line(frame, curve, &x_axis, &y_axis, x, y);
    draw_last(frame, curve, &x_axis, &y_axis, x, y);
    if (draw_axis_names(frame, curve, x, y) != QKV_OK)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the axis names");
    return qkvi_frame_save(frame, error);
}

static qkv_status check(const qkv_curve *curve, const char *path, qkv_error *error) {
    if (path == NULL || curve->x == NULL || curve->y == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !path       ? "path"
                              : !curve->x ? "x"
                                          : "y");
    if (curve->n < 1 || curve->n > MAX_POINTS)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "n = %lld is not in 1 ... %d",
                              (long long)curve->n, MAX_POINTS);
    return QKV_OK;
}

qkv_status qkv_picture_curve_write(const qkv_curve *given, const char *path, qkv_error *error) {
    qkv_curve curve = { 0 };
    if (given == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "curve is NULL");
    QKV_TRY(qkvi_options_read(&curve, sizeof curve, given, "qkv_curve", error));
    QKV_TRY(check(&curve, path, error));
    qkvi_frame frame;
    qkv_status status = qkvi_frame_open(&frame, path, curve.theme, error);
    if (status == QKV_OK) status = draw(&frame, &curve, error);
    qkvi_frame_close(&frame);
    return status;
}
