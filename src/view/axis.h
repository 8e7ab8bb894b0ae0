/** An axis of a chart: from where to where, and its numbers. */
#ifndef QKVI_VIEW_AXIS_H
#define QKVI_VIEW_AXIS_H

#include "files/base.h"

enum { QKVI_AXIS_MAX_TICKS = 64 };

typedef struct qkvi_tick {
    double value;
    int labelled; /* on a logarithmic axis that is long only some are */
} qkvi_tick;

typedef struct qkvi_axis {
    double low, high; /* of what is shown */
    int log, decimals, n_ticks;
    qkvi_tick ticks[QKVI_AXIS_MAX_TICKS]; /* ascending */
} qkvi_axis;

/**
 * Of values a, the finite ones below 1e14 in size, the least and the largest; low > high: there are
 * none.
 */
typedef struct qkvi_axis_range {
    double low, high;
} qkvi_axis_range;

#define QKVI_RANGE_NONE ((qkvi_axis_range){ INFINITY, -INFINITY })
void qkvi_range_add(qkvi_axis_range *range, double a);

/** From a round number to a round number, about n_ticks between; 0 ... 1 of an empty range. */
qkvi_axis qkvi_axis_linear(qkvi_axis_range range, int n_ticks);
/** From exactly low to high, which differ, ticks at multiples of least_step or more. */
qkvi_axis qkvi_axis_exact(double low, double high, double least_step, int n_ticks);
/** Powers of ten; 2 and 5 times them where there are few. Of a range above 0; 0.1 ... 1 of none. */
qkvi_axis qkvi_axis_log(qkvi_axis_range range);

/** Where a value lies, 0 ... 1 between the ends; NaN where it has no place. */
double qkvi_axis_place(const qkvi_axis *axis, double value);
/** The number of a tick. */
void qkvi_axis_number(const qkvi_axis *axis, double value, char *text, size_t text_bytes);

#endif
