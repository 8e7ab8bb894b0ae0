/** Colours of the palettes viridis, cividis and greys (qkv/picture.h). */
#ifndef QKVI_VIEW_PALETTE_H
#define QKVI_VIEW_PALETTE_H

#include "view/theme.h"

/** The colour of t in [0, 1], clamped; for NaN one that is not in the palette, and its name. */
qkvi_rgb qkvi_palette_color(double t, qkv_palette palette, qkv_theme theme);
const char *qkvi_palette_nan(qkv_palette palette);

#endif
