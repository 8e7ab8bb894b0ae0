/**
 * Colours of palettes that are common in papers.
 *
 * viridis (S. van der Walt and N. Smith, 2015) and cividis (Nunez, Anderton and Renslow 2018,
 * "Optimizing colormaps with consideration for color vision deficiency", PLoS ONE 13(7)) are
 * published as 256 colours each. Here are 33 of each, at equal steps; between them colours are
 * interpolated linearly in sRGB, within 6 of 255 of the published ones.
 *
 * Greys have equal steps of CIE lightness L*: Y = ((L* + 16) / 116)^3 for L* above 8, else
 * L* / 903.3, and Y as an sRGB channel.
 */
#include "view/palette.h"

#include <math.h>

enum { N_PLACES = 33 };

/* Red, green and blue, as 0xRRGGBB. */
static const uint32_t places[2][N_PLACES] = {
    { 0x440154, 0x470D60, 0x48186A, 0x482374, 0x472D7B, 0x453681, 0x424086, 0x3F4989, 0x3B528B,
      0x375A8D, 0x33638D, 0x2F6A8E, 0x2C728E, 0x297A8E, 0x26818E, 0x23898E, 0x21908C, 0x1F988B,
      0x1F9F88, 0x21A685, 0x28AE80, 0x31B57B, 0x3EBC74, 0x4CC26C, 0x5DC963, 0x6ECE58, 0x82D34C,
      0x96D83F, 0xABDC32, 0xC0DF24, 0xD5E21A, 0xEAE51A, 0xFDE725 },
    { 0x00224E, 0x00285B, 0x002E6A, 0x043371, 0x1A386F, 0x273E6E, 0x32436D, 0x3B496C, 0x434E6C,
      0x4B546C, 0x52596D, 0x5A5F6E, 0x61656F, 0x686A71, 0x6F7073, 0x757676, 0x7C7B78, 0x848179,
      0x8B8778, 0x938D78, 0x9B9376, 0xA39A75, 0xABA072, 0xB3A670, 0xBBAD6C, 0xC3B469, 0xCCBA64,
      0xD4C15F, 0xDDC958, 0xE6D051, 0xEFD748, 0xF8DF3C, 0xFEE838 },
};

/* L* of the ends: near the page, and far from it. */
static const double lightness[2][2] = { { 96, 0 }, { 14, 100 } };

/* Vermilion of Okabe and Ito (2008): viridis, cividis and greys have nothing like it. */
static const qkvi_rgb vermilion = { 0xD5, 0x5E, 0x00 };

static uint8_t channel(double value) { return (uint8_t)floor(value + 0.5); }

static qkvi_rgb grey(double t, qkv_theme theme) {
    const double *const ends = lightness[theme == QKV_THEME_DARK];
    const double level = ends[0] + t * (ends[1] - ends[0]);
    const double y = level > 8 ? pow((level + 16) / 116, 3) : level / 903.3;
    const double coded = y <= 0.0031308 ? 12.92 * y : 1.055 * pow(y, 1 / 2.4) - 0.055;
    const uint8_t value = channel(255 * fmin(coded, 1));
    return (qkvi_rgb){ value, value, value };
}

static double mix(uint32_t a, uint32_t b, int shift, double u) {
    return (1 - u) * (a >> shift & 255) + u * (b >> shift & 255);
}

qkvi_rgb qkvi_palette_color(double t, qkv_palette palette, qkv_theme theme) {
    if (palette == QKV_PALETTE_QKV) return qkvi_weight_color(t, theme == QKV_THEME_DARK);
    if (isnan(t)) return vermilion;
    t = fmin(fmax(t, 0), 1);
    if (palette == QKV_PALETTE_GREYS) return grey(t, theme);
    const double at = t * (N_PLACES - 1);
    const int left = at < N_PLACES - 1 ? (int)at : N_PLACES - 2;
    const uint32_t *const place = places[palette == QKV_PALETTE_CIVIDIS] + left;
    const double u = at - left;
    return (qkvi_rgb){ channel(mix(place[0], place[1], 16, u)),
                       channel(mix(place[0], place[1], 8, u)),
                       channel(mix(place[0], place[1], 0, u)) };
}

const char *qkvi_palette_nan(qkv_palette palette) {
    return palette == QKV_PALETTE_QKV ? "Grey" : "Orange";
}
