/** Text: measured before there is a picture, drawn into one. Sizes are in pixels. */
#ifndef QKVI_VIEW_TYPE_H
#define QKVI_VIEW_TYPE_H

#include <pango/pangocairo.h>

#include "files/encode.h"
#include "view/theme.h"

/**
 * A font map of our own, so that no state of the host changes. Metrics are not hinted and text is
 * laid out as English unless its characters say otherwise: the same text has the same pixels
 * whatever the environment.
 */
typedef struct qkvi_type {
    PangoFontMap *map;
    PangoContext *context;
    qkvi_bytes *words; /* where each line that is drawn goes once more, for an SVG; nullable */
} qkvi_type;

qkv_status qkvi_type_open(qkvi_type *type, qkv_error *error);
void qkvi_type_close(qkvi_type *type);

/** One line. Wider than max_width (> 0), it loses its middle to an ellipsis. */
typedef struct qkvi_line {
    double size;
    int bold;
    double max_width;
    qkvi_rgb color;
    double align; /* 0: x is its left end, 0.5: its middle, 1: its right end */
    double turn;  /* around (x, y), clockwise, in radians */
} qkvi_line;

double qkvi_line_width(const qkvi_type *type, const char *text, const qkvi_line *line);
/** y is the middle of its capitals. */
void qkvi_line_draw(const qkvi_type *type, cairo_t *cr, const char *text, const qkvi_line *line,
                    double x, double y);

/** Lines wrapped at a width, from their top left corner. */
double qkvi_paragraph_height(const qkvi_type *type, const char *text, const qkvi_line *style,
                             double width);
void qkvi_paragraph_draw(const qkvi_type *type, cairo_t *cr, const char *text,
                         const qkvi_line *style, double width, double x, double y);

#endif
