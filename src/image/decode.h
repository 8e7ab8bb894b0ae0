/**
 * Bytes of image files to pixels. image.c tells formats apart; each decoder checks the size that a
 * header has before it allocates, and gives pixels as they are stored, with the orientation that
 * they are to be looked at in.
 */
#ifndef QKVI_IMAGE_DECODE_H
#define QKVI_IMAGE_DECODE_H

#include "files/base.h"
#include "qkv/image.h"

/** The bytes of a file, and its name for messages, escaped. */
typedef struct qkvi_image_bytes {
    const char *name;
    const uint8_t *bytes;
    size_t n_bytes;
} qkvi_image_bytes;

/** Pixels as they are stored. */
typedef struct qkvi_image_pixels {
    int64_t height, width;
    uint8_t *rgb;    /* [height][width][3], to be freed by free() */
    int orientation; /* of EXIF, 1 to 8 */
} qkvi_image_pixels;

/* Zeros before the call. After an error rgb is NULL. */
qkv_status qkvi_image_decode_png(const qkvi_image_bytes *file, qkvi_image_pixels *pixels,
                                 qkv_error *error);
qkv_status qkvi_image_decode_jpeg(const qkvi_image_bytes *file, qkvi_image_pixels *pixels,
                                  qkv_error *error);

/** SHAPE, LIMIT: whether an image may have that size. */
qkv_status qkvi_image_check_size(const char *name, uint64_t height, uint64_t width,
                                 qkv_error *error);

/** Sets the size, and memory for rgb, of a size that was checked: MEMORY. */
qkv_status qkvi_image_reserve(const char *name, int64_t height, int64_t width,
                              qkvi_image_pixels *pixels, qkv_error *error);

/**
 * The orientation of a TIFF structure, as EXIF has it: 1 if it has none, or is damaged.
 */
int qkvi_exif_orientation(const uint8_t *bytes, size_t n_bytes);

/** Turns and mirrors pixels into the orientation 1: MEMORY. */
qkv_status qkvi_image_turn(const char *name, qkvi_image_pixels *pixels, qkv_error *error);

#endif
