/** The sheet that a picture is drawn on, and its file: PNG, SVG or PDF. */
#ifndef QKVI_VIEW_SHEET_H
#define QKVI_VIEW_SHEET_H

#include <cairo.h>

#include "model/store/bytes.h"
#include "view/theme.h"

typedef enum qkvi_format { QKVI_PNG, QKVI_SVG, QKVI_PDF } qkvi_format;

/** The format that a path's ending names: .png, .svg or .pdf. ARGUMENT for any other. */
qkv_status qkvi_format_of(const char *path, qkvi_format *format, qkv_error *error);

typedef struct qkvi_sheet {
    qkvi_format format;
    double scale; /* of the drawing: units of the surface for a pixel */
    cairo_surface_t *surface;
    cairo_t *cr;
    qkvi_bytes drawing; /* what cairo has written of an SVG or PDF */
    qkvi_bytes words;   /* of an SVG (svg.h) */
} qkvi_sheet;

/** Makes the surface, of whole pixels, 192 to the inch. Close it in any case. */
qkv_status qkvi_sheet_open(qkvi_sheet *sheet, qkvi_format format, double width, double height,
                           qkv_error *error);
/** Ends the drawing and makes the file of it; title and caption are in it as text. */
qkv_status qkvi_sheet_save(qkvi_sheet *sheet, const char *path, const char *title,
                           const char *caption, qkv_error *error);
void qkvi_sheet_close(qkvi_sheet *sheet);

/** A rectangle of whole pixels of an image surface, written directly: fast for millions. */
void qkvi_image_fill(cairo_surface_t *image, qkvi_rgb color, double x, double y, double width,
                     double height);

#endif
