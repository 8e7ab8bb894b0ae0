/** Colours of weights and where they end, which pages and pictures share. */
#ifndef QKVI_INSPECT_COLORS_H
#define QKVI_INSPECT_COLORS_H

#include "files/base.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

typedef struct qkvi_rgb {
    uint8_t r, g, b;
} qkvi_rgb;

/** Of a weight t in [0, 1] (clamped; NaN: grey), on a light page or a dark one. */
qkvi_rgb qkvi_weight_color(double t, bool dark);

/** Of a value t in [-1, 1] (clamped; NaN: grey): blue above 0, ochre below, the page's at 0. */
qkvi_rgb qkvi_signed_color(double t, bool dark);

/**
 * Colours run from low to top: from 0 to a round number not below the largest weight, or as asked.
 */
typedef struct qkvi_scale {
    double low, top, largest; /* largest: of the finite weights */
    int n_steps;              /* of the ticks, from low to top */
    int decimals;             /* of a tick's number */
    int has_nan;
    int is_signed; /* low = -top, and colours are those of qkvi_signed_color */
    int palette;   /* enum qkv_palette of pictures; 0 elsewhere */
    int given;     /* values beyond the ends may exist */
} qkvi_scale;

/** The scale of values around 0: the round number is not below the largest of their sizes. */
qkvi_scale qkvi_scale_signed(const float *values, int64_t n);

/** hidden is nullable; [n_hidden], for every n_hidden weights anew: 1 for those that are none. */
qkvi_scale qkvi_scale_of(const float *weights, int64_t n, const uint8_t *hidden, int64_t n_hidden);

#pragma GCC visibility pop

#endif
