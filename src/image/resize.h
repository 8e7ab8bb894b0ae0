/**
 * Resizing of images as torchvision does it on a processor with AVX2: bilinear, bicubic and Lanczos
 * with antialias, and nearest. See resize.c for the formulas.
 */
#ifndef QKVI_IMAGE_RESIZE_H
#define QKVI_IMAGE_RESIZE_H

#include "image/rules.h"

/** Of each side: n_in pixels become n_out, of which [begin, begin + n) are made. */
typedef struct qkvi_resize_side {
    int64_t n_in, n_out, begin, n;
} qkvi_resize_side;

typedef struct qkvi_resize {
    qkvi_resize_side y, x;
    qkvi_image_filter filter;
} qkvi_resize;

/**
 * in [y.n_in][x.n_in][3], out [y.n][x.n][3]: bytes, whose weights are rounded to 16-bit integers.
 * LIMIT (pixels between the passes), MEMORY.
 */
qkv_status qkvi_resize_bytes(const qkvi_resize *resize, const uint8_t *in, uint8_t *out,
                             qkv_error *error);

/** The same of bytes * factor, in f32, to f32. */
qkv_status qkvi_resize_floats(const qkvi_resize *resize, const uint8_t *in, float factor,
                              float *out, qkv_error *error);

#endif
