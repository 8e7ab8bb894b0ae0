/** A picture as an SVG whose text can be searched, selected and read aloud. */
#ifndef QKVI_VIEW_SVG_H
#define QKVI_VIEW_SVG_H

#include "model/store/bytes.h"

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

#endif
