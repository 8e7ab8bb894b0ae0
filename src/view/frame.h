/**
 * The frame of all pictures: margins, a title above, a caption below, and the file.
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

/**
 * Where a line of text is: moved to (x, y), rotated by `degree`, its baseline begins at (dx, dy).
 */
typedef struct qkvi_svg_place {
    double x, y;
    double dx, dy, degree;
    double size, width;
} qkvi_svg_place;

/** Adds a line of text (UTF-8, n bytes) to the searchable words of an SVG (svg.c). */
void qkvi_svg_word(qkvi_bytes *words, const char *text, size_t n, const qkvi_svg_place *place);

/**
 * Makes the SVG file from cairo's, with title, caption and words; scale: of the sheet. A failure is
 * in file->failed.
 */
void qkvi_svg_make(const qkvi_bytes *drawing, const char *title, const char *caption,
                   const qkvi_bytes *words, double scale, qkvi_bytes *file);

/** The sheet that a picture is drawn on, and its file: PNG, SVG or PDF. */

typedef enum qkvi_format { QKVI_PNG, QKVI_SVG, QKVI_PDF } qkvi_format;

typedef struct qkvi_sheet {
    qkvi_format format;
    double scale; /* units of the surface for one pixel of the drawing */
    cairo_surface_t *surface;
    cairo_t *cr;
    qkvi_bytes drawing; /* the bytes of an SVG or PDF that cairo has written */
    qkvi_bytes words;   /* of an SVG */
} qkvi_sheet;

/** Fills a rectangle of whole pixels of an image surface, fast enough for millions. */
void qkvi_image_fill(cairo_surface_t *image, qkvi_rgb color, double x, double y, double width,
                     double height);

typedef struct qkvi_frame {
    qkvi_type type;
    char *title, *caption; /* escaped */
    const qkvi_palette *palette;
    qkv_theme theme;
    const char *path;
    qkvi_format format;
    qkvi_sheet sheet; /* made by qkvi_frame_begin */
    cairo_t *cr;      /* of the sheet */
    double x, y;      /* the corner of the content */
} qkvi_frame;

/**
 * Opens the fonts, so that text can be measured. The ending of path determines the format. Close it
 * in any case.
 */
qkv_status qkvi_frame_open(qkvi_frame *frame, const char *path, qkv_theme theme, qkv_error *error);

/**
 * Makes the sheet for content of this size, and draws title and caption. notes (nullable) of the
 * picture itself are added to the caption. LIMIT above 32,767 pixels a side.
 */
qkv_status qkvi_frame_begin(qkvi_frame *frame, const char *title, const char *caption,
                            const char *notes, double width, double height, qkv_error *error);

/** Writes the file, complete or not at all. */
qkv_status qkvi_frame_save(qkvi_frame *frame, qkv_error *error);
void qkvi_frame_close(qkvi_frame *frame);

/** Fills a rectangle of whole pixels. */
void qkvi_frame_fill(const qkvi_frame *frame, qkvi_rgb color, double x, double y, double width,
                     double height);

/** Draws an image surface at (x, y), without smoothing, and destroys it. */
void qkvi_frame_paint(const qkvi_frame *frame, cairo_surface_t *image, double x, double y);

#endif
