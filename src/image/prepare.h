/**
 * An image by the rules of a model: resized, cropped, rescaled and normalized, with the bits of
 * transformers' torchvision processors on a processor with AVX2 (of DINOv3, which resizes floats,
 * nearly: docs/images.md).
 */
#ifndef QKVI_IMAGE_PREPARE_H
#define QKVI_IMAGE_PREPARE_H

#include "image/rules.h"
#include "qkv/image.h"

/**
 * The part of an image that a model sees: [y0, y1) x [x0, x1) in pixels of the image. It reaches
 * beyond the image where a crop added zeros.
 */
typedef struct qkvi_image_view {
    int64_t height, width; /* of what is made */
    double y0, x0, y1, x1;
} qkvi_image_view;

/** What qkvi_image_prepare will make: LIMIT, with the size before the crop or after it. */
qkv_status qkvi_image_view_of(const qkvi_image_rules *rules, const qkv_image *image,
                              qkvi_image_view *view, qkv_error *error);

/**
 * Makes pixels [3][view.height][view.width], and rgb [view.height][view.width][3], which is the
 * same before values are rescaled. Either may be NULL. LIMIT, MEMORY.
 */
qkv_status qkvi_image_prepare(const qkvi_image_rules *rules, const qkv_image *image, float *pixels,
                              uint8_t *rgb, qkv_error *error);

#endif
