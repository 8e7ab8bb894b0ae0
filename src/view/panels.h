/**
 * Maps as panels: a row for each layer, a column for each head, with their names at the left and
 * above.
 *
 *                 head 0    head 1    …
 *     layer 0     map       map
 *                 label     label
 */
#ifndef QKVI_VIEW_PANELS_H
#define QKVI_VIEW_PANELS_H

#include "view/frame.h"

enum { QKVI_PANELS_HEAD_BAND = 40 }; /* above the first row */

typedef struct qkvi_panels {
    int64_t n_layers, n_heads;
    double width, height;  /* of a map */
    double step_x, step_y; /* from a map to the next */
    double label_band;     /* below each map */
    double label_width;    /* the most that a label takes */
} qkvi_panels;

/** Room for the names of layers, at the left. */
double qkvi_panels_left(const qkvi_frame *frame, int64_t n_layers);

/** Draws the names of layers and heads around maps whose top left corner is (x, y). */
void qkvi_panels_names(const qkvi_frame *frame, const qkvi_panels *panels, double x, double y);

/** Draws a label, nullable, below a map at (left, top). MEMORY. */
qkv_status qkvi_panels_label(const qkvi_frame *frame, const qkvi_panels *panels, const char *label,
                             double left, double top, qkv_error *error);

#endif
