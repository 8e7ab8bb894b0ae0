/* In place of the decoders, in a build with QKV_IMAGES=OFF: see decode.h. */
#include "image/decode.h"

static qkv_status refuse(const qkvi_image_bytes *file, const char *format, qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                          "%s: it is a %s, and this library was built with QKV_IMAGES=OFF",
                          file->name, format);
}

qkv_status qkvi_image_decode_png(const qkvi_image_bytes *file, qkvi_image_pixels *pixels,
                                 qkv_error *error) {
    (void)pixels;
    return refuse(file, "PNG", error);
}

qkv_status qkvi_image_decode_jpeg(const qkvi_image_bytes *file, qkvi_image_pixels *pixels,
                                  qkv_error *error) {
    (void)pixels;
    return refuse(file, "JPEG", error);
}
