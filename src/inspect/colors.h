/** Colours of weights and the scales that they belong to, for pages and pictures. */
#ifndef QKVI_INSPECT_COLORS_H
#define QKVI_INSPECT_COLORS_H

#include "files/base.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

typedef struct qkvi_rgb {
    uint8_t r, g, b;
} qkvi_rgb;

/** The colour of a weight t in [0, 1] (clamped; NaN: grey), on a light page or a dark one. */
qkvi_rgb qkvi_weight_color(double t, bool dark);

/**
 * The colour of a value t in [-1, 1] (clamped; NaN: grey): blue above 0, ochre below, that of the
 * page at 0.
 */
qkvi_rgb qkvi_signed_color(double t, bool dark);

/**
 * The scale of colours, from low to top: by default from 0 to a round number that is not below the
 * largest weight.
 */
typedef struct qkvi_scale {
    double low, top, largest; /* largest: of the finite weights */
    int n_steps;              /* intervals between ticks, from low to top */
    int decimals;             /* of the numbers at ticks */
    int has_nan;              /* some weight is NaN */
    int is_signed;            /* low = -top, and colours are those of qkvi_signed_color */
    int palette;              /* enum qkv_palette of pictures; 0 elsewhere */
    int given;                /* the caller set the ends: values may lie beyond them */
} qkvi_scale;

/** The scale of values around 0: top is a round number that is not below the largest |value|. */
qkvi_scale qkvi_scale_signed(const float *values, int64_t n);

/**
 * The scale of n weights. hidden is nullable: weight i is left out where hidden[i % n_hidden] is 1.
 */
qkvi_scale qkvi_scale_of(const float *weights, int64_t n, const uint8_t *hidden, int64_t n_hidden);

#pragma GCC visibility pop

#endif
