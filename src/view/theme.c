/** The colours of themes, and of text on weights. */
#include "view/theme.h"

#include <math.h>

static const qkvi_palette palettes[2] = {
    { .page = { 0xFF, 0xFF, 0xFF },
      .strong = { 0x12, 0x16, 0x1F },
      .text = { 0x2F, 0x36, 0x42 },
      .faint = { 0x63, 0x6B, 0x78 },
      .line = { 0xDD, 0xE1, 0xE7 },
      .mark = { 0x15, 0x5E, 0xB1 } },
    { .page = { 0x13, 0x15, 0x1A },
      .strong = { 0xF4, 0xF5, 0xF8 },
      .text = { 0xD3, 0xD7, 0xDF },
      .faint = { 0x98, 0xA0, 0xAE },
      .line = { 0x30, 0x34, 0x3D },
      .mark = { 0x04, 0xB0, 0xAF } },
};

static int index_of(qkv_theme theme) { return theme == QKV_THEME_DARK; }

const qkvi_palette *qkvi_palette_of(qkv_theme theme) { return &palettes[index_of(theme)]; }

void qkv_picture_color(double t, qkv_theme theme, uint8_t rgb[3]) {
    if (!rgb) return;
    const qkvi_rgb color = qkvi_weight_color(t, index_of(theme));
    rgb[0] = color.r;
    rgb[1] = color.g;
    rgb[2] = color.b;
}

static double linear(uint8_t channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

double qkvi_luminance(qkvi_rgb color) {
    return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b);
}

qkvi_rgb qkvi_ink_on(qkvi_rgb color) {
    const qkvi_rgb dark = { 0x10, 0x14, 0x1C }, light = { 0xFF, 0xFF, 0xFF };
    const double y = qkvi_luminance(color) + 0.05;
    const double on_dark = y / (qkvi_luminance(dark) + 0.05);
    const double on_light = (qkvi_luminance(light) + 0.05) / y;
    return on_dark > on_light ? dark : light;
}
