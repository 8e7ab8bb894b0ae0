/**
 * Colours of weights.
 *
 * A ramp begins next to the page's own colour, so that small weights recede and the eye finds the
 * large ones, and runs monotonically in lightness to the other end. It was made in OKLCh (Ottosson
 * 2020): lightness linear from 0.965 to 0.27 (light) or from 0.255 to 0.945 (dark), hue turning
 * from cyan over blue to indigo or from indigo over blue and green to yellow, never through both
 * red and green, chroma as large as sRGB allows up to 0.15; then sampled at 17 places. Between them
 * colours are interpolated linearly in sRGB.
 */
#include "view/theme.h"

#include <math.h>

enum { N_SAMPLES = 17 };

static const qkvi_rgb ramps[2][N_SAMPLES] = {
    { { 0xF0, 0xF4, 0xF7 },
      { 0xD4, 0xE9, 0xF0 },
      { 0xB6, 0xE0, 0xE2 },
      { 0x99, 0xD6, 0xD9 },
      { 0x7C, 0xCA, 0xCF },
      { 0x5C, 0xBF, 0xC6 },
      { 0x36, 0xB1, 0xC7 },
      { 0x12, 0xA2, 0xC7 },
      { 0x02, 0x91, 0xC3 },
      { 0x03, 0x80, 0xC0 },
      { 0x08, 0x6F, 0xB9 },
      { 0x15, 0x5E, 0xB1 },
      { 0x24, 0x4E, 0xA2 },
      { 0x2A, 0x3E, 0x91 },
      { 0x2A, 0x30, 0x80 },
      { 0x28, 0x22, 0x6E },
      { 0x24, 0x15, 0x5D } },
    { { 0x21, 0x22, 0x2A },
      { 0x28, 0x2B, 0x44 },
      { 0x33, 0x32, 0x5F },
      { 0x3B, 0x3B, 0x78 },
      { 0x3D, 0x46, 0x90 },
      { 0x3B, 0x53, 0xA8 },
      { 0x2B, 0x65, 0xBA },
      { 0x02, 0x7A, 0xBA },
      { 0x04, 0x8D, 0xB4 },
      { 0x03, 0x9F, 0xB2 },
      { 0x04, 0xB0, 0xAF },
      { 0x14, 0xC2, 0xA8 },
      { 0x52, 0xD0, 0x9B },
      { 0x82, 0xDB, 0x8D },
      { 0xAE, 0xE3, 0x87 },
      { 0xD5, 0xEB, 0x88 },
      { 0xF9, 0xF2, 0x90 } },
};

static const qkvi_rgb not_a_number[2] = { { 0xB4, 0xB4, 0xB4 }, { 0x6E, 0x6E, 0x6E } };

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

static uint8_t mix(uint8_t a, uint8_t b, double u) {
    return (uint8_t)floor((1 - u) * a + u * b + 0.5);
}

qkvi_rgb qkvi_weight_color(double t, qkv_theme theme) {
    if (isnan(t)) return not_a_number[index_of(theme)];
    const double at = fmin(fmax(t, 0), 1) * (N_SAMPLES - 1);
    const int left = at < N_SAMPLES - 1 ? (int)at : N_SAMPLES - 2;
    const qkvi_rgb a = ramps[index_of(theme)][left], b = ramps[index_of(theme)][left + 1];
    const double u = at - left;
    return (qkvi_rgb){ mix(a.r, b.r, u), mix(a.g, b.g, u), mix(a.b, b.b, u) };
}

void qkv_view_color(double t, qkv_theme theme, uint8_t rgb[3]) {
    const qkvi_rgb color = qkvi_weight_color(t, theme);
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
