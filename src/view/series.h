/** Drawing series of a chart: lines, areas, bars, and their samples in the legend. */
#ifndef QKVI_VIEW_SERIES_H
#define QKVI_VIEW_SERIES_H

#include "view/axis.h"
#include "view/frame.h"

enum { QKVI_MAX_SERIES = 4 };

/** A panel on the sheet: its axes and its rectangle. */
typedef struct qkvi_plot_area {
    const qkvi_frame *frame;
    qkvi_axis x_axis, y_axis;
    double left, top, width, height;
    int64_t n;
    const double *x; /* NULL: 0, 1, … */
    int64_t n_bars;  /* series of bars, which share the width of a position */
} qkvi_plot_area;

qkvi_rgb qkvi_series_color(int64_t index, qkv_theme theme);

/** The number of values that a bar shows, as their largest; 1 if each value has a bar. */
int64_t qkvi_series_fold(int64_t n, double width);

/** Are n points so many that lines and areas are drawn as means with a band around them? */
int qkvi_series_is_dense(int64_t n);

/** The pixel of point i with this value; 0 if it has none. */
int qkvi_field_locate(const qkvi_plot_area *field, int64_t i, double value, double *x, double *y);
/** Set the colour of a series; the same with its dashes, for lines. */
void qkvi_series_set_color(const qkvi_frame *frame, int64_t index, double opacity);
void qkvi_series_set_pen(const qkvi_frame *frame, int64_t index, double width);

/** Draws a series. index: among the series of the panel; bar: among its series of bars. */
void qkvi_series_draw(const qkvi_plot_area *field, const qkv_series *series, int64_t index,
                      int64_t bar);

/** Draws a sample for the legend, from x to x + width, around y; marks are those of n points. */
void qkvi_series_sample(const qkvi_frame *frame, qkv_series_style style, int64_t index, int64_t n,
                        double x, double y, double width);

#endif
