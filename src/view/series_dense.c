/**
 * A series of more points than pixels: the mean of those that share a column of pixels as a line, and a band
 * from the smallest to the largest of them. A column without any value that has a place is a gap.
 */
#include <math.h>

#include "view/series.h"

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

static double column_of(const qkvi_field *field, int64_t i) {
    const double x = field->x ? field->x[i] : (double)i;
    return floor(field->width * qkvi_axis_place(&field->x_axis, x) / COLUMN);
}

/* The points from `first` on that share a column of pixels. Returns the first that does not. */
static int64_t gather(const qkvi_field *field, const qkv_series *series, int64_t first,
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
static void draw_columns(const qkvi_field *field, const struct column *columns, int n,
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

void qkvi_series_draw_dense(const qkvi_field *field, const qkv_series *series, int64_t index) {
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
