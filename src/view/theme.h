/** The two themes: colours of everything that is not a weight. */
#ifndef QKVI_VIEW_THEME_H
#define QKVI_VIEW_THEME_H

#include "inspect/colors.h"
#include "qkv/picture.h"

typedef struct qkvi_palette {
    qkvi_rgb page;   /* the background, also of the gaps between cells */
    qkvi_rgb strong; /* titles */
    qkvi_rgb text;   /* labels; contrast to page at least 7 */
    qkvi_rgb faint;  /* captions, numbers of scales; contrast to page at least 4.5 */
    qkvi_rgb line;   /* grid lines and axes */
    qkvi_rgb mark;   /* the curve */
} qkvi_palette;

const qkvi_palette *qkvi_palette_of(qkv_theme theme);

/** The colour of text on a cell: nearly black or nearly white, whichever has more contrast. */
qkvi_rgb qkvi_ink_on(qkvi_rgb color);

/** Relative luminance of WCAG 2, 0 … 1. */
double qkvi_luminance(qkvi_rgb color);

#endif
