/**
 * What a model does with an image before it sees it: preprocessor_config.json, or the object
 * image_processor of processor_config.json, as transformers writes them.
 */
#ifndef QKVI_IMAGE_RULES_H
#define QKVI_IMAGE_RULES_H

#include "files/base.h"

enum {
    QKVI_IMAGE_MAX_OUTPUT = 4096,    /* a side of what a model sees */
    QKVI_IMAGE_MAX_RESIZED = 1 << 20 /* a side before the crop, of which only the crop is made */
};

/** With the numbers that files have, which are Pillow's. */
typedef enum qkvi_image_filter {
    QKVI_IMAGE_NEAREST = 0,
    QKVI_IMAGE_LANCZOS = 1,
    QKVI_IMAGE_BILINEAR = 2,
    QKVI_IMAGE_BICUBIC = 3
} qkvi_image_filter;

/** Steps in the order in which they are done. A step that is not done has zeros. */
typedef struct qkvi_image_rules {
    const char *type;    /* the class in transformers, "ViTImageProcessor" */
    bool rescales_first; /* DINOv3: rescaled floats are resized, otherwise bytes */
    /* Resized to height x width, or so that the shorter side is shortest_edge; all 0: not. */
    int64_t height, width, shortest_edge;
    qkvi_image_filter filter;
    /* The middle is kept; smaller images get zeros around them. 0: all is kept. */
    int64_t crop_height, crop_width;
    double rescale_factor; /* v becomes v * rescale_factor; 0: not */
    bool normalizes;       /* v becomes (v - mean) / std, by channel */
    double mean[3], std[3];
} qkvi_image_rules;

/**
 * Reads either file; file is its name for messages. A field that is absent or null is that of its
 * class. model_type of config.json tells the class where the file does not; it may be NULL. FORMAT,
 * SHAPE, LIMIT, UNSUPPORTED (another class; steps that are not implemented), MEMORY.
 */
qkv_status qkvi_image_rules_read(const char *file, const void *bytes, size_t n_bytes,
                                 const char *model_type, qkvi_image_rules *rules, qkv_error *error);

/**
 * Finds the file in a model folder and reads it, the object in processor_config.json first. IO if
 * there is neither; otherwise as qkvi_image_rules_read.
 */
qkv_status qkvi_image_rules_find(const char *folder, const char *model_type,
                                 qkvi_image_rules *rules, qkv_error *error);

#endif
