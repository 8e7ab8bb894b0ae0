/**
 * Colours of weights, and scales.
 *
 * A ramp begins near the colour of the page, so that small weights recede and large ones stand out,
 * and its lightness is monotonic. It was made in OKLCh (Ottosson 2020): lightness linear from 0.965
 * to 0.27 (light) or from 0.255 to 0.945 (dark), hue from cyan over blue to indigo or from indigo
 * over blue and green to yellow, never through both red and green, chroma as large as sRGB allows,
 * up to 0.15; then sampled at 17 points. Between these, colours are interpolated linearly in sRGB.
 * The top of a scale is a round number, so that the numbers at its ticks are short and pictures can
 * be compared.
 */
#include "inspect/colors.h"

#include <math.h>

enum { N_SAMPLES = 17 };

/* Red, green and blue, as 0xRRGGBB. */
static const uint32_t ramps[2][N_SAMPLES] = {
    { 0xF0F4F7, 0xD4E9F0, 0xB6E0E2, 0x99D6D9, 0x7CCACF, 0x5CBFC6, 0x36B1C7, 0x12A2C7, 0x0291C3,
      0x0380C0, 0x086FB9, 0x155EB1, 0x244EA2, 0x2A3E91, 0x2A3080, 0x28226E, 0x24155D },
    { 0x21222A, 0x282B44, 0x33325F, 0x3B3B78, 0x3D4690, 0x3B53A8, 0x2B65BA, 0x027ABA, 0x048DB4,
      0x039FB2, 0x04B0AF, 0x14C2A8, 0x52D09B, 0x82DB8D, 0xAEE387, 0xD5EB88, 0xF9F290 },
};
static const uint32_t not_a_number[2] = { 0xB4B4B4, 0x6E6E6E };

static qkvi_rgb rgb_of(uint32_t color) {
    return (qkvi_rgb){ (uint8_t)(color >> 16), (uint8_t)(color >> 8), (uint8_t)color };
}

static uint8_t mix(uint8_t a, uint8_t b, double u) {
    return (uint8_t)floor((1 - u) * a + u * b + 0.5);
}

qkvi_rgb qkvi_weight_color(double t, bool dark) {
    if (isnan(t)) return rgb_of(not_a_number[dark]);
    const double at = fmin(fmax(t, 0), 1) * (N_SAMPLES - 1);
    const int left = at < N_SAMPLES - 1 ? (int)at : N_SAMPLES - 2;
    const qkvi_rgb a = rgb_of(ramps[dark][left]), b = rgb_of(ramps[dark][left + 1]);
    const double u = at - left;
    return (qkvi_rgb){ mix(a.r, b.r, u), mix(a.g, b.g, u), mix(a.b, b.b, u) };
}

/*
 * Blue is the part of the ramp whose hue tells it from ochre, which has red and blue exchanged.
 * Both keep their lightness, so sizes can be compared across 0, and readers who do not tell red
 * from green tell them apart.
 */
qkvi_rgb qkvi_signed_color(double t, bool dark) {
    static const double part[2] = { 0.75, 0.55 };
    const qkvi_rgb blue = qkvi_weight_color(fmin(fabs(t), 1) * part[dark], dark);
    if (isnan(t)) return qkvi_weight_color(t, dark);
    return t < 0 ? (qkvi_rgb){ blue.b, blue.g, blue.r } : blue;
}

/* ---- Scales ---------------------------------------------------------------------------------- */

/* Tops by which ticks come out round: 0, 0.2 … 1 and so on; times a power of ten. */
static const struct {
    double top;
    int n_steps, decimals;
} tops[] = { { 0.15, 3, 2 }, { 0.2, 4, 2 }, { 0.3, 3, 1 }, { 0.4, 4, 1 },
             { 0.5, 5, 1 },  { 0.6, 3, 1 }, { 0.8, 4, 1 }, { 1.0, 5, 1 } };

enum { N_TOPS = sizeof tops / sizeof tops[0], MAX_DECIMALS = 9 };

/* Sets the round number, and what its ticks are, by the largest. */
static void round_up(qkvi_scale *of) {
    qkvi_scale scale = *of;
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
    *of = scale;
}

qkvi_scale qkvi_scale_of(const float *weights, int64_t n, const uint8_t *hidden, int64_t n_hidden) {
    qkvi_scale scale = { .top = 1, .n_steps = 5, .decimals = 1 };
    for (int64_t i = 0; i < n; i++) {
        if (hidden && hidden[i % n_hidden]) continue;
        if (isnan(weights[i])) scale.has_nan = 1;
        if (isfinite(weights[i]) && weights[i] > scale.largest) scale.largest = weights[i];
    }
    round_up(&scale);
    return scale;
}

qkvi_scale qkvi_scale_signed(const float *values, int64_t n) {
    qkvi_scale scale = { .top = 1, .n_steps = 5, .decimals = 1, .is_signed = 1 };
    for (int64_t i = 0; i < n; i++) {
        if (isnan(values[i])) scale.has_nan = 1;
        if (isfinite(values[i]) && fabsf(values[i]) > scale.largest)
            scale.largest = fabsf(values[i]);
    }
    round_up(&scale);
    scale.low = -scale.top;
    scale.n_steps *= 2;
    return scale;
}
