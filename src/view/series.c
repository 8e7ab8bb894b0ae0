/**
 * Series differ in colour, in dashes and, if points are few, in the shape of their marks.
 *
 * Colours: blue, vermilion, black, light blue and yellow of Okabe and Ito (2008), wine and pink of
 * Tol (2018). Each has a contrast of at least 3 to the page, and any two of a theme are at least 29
 * apart in CIE Lab, also as seen by readers without one kind of cones
 * (tests/view/test_view_charts.c computes both).
 */
#include "view/series.h"

#include <math.h>

#include "core/ints.h"

/* ---- Dense series ---------------------------------------------------------------------------- */

/*
 * A series of more points than pixels: the mean of those that share a column of pixels as a line,
 * and a band from the smallest to the largest of them. A column without any value that has a place
 * is a gap.
 */

enum {
    MOST_POINTS = 1280, /* that are drawn one by one: the width of a field */
    COLUMN = 4,         /* pixels */
    MOST_COLUMNS = 336  /* of 1280 pixels, and some */
};

int qkvi_series_is_dense(int64_t n) { return n > MOST_POINTS; }

/* In pixels; mean is NaN where no point has a place. Floats: all of a field are on the stack. */
struct column {
    float x, low, high, mean;
};

static double column_of(const qkvi_plot_area *field, int64_t i) {
    const double x = field->x ? field->x[i] : (double)i;
    return floor(field->width * qkvi_axis_place(&field->x_axis, x) / COLUMN);
}

/* The points from `first` on that share a column of pixels. Returns the first that does not. */
static int64_t gather(const qkvi_plot_area *field, const qkv_series *series, int64_t first,
                      struct column *column) {
    const double shared = column_of(field, first);
    double x, y, sum = 0, from = 0, to = 0, low = -INFINITY, high = INFINITY, mean = NAN;
    int64_t i = first, n = 0;
    do {
        if (!qkvi_field_locate(field, i, series->y[i], &x, &y)) continue;
        if (n++ == 0) from = x;
        to = x;
        low = fmax(low, y); /* y goes down */
        high = fmin(high, y);
        sum += series->y[i];
    } while (++i < field->n && column_of(field, i) == shared);
    if (n > 0) (void)qkvi_field_locate(field, first, sum / (double)n, &x, &mean);
    *column = (struct column){ (float)((from + to) / 2), (float)low, (float)high, (float)mean };
    return i;
}

/* The edge of the band keeps what is but one column wide to be seen. */
static void draw_columns(const qkvi_plot_area *field, const struct column *columns, int n,
                         int64_t index) {
    cairo_t *const cr = field->frame->cr;
    cairo_new_path(cr);
    for (int c = 0; c < n; c++) cairo_line_to(cr, (double)columns[c].x, (double)columns[c].high);
    for (int c = n - 1; c >= 0; c--)
        cairo_line_to(cr, (double)columns[c].x, (double)columns[c].low);
    cairo_close_path(cr);
    qkvi_series_set_color(field->frame, index, 0.3);
    cairo_fill_preserve(cr);
    qkvi_series_set_color(field->frame, index, 0.6);
    cairo_set_line_width(cr, 1.5);
    cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
    cairo_stroke(cr);
    cairo_new_path(cr);
    for (int c = 0; c < n; c++) cairo_line_to(cr, (double)columns[c].x, (double)columns[c].mean);
    if (n == 1) cairo_line_to(cr, (double)columns[0].x, (double)columns[0].mean);
    qkvi_series_set_pen(field->frame, index, 2.5);
    cairo_stroke(cr);
    cairo_set_dash(cr, NULL, 0, 0);
}

static void series_draw_dense(const qkvi_plot_area *field, const qkv_series *series,
                              int64_t index) {
    struct column columns[MOST_COLUMNS];
    for (int64_t at = 0; at < field->n;) {
        int n = 0;
        while (at < field->n && n < MOST_COLUMNS) {
            at = gather(field, series, at, &columns[n]);
            if (isnan(columns[n].mean)) break;
            n++;
        }
        if (n > 0) draw_columns(field, columns, n, index);
    }
}

enum { MOST_MARKS = 72, THINNEST_BAR = 2 };

static const qkvi_rgb colors[2][QKVI_MAX_SERIES] = {
    { { 0x00, 0x72, 0xB2 }, { 0xD5, 0x5E, 0x00 }, { 0x88, 0x22, 0x55 }, { 0x00, 0x00, 0x00 } },
    { { 0x56, 0xB4, 0xE9 }, { 0xD5, 0x5E, 0x00 }, { 0xF0, 0xE4, 0x42 }, { 0xEE, 0x99, 0xAA } },
};

