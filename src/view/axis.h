/** An axis of a chart: its range, and its ticks. */
#ifndef QKVI_VIEW_AXIS_H
#define QKVI_VIEW_AXIS_H

#include "files/base.h"

enum { QKVI_AXIS_MAX_TICKS = 64 };

typedef struct qkvi_tick {
    double value;
    int labelled; /* on a long logarithmic axis only some ticks have numbers */
} qkvi_tick;

typedef struct qkvi_axis {
    double low, high; /* its ends */
    int log, decimals, n_ticks;
    qkvi_tick ticks[QKVI_AXIS_MAX_TICKS]; /* ascending */
} qkvi_axis;

/**
 * The least and the largest of those values a that are finite and |a| < 1e14; low > high: there are
 * none.
 */
typedef struct qkvi_axis_range {
    double low, high;
} qkvi_axis_range;

#define QKVI_RANGE_NONE ((qkvi_axis_range){ INFINITY, -INFINITY })
void qkvi_range_add(qkvi_axis_range *range, double a);

/** A linear axis with about n_ticks ticks, whose ends are round; 0 ... 1 for an empty range. */
qkvi_axis qkvi_axis_linear(qkvi_axis_range range, int n_ticks);
/** A linear axis from exactly low to high, which differ; ticks are at least least_step apart. */
qkvi_axis qkvi_axis_exact(double low, double high, double least_step, int n_ticks);
/**
 * A logarithmic axis with ticks at powers of ten, or, if these are few, also at 2 and 5 times them.
 * The range must be above 0; 0.1 ... 1 for an empty range.
 */
qkvi_axis qkvi_axis_log(qkvi_axis_range range);

/**
 * The position of a value, 0 ... 1 between the ends; NaN if it has none (0 on a logarithmic axis).
 */
double qkvi_axis_place(const qkvi_axis *axis, double value);
/** Formats the number of a tick. */
void qkvi_axis_number(const qkvi_axis *axis, double value, char *text, size_t text_bytes);

#endif
