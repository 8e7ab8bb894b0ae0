/*
 * Images of files and of memory: see qkv/image.h. Formats are told apart by their first bytes;
 * those that are not read are refused by name.
 */
#include "qkv/image.h"

#include "files/file.h"
#include "image/decode.h"

enum { MAX_FILE_BYTES = 1 << 28, CHANNELS = 3 };

/* ---- Formats --------------------------------------------------------------------------------- */

static bool begins(const qkvi_image_bytes *file, size_t at, const char *bytes, size_t n) {
    return file->n_bytes >= at + n && memcmp(file->bytes + at, bytes, n) == 0;
}

/* Of formats that are not read: bytes at a place by which they are known. */
static const struct other_format {
    const char *name;
    size_t at;
    const char *bytes;
    size_t n;
} other_formats[] = {
    { "a GIF", 0, "GIF8", 4 },       { "a TIFF", 0, "II*\0", 4 },
    { "a TIFF", 0, "MM\0*", 4 },     { "a TIFF", 0, "II+\0", 4 },
    { "a TIFF", 0, "MM\0+", 4 },     { "a WebP", 8, "WEBP", 4 },
    { "an AVIF", 4, "ftypavif", 8 }, { "an AVIF", 4, "ftypavis", 8 },
    { "a HEIC", 4, "ftyphei", 7 },   { "a HEIC", 4, "ftyphev", 7 },
    { "a HEIC", 4, "ftypmif1", 8 },  { "a HEIC", 4, "ftypmsf1", 8 },
    { "a BMP", 0, "BM", 2 },         { "a JPEG 2000", 4, "jP  ", 4 },
    { "a JPEG XL", 4, "JXL ", 4 },   { "a JPEG XL", 0, "\xff\x0a", 2 },
    { "a PDF", 0, "%PDF", 4 },
};

static qkv_status refuse_format(const qkvi_image_bytes *file, qkv_error *error) {
    for (size_t i = 0; i < sizeof other_formats / sizeof *other_formats; i++) {
        const struct other_format *const format = &other_formats[i];
        if (begins(file, format->at, format->bytes, format->n))
            return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                                  "%s: it is %s; qkv reads PNG and JPEG", file->name, format->name);
    }
    return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: it is neither a PNG nor a JPEG", file->name);
}

static qkv_status decode(const qkvi_image_bytes *file, qkvi_image_pixels *pixels,
                         qkv_error *error) {
    const bool is_png = begins(file, 0, "\x89PNG\r\n\x1a\n", 8);
    if (!is_png && !begins(file, 0, "\xff\xd8\xff", 3)) return refuse_format(file, error);
#ifdef QKV_WITHOUT_IMAGES
    (void)pixels;
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                          "%s: it is a %s, and this library was built with QKV_IMAGES=OFF",
                          file->name, is_png ? "PNG" : "JPEG");
#else
    return is_png ? qkvi_image_decode_png(file, pixels, error)
                  : qkvi_image_decode_jpeg(file, pixels, error);
#endif
}

/* ---- Images ---------------------------------------------------------------------------------- */

/* Takes the pixels. */
static qkv_status make_image(qkvi_image_pixels *pixels, qkv_image **image, qkv_error *error) {
    *image = malloc(sizeof **image);
    if (!*image) {
        free(pixels->rgb);
        return qkvi_no_memory(error, "an image");
    }
    **image = (qkv_image){ pixels->height, pixels->width, pixels->rgb };
    return QKV_OK;
}

static qkv_status parse(const char *name, const void *bytes, size_t n_bytes, qkv_image **image,
                        qkv_error *error) {
    const qkvi_image_bytes file = { QKVI_PRINTABLE(QKVI_NAME_BYTES, name), bytes, n_bytes };
    qkvi_image_pixels pixels = { .orientation = 1 };
    QKV_TRY(decode(&file, &pixels, error));
    const qkv_status status = qkvi_image_turn(file.name, &pixels, error);
    if (status == QKV_OK) return make_image(&pixels, image, error);
    free(pixels.rgb);
    return status;
}

qkv_status qkv_image_parse(const char *name, const void *bytes, size_t n_bytes, qkv_image **image,
                           qkv_error *error) {
    QKV_TRY(qkvi_need(image, "image", error));
    *image = NULL;
    QKV_TRY(qkvi_need(name, "name", error));
    if (n_bytes > 0) QKV_TRY(qkvi_need(bytes, "bytes", error));
    if (n_bytes > MAX_FILE_BYTES)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: %zu bytes, the limit is %d",
                              QKVI_PRINTABLE(QKVI_NAME_BYTES, name), n_bytes, MAX_FILE_BYTES);
    return parse(name, bytes, n_bytes, image, error);
}

qkv_status qkv_image_read(const char *path, qkv_image **image, qkv_error *error) {
    char *bytes;
    size_t n_bytes;
    QKV_TRY(qkvi_need(image, "image", error));
    *image = NULL;
    QKV_TRY(qkvi_need(path, "path", error));
    QKV_TRY(qkvi_file_load(path, MAX_FILE_BYTES, &bytes, &n_bytes, error));
    const qkv_status status = parse(path, bytes, n_bytes, image, error);
    free(bytes);
    return status;
}

qkv_status qkv_image_from_rgb(const uint8_t *rgb, int64_t height, int64_t width, qkv_image **image,
                              qkv_error *error) {
    qkvi_image_pixels pixels = { .orientation = 1 };
    QKV_TRY(qkvi_need(image, "image", error));
    *image = NULL;
    QKV_TRY(qkvi_need(rgb, "rgb", error));
    if (height < 1 || width < 1)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "height = %lld, width = %lld: less than 1",
                              (long long)height, (long long)width);
    QKV_TRY(qkvi_image_check_size("rgb", (uint64_t)height, (uint64_t)width, error));
    QKV_TRY(qkvi_image_reserve("rgb", height, width, &pixels, error));
    memcpy(pixels.rgb, rgb, (size_t)(height * width) * CHANNELS);
    return make_image(&pixels, image, error);
}

void qkv_image_free(qkv_image *image) {
    if (!image) return;
    free((uint8_t *)image->rgb);
    free(image);
}
