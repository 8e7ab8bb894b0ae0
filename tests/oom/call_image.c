/* Images: qkv/image.h, and what a model makes of one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/prepare.h"
#include "oom/calls.h"

#define FILES QKV_TEST_DATA "/golden/image/files/"

static qkv_image *image;
static char *bytes;
static size_t n_bytes;
static float *pixels;
static uint8_t *seen;

static qkv_status claimed(qkv_status status) {
    oom_claim(status == QKV_OK || !image, "image is NULL after a failure");
    return status;
}

static qkv_status read(const char *path, qkv_error *error) {
    image = (qkv_image *)1;
    return claimed(qkv_image_read(path, &image, error));
}
static qkv_status read_turned(qkv_error *error) { return read(FILES "turned_5.png", error); }
static qkv_status read_palette(qkv_error *error) { return read(FILES "palette_16.png", error); }
static qkv_status read_jpeg(qkv_error *error) { return read(FILES "turned_6.jpg", error); }
static qkv_status read_progressive(qkv_error *error) {
    return read(FILES "progressive.jpg", error);
}

static void load_cmyk(void) {
    FILE *const file = fopen(FILES "cmyk.jpg", "rb");
    bytes = malloc(1 << 16);
    if (!file || !bytes) exit(1);
    n_bytes = fread(bytes, 1, 1 << 16, file);
    fclose(file);
}
static qkv_status parse_cmyk(qkv_error *error) {
    image = (qkv_image *)1;
    return claimed(qkv_image_parse("x", bytes, n_bytes, &image, error));
}

static const uint8_t rgb[2 * 3 * 3] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
static qkv_status copy(qkv_error *error) {
    image = (qkv_image *)1;
    return claimed(qkv_image_from_rgb(rgb, 2, 3, &image, error));
}

static uint64_t take_image(void) {
    return oom_hash((uint64_t)image->width, image->rgb, (size_t)(image->height * image->width) * 3);
}
static void drop_image(void) {
    qkv_image_free(image);
    free(bytes);
    bytes = NULL;
}

/* ---- For a model ----------------------------------------------------------------------------- */

static void open_image(void) {
    oom_must(qkv_image_read(FILES "RGB.png", &image, NULL), NULL);
    pixels = malloc(3 * 12 * 14 * sizeof *pixels);
    seen = malloc(3 * 12 * 14);
}
static qkv_status prepare_by(const char *type, qkv_error *error) {
    char text[200];
    qkvi_image_rules rules;
    snprintf(text, sizeof text,
             "{\"image_processor_type\": \"%s\", \"size\": {\"height\": 12, \"width\": 14}}", type);
    QKV_TRY(qkvi_image_rules_read("x", text, strlen(text), NULL, &rules, error));
    return qkvi_image_prepare(&rules, image, pixels, seen, error);
}
static qkv_status prepare(qkv_error *error) { return prepare_by("ViTImageProcessor", error); }
static qkv_status prepare_floats(qkv_error *error) {
    return prepare_by("DINOv3ViTImageProcessor", error);
}
static uint64_t take_pixels(void) {
    return oom_hash(oom_hash(0, pixels, (size_t)3 * 12 * 14 * sizeof *pixels), seen, 3 * 12 * 14);
}
static void drop_pixels(void) {
    qkv_image_free(image);
    free(pixels);
    free(seen);
}

static const oom_call calls[] = {
    { "qkv_image_read", "PNG, turned", NULL, read_turned, take_image, drop_image, OOM_IO, 0 },
    { "qkv_image_read", "PNG, palette", NULL, read_palette, take_image, drop_image, OOM_IO, 0 },
    { "qkv_image_read", "JPEG, turned", NULL, read_jpeg, take_image, drop_image, OOM_IO, 0 },
    { "qkv_image_read", "JPEG, progressive", NULL, read_progressive, take_image, drop_image, OOM_IO,
      0 },
    { "qkv_image_parse", "JPEG, CMYK", load_cmyk, parse_cmyk, take_image, drop_image, 0, 0 },
    { "qkv_image_from_rgb", "six pixels", NULL, copy, take_image, drop_image, 0, 0 },
    { "qkvi_image_prepare", "bytes", open_image, prepare, take_pixels, drop_pixels, 0, 0 },
    { "qkvi_image_prepare", "floats", open_image, prepare_floats, take_pixels, drop_pixels, 0, 0 },
};

const oom_group oom_image = { "image", calls, sizeof calls / sizeof *calls, NULL, NULL };
