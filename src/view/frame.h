/**
 * What all pictures share: margins, a title above, a caption below, and the file.
 *
 *     margin
 *     title
 *     content        width x height, its corner at (x, y)
 *     caption
 *     margin
 */
#ifndef QKVI_VIEW_FRAME_H
#define QKVI_VIEW_FRAME_H

#include <cairo.h>

#include "files/base.h"
#include "view/theme.h"
#include "view/type.h"

/** Where a line of text lies: the left end of its baseline, turned around (x, y). */
typedef struct qkvi_svg_place {
    double x, y;           /* of the turn */
    double dx, dy, degree; /* the baseline, after it */
    double size, width;
} qkvi_svg_place;

/** Adds a line of text (UTF-8, n bytes) to the words of a picture. */
void qkvi_svg_word(qkvi_bytes *words, const char *text, size_t n, const qkvi_svg_place *place);

/**
 * cairo's file with title, caption and words; scale is that of the drawing. A failure is in
 * file->failed.
 */
void qkvi_svg_make(const qkvi_bytes *drawing, const char *title, const char *caption,
                   const qkvi_bytes *words, double scale, qkvi_bytes *file);

/** The sheet that a picture is drawn on, and its file: PNG, SVG or PDF. */

typedef enum qkvi_format { QKVI_PNG, QKVI_SVG, QKVI_PDF } qkvi_format;

typedef struct qkvi_sheet {
    qkvi_format format;
    double scale; /* of the drawing: units of the surface for a pixel */
    cairo_surface_t *surface;
    cairo_t *cr;
    qkvi_bytes drawing; /* what cairo has written of an SVG or PDF */
    qkvi_bytes words;   /* of an SVG */
} qkvi_sheet;

/** A rectangle of whole pixels of an image surface, written directly: fast for millions. */
void qkvi_image_fill(cairo_surface_t *image, qkvi_rgb color, double x, double y, double width,
                     double height);

typedef struct qkvi_frame {
    qkvi_type type;
    char *title, *caption; /* as shown */
    const qkvi_palette *palette;
    qkv_theme theme;
    const char *path;
    qkvi_format format;
    qkvi_sheet sheet; /* from begin on */
    cairo_t *cr;      /* its */
    double x, y;      /* of the content */
} qkvi_frame;

/**
 * Opens the fonts, so that the content can be measured. The ending of path says which file it will
 * be. Close it in any case.
 */
qkv_status qkvi_frame_open(qkvi_frame *frame, const char *path, qkv_theme theme, qkv_error *error);

/**
 * Makes the picture and draws title and caption. notes (nullable) are added to the caption: what
 * only the picture knows. LIMIT above 32,767 pixels a side.
 */
qkv_status qkvi_frame_begin(qkvi_frame *frame, const char *title, const char *caption,
                            const char *notes, double width, double height, qkv_error *error);

/** Writes the path, complete or not at all. */
qkv_status qkvi_frame_save(qkvi_frame *frame, qkv_error *error);
void qkvi_frame_close(qkvi_frame *frame);

/** A rectangle of whole pixels. */
void qkvi_frame_fill(const qkvi_frame *frame, qkvi_rgb color, double x, double y, double width,
                     double height);

#endif
