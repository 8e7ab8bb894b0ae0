/**
 * Colours of weights, and the number at which they end.
 *
 * A ramp begins next to the page's own colour, so that small weights recede and the eye finds the
 * large ones, and runs monotonically in lightness to the other end. It was made in OKLCh (Ottosson
 * 2020): lightness linear from 0.965 to 0.27 (light) or from 0.255 to 0.945 (dark), hue turning
 * from cyan over blue to indigo or from indigo over blue and green to yellow, never through both
 * red and green, chroma as large as sRGB allows up to 0.15; then sampled at 17 places. Between them
 * colours are interpolated linearly in sRGB. The top of a scale is a round number, so that its ticks
 * are short and pictures compare.
 */
#include "inspect/colors.h"

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

static uint8_t mix(uint8_t a, uint8_t b, double u) {
    return (uint8_t)floor((1 - u) * a + u * b + 0.5);
}

qkvi_rgb qkvi_weight_color(double t, bool dark) {
    if (isnan(t)) return not_a_number[dark];
    const double at = fmin(fmax(t, 0), 1) * (N_SAMPLES - 1);
    const int left = at < N_SAMPLES - 1 ? (int)at : N_SAMPLES - 2;
    const qkvi_rgb a = ramps[dark][left], b = ramps[dark][left + 1];
    const double u = at - left;
    return (qkvi_rgb){ mix(a.r, b.r, u), mix(a.g, b.g, u), mix(a.b, b.b, u) };
}

/* ---- Scales ------------------------------------------------------------------------------------ */

/* Tops by which ticks come out round: 0, 0.2 … 1 and so on; times a power of ten. */
static const struct {
    double top;
    int n_steps, decimals;
} tops[] = { { 0.15, 3, 2 }, { 0.2, 4, 2 }, { 0.3, 3, 1 }, { 0.4, 4, 1 },
             { 0.5, 5, 1 },  { 0.6, 3, 1 }, { 0.8, 4, 1 }, { 1.0, 5, 1 } };

enum { N_TOPS = sizeof tops / sizeof tops[0], MAX_DECIMALS = 9 };

qkvi_scale qkvi_scale_of(const float *weights, int64_t n, const uint8_t *hidden, int64_t n_hidden) {
    qkvi_scale scale = { .top = 1, .n_steps = 5, .decimals = 1 };
    for (int64_t i = 0; i < n; i++) {
        if (hidden && hidden[i % n_hidden]) continue;
        if (isnan(weights[i])) scale.has_nan = 1;
        if (isfinite(weights[i]) && weights[i] > scale.largest) scale.largest = weights[i];
    }
    const double largest = scale.largest * (1 - 1e-6); /* 0.1f is above 0.1 */
    double power = 1;                                  /* ten to the -shift */
    int shift = 0;
    while (largest > power && shift > -MAX_DECIMALS) power *= 10, shift--;
    while (largest > 0 && largest <= power / 10 && shift < MAX_DECIMALS - 2) power /= 10, shift++;
    for (int i = N_TOPS - 1; i >= 0 && largest > 0 && largest <= tops[i].top * power; i--) {
        scale.top = tops[i].top * power;
        scale.n_steps = tops[i].n_steps;
        scale.decimals = tops[i].decimals + shift > 0 ? tops[i].decimals + shift : 0;
    }
    return scale;
}