/* In pixels: drawn, left out, drawn, … */
static const struct {
    int n;
    double lengths[4];
} dashes[QKVI_MAX_SERIES] = {
    { 0, { 0 } }, { 2, { 16, 11 } }, { 2, { 1, 9 } }, { 4, { 18, 10, 1, 10 } }
};

qkvi_rgb qkvi_series_color(int64_t index, qkv_theme theme) {
    return colors[theme == QKV_THEME_DARK][index % QKVI_MAX_SERIES];
}

int64_t qkvi_series_fold(int64_t n, double width) {
    return qkvi_max_i64(1, qkvi_ceil_div(n * THINNEST_BAR, (int64_t)width));
}

void qkvi_series_set_color(const qkvi_frame *frame, int64_t index, double opacity) {
    const qkvi_rgb color = qkvi_series_color(index, frame->theme);
    cairo_set_source_rgba(frame->cr, color.r / 255.0, color.g / 255.0, color.b / 255.0, opacity);
}

void qkvi_series_set_pen(const qkvi_frame *frame, int64_t index, double width) {
    qkvi_series_set_color(frame, index, 1);
    cairo_set_line_width(frame->cr, width);
    cairo_set_line_join(frame->cr, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_cap(frame->cr, CAIRO_LINE_CAP_ROUND);
    cairo_set_dash(frame->cr, dashes[index].lengths, dashes[index].n, 0);
}

static uint8_t mix(uint8_t own, uint8_t page, double part) {
    return (uint8_t)floor(part * own + (1 - part) * page + 0.5);
}

static qkvi_rgb paler(const qkvi_frame *frame, int64_t index, double part) {
    const qkvi_rgb own = qkvi_series_color(index, frame->theme), page = frame->palette->page;
    return (qkvi_rgb){ mix(own.r, page.r, part), mix(own.g, page.g, part),
                       mix(own.b, page.b, part) };
}

/* A disc, a square of whole pixels, a triangle or a diamond, of about one area. */
static void draw_mark(const qkvi_frame *frame, int64_t index, double x, double y) {
    static const double radii[QKVI_MAX_SERIES] = { 6, 0, 8.5, 8 };
    static const double first_angle[QKVI_MAX_SERIES] = { 0, 0, -M_PI / 2, 0 };
    const double r = radii[index];
    if (index == 1) {
        qkvi_frame_fill(frame, qkvi_series_color(index, frame->theme), floor(x - 5), floor(y - 5),
                        11, 11);
        return;
    }
    const int corners = index == 2 ? 3 : 4;
    cairo_new_path(frame->cr);
    if (index == 0) cairo_arc(frame->cr, x, y, r, 0, 2 * M_PI);
    for (int c = 0; c < corners && index > 0; c++) {
        const double angle = first_angle[index] + 2 * M_PI * c / corners;
        cairo_line_to(frame->cr, x + r * cos(angle), y + r * sin(angle));
    }
    cairo_close_path(frame->cr);
    qkvi_series_set_color(frame, index, 1);
    cairo_fill(frame->cr);
}

/* ---- In the field ---------------------------------------------------------------------------- */

int qkvi_field_locate(const qkvi_plot_area *field, int64_t i, double value, double *x, double *y) {
    const double at = field->x ? field->x[i] : (double)i;
    *x = field->left + field->width * qkvi_axis_place(&field->x_axis, at);
    *y = field->top + field->height * (1 - qkvi_axis_place(&field->y_axis, value));
    return fabs(*x) < 1e6 && fabs(*y) < 1e6;
}

/* Where areas and bars stand. */
static double base_of(const qkvi_plot_area *field) {
    const double zero = field->y_axis.log ? 0 : qkvi_axis_place(&field->y_axis, 0);
    return field->top + field->height * (1 - fmin(fmax(zero, 0), 1));
}

/* From `first` on to before the next gap: a line, or with a base a closed area. */
static void trace(const qkvi_plot_area *field, const qkv_series *series, int64_t first, int64_t end,
                  double base) {
    double x = 0, y = 0, from = 0;
    cairo_t *const cr = field->frame->cr;
    cairo_new_path(cr);
    for (int64_t i = first; i < end; i++) {
        (void)qkvi_field_locate(field, i, series->y[i], &x, &y);
        if (i == first) from = x;
        if (i == first) cairo_move_to(cr, x, y);
        cairo_line_to(cr, x, y); /* a point alone is a dot, by its round cap */
    }
    if (isnan(base)) return;
    cairo_line_to(cr, x, base);
    cairo_line_to(cr, from, base);
    cairo_close_path(cr);
}

static void draw_runs(const qkvi_plot_area *field, const qkv_series *series, int64_t index) {
    double x, y;
    for (int64_t first = 0; first < field->n;) {
        int64_t end = first;
        while (end < field->n && qkvi_field_locate(field, end, series->y[end], &x, &y)) end++;
        if (end > first && series->style == QKV_SERIES_AREA) {
            trace(field, series, first, end, base_of(field));
            qkvi_series_set_color(field->frame, index, 0.25);
            cairo_fill(field->frame->cr);
        }
        if (end > first) {
            trace(field, series, first, end, NAN);
            qkvi_series_set_pen(field->frame, index, 3.5);
            cairo_stroke(field->frame->cr);
        }
        first = end + 1;
    }
    cairo_set_dash(field->frame->cr, NULL, 0, 0);
    for (int64_t i = 0; i < field->n && field->n <= MOST_MARKS; i++)
        if (qkvi_field_locate(field, i, series->y[i], &x, &y)) draw_mark(field->frame, index, x, y);
}

/* Of whole pixels. Its edge is in the full colour, what it holds the paler the later its series. */
static void draw_bar(const qkvi_frame *frame, int64_t index, double x, double y, double width,
                     double height) {
    const double left = floor(x + 0.5), top = floor(y + 0.5);
    const double wide = fmax(1, floor(x + width + 0.5) - left);
    const double high = fmax(1, floor(y + height + 0.5) - top), edge = wide >= 8 ? 2 : 0;
    qkvi_frame_fill(frame, qkvi_series_color(index, frame->theme), left, top, wide, high);
    if (edge > 0 && high > 2 * edge)
        qkvi_frame_fill(frame, paler(frame, index, 0.9 - 0.28 * (double)index), left + edge,
                        top + edge, wide - 2 * edge, high - 2 * edge);
}

/* The largest of a fold; NaN if none has a place. */
static double highest(const qkv_series *series, int64_t first, int64_t end) {
    double value = NAN;
    for (int64_t i = first; i < end; i++)
        if (isfinite(series->y[i]) && !(series->y[i] <= value)) value = series->y[i];
    return value;
}

static void draw_bars(const qkvi_plot_area *field, const qkv_series *series, int64_t index,
                      int64_t bar) {
    const int64_t fold = qkvi_series_fold(field->n, field->width);
    const double slot = field->width / (double)field->n * (double)fold;
    const double room = slot >= 6 ? 0.76 * slot : slot, width = room / (double)field->n_bars;
    const double base = base_of(field);
    for (int64_t i = 0; i < field->n; i += fold) {
        const int64_t end = qkvi_min_i64(i + fold, field->n);
        double x, y, last, unused;
        if (!qkvi_field_locate(field, i, highest(series, i, end), &x, &y)) continue;
        (void)qkvi_field_locate(field, end - 1, 1, &last, &unused);
        const double left = (x + last) / 2 - room / 2 + width * (double)bar;
        draw_bar(field->frame, index, left, fmin(y, base), width, fmax(fabs(base - y), 1));
    }
}

void qkvi_series_draw(const qkvi_plot_area *field, const qkv_series *series, int64_t index,
                      int64_t bar) {
    if (series->style == QKV_SERIES_BARS)
        draw_bars(field, series, index, bar);
    else if (qkvi_series_is_dense(field->n))
        series_draw_dense(field, series, index);
    else
        draw_runs(field, series, index);
}

void qkvi_series_sample(const qkvi_frame *frame, qkv_series_style style, int64_t index, int64_t n,
                        double x, double y, double width) {
    cairo_t *const cr = frame->cr;
    if (style == QKV_SERIES_BARS) {
        draw_bar(frame, index, x + width / 2 - 10, y - 10, 20, 20);
        return;
    }
    if (style == QKV_SERIES_AREA)
        qkvi_frame_fill(frame, paler(frame, index, 0.25), floor(x), floor(y), width, 11);
    qkvi_series_set_pen(frame, index, 3.5);
    cairo_move_to(cr, x, y);
    cairo_line_to(cr, x + width, y);
    cairo_stroke(cr);
    cairo_set_dash(cr, NULL, 0, 0);
    if (n <= MOST_MARKS) draw_mark(frame, index, x + width / 2, y);
}
