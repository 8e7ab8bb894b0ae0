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

#include "view/sheet.h"
#include "view/type.h"

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
