/** Measuring and drawing text with pango. Sizes are in pixels. */
#ifndef QKVI_VIEW_TYPE_H
#define QKVI_VIEW_TYPE_H

#include <pango/pangocairo.h>

#include "files/encode.h"
#include "view/theme.h"

/**
 * A font map of our own, so that the caller's pango does not change. Metrics are not hinted, and
 * the language of text is English, so that pixels do not depend on the environment.
 */
typedef struct qkvi_type {
    PangoFontMap *map;
    PangoContext *context;
    qkvi_bytes *words; /* of an SVG: each line that is drawn is added as words (svg.c); nullable */
} qkvi_type;

qkv_status qkvi_type_open(qkvi_type *type, qkv_error *error);
void qkvi_type_close(qkvi_type *type);

/** The style of a line. If it is wider than max_width (> 0), an ellipsis replaces its middle. */
typedef struct qkvi_line {
    double size;
    int bold;
    double max_width;
    qkvi_rgb color;
    double align; /* x is its left end (0), its middle (0.5) or its right end (1) */
    double turn;  /* clockwise rotation around (x, y), in radians */
} qkvi_line;

double qkvi_line_width(const qkvi_type *type, const char *text, const qkvi_line *line);
/** y is the middle of capital letters. */
void qkvi_line_draw(const qkvi_type *type, cairo_t *cr, const char *text, const qkvi_line *line,
                    double x, double y);

/** Text wrapped at a width; (x, y) is its top left corner. */
double qkvi_paragraph_height(const qkvi_type *type, const char *text, const qkvi_line *style,
                             double width);
void qkvi_paragraph_draw(const qkvi_type *type, cairo_t *cr, const char *text,
                         const qkvi_line *style, double width, double x, double y);

#endif
