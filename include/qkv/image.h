/**
 * qkv images: PNG and JPEG files as pixels.
 *
 *     qkv_image *image = NULL;
 *     if (qkv_image_read("cat.jpg", &image, &error) == QKV_OK)
 *         printf("%lld x %lld pixels\n", (long long)image->width, (long long)image->height);
 *     qkv_image_free(image);
 *
 * Every byte of a file is hostile: its size is read and checked before anything is allocated. The
 * values are those that torchvision's decode_image gives with mode RGB and the orientation of EXIF
 * applied.
 *
 * Experimental: see docs/api.md, Stability.
 */
#ifndef QKV_IMAGE_H
#define QKV_IMAGE_H

#include "qkv/qkv.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /** The most pixels of an image. */
    QKV_IMAGE_MAX_PIXELS = 1 << 26,
    /** The most pixels of a row or a column. */
    QKV_IMAGE_MAX_SIDE = 65535
};

/** Pixels, as they are looked at. The library allocates it, and it may grow at its end. */
typedef struct qkv_image {
    int64_t height, width;
    /** [height][width][3] red, green and blue, from 0 to 255, dense. */
    const uint8_t *rgb;
} qkv_image;

/**
 * Reads a PNG or a JPEG. Its first bytes decide, not its name.
 *
 *   alpha        is dropped: the colours below it show
 *   grey         becomes red = green = blue
 *   palettes     become their colours
 *   CMYK, YCCK   of a JPEG, inverted as Adobe stores them, become with n = 255 - K
 *                red = n - round(C n / 255) and so on, as in Pillow
 *   orientation  of EXIF (1 to 8) is applied
 *   profiles     of colours, and gamma, are ignored
 *
 * A PNG of which a checksum is wrong, and a JPEG of which the decoder warns, are errors. So is a
 * file that ends early. Of an animated PNG the first frame is read.
 *
 * Limits: QKV_IMAGE_MAX_PIXELS, QKV_IMAGE_MAX_SIDE; files of 256 MiB; 100 scans of a progressive
 *     JPEG, and 2^30 pixels in all of them. A file that claims more pixels than its bytes can hold
 *     is refused before memory is allocated.
 * Memory: the file, 3 bytes a pixel, and of a progressive JPEG up to 8 more. While an orientation
 *     is applied, 3 more bytes a pixel.
 * Threads: any number of calls at a time.
 * @param image  receives the image, or NULL after an error.
 * @return QKV_OK; QKV_ERR_ARGUMENT for NULL; QKV_ERR_IO; QKV_ERR_FORMAT; QKV_ERR_LIMIT;
 *         QKV_ERR_MEMORY; QKV_ERR_UNSUPPORTED for other formats (GIF, TIFF, WebP, HEIC …), 16 bits
 *         a sample, 12-bit JPEG, and in a library that was built with QKV_IMAGES=OFF.
 */
QKV_API QKV_NODISCARD qkv_status qkv_image_read(const char *path, qkv_image **image,
                                                qkv_error *error);

/** Reads an image from the bytes of a file. name is for messages. */
QKV_API QKV_NODISCARD qkv_status qkv_image_parse(const char *name, const void *bytes,
                                                 size_t n_bytes, qkv_image **image,
                                                 qkv_error *error);

/**
 * Makes an image of a copy of pixels.
 *
 * @param rgb  [height][width][3]
 * @return QKV_OK; QKV_ERR_ARGUMENT for NULL; QKV_ERR_SHAPE for a size below 1; QKV_ERR_LIMIT;
 *         QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_image_from_rgb(const uint8_t *rgb, int64_t height,
                                                    int64_t width, qkv_image **image,
                                                    qkv_error *error);

QKV_API void qkv_image_free(qkv_image *image);

#ifdef __cplusplus
}
#endif
#endif
