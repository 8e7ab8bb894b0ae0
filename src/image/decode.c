/* What decoders share: see decode.h. Limits hold before anything is allocated. */
#include "image/decode.h"

qkv_status qkvi_image_check_size(const char *name, uint64_t height, uint64_t width,
                                 qkv_error *error) {
    if (height == 0 || width == 0)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "%s: %llu x %llu pixels: a side is less than 1",
                              name, (unsigned long long)width, (unsigned long long)height);
    if (height > QKV_IMAGE_MAX_SIDE || width > QKV_IMAGE_MAX_SIDE)
        return qkvi_error_set(
            error, QKV_ERR_LIMIT, "%s: %llu x %llu pixels: the limit of a side is %d", name,
            (unsigned long long)width, (unsigned long long)height, QKV_IMAGE_MAX_SIDE);
    if (height * width <= QKV_IMAGE_MAX_PIXELS) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: %llu x %llu pixels: the limit is %d in all",
                          name, (unsigned long long)width, (unsigned long long)height,
                          QKV_IMAGE_MAX_PIXELS);
}

qkv_status qkvi_image_reserve(const char *name, int64_t height, int64_t width,
                              qkvi_image_pixels *pixels, qkv_error *error) {
    pixels->height = height, pixels->width = width;
    pixels->rgb = qkvi_malloc_array((size_t)(height * width), 3);
    if (pixels->rgb) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for %lld x %lld pixels", name,
                          (long long)width, (long long)height);
}
