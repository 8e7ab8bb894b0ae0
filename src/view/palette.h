/** Colours of palettes that are not the tool's own (qkv/picture.h). */
#ifndef QKVI_VIEW_PALETTE_H
#define QKVI_VIEW_PALETTE_H

#include "view/theme.h"

/** Of t in [0, 1], clamped. NaN: a colour that none of them has, and its name in a note. */
qkvi_rgb qkvi_palette_color(double t, qkv_palette palette, qkv_theme theme);
const char *qkvi_palette_nan(qkv_palette palette);

#endif
