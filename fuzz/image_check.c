/* See image_check.h. */
#include "fuzz/image_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "image/prepare.h"

/* Parses a copy that nothing follows. */
static qkv_image *parse(const uint8_t *bytes, size_t n_bytes) {
    qkv_image *image = (qkv_image *)1;
    qkv_error error;
    uint8_t *const exact = fuzz_alloc(n_bytes);
    if (n_bytes) memcpy(exact, bytes, n_bytes);
    const qkv_status status = qkv_image_parse("x", exact, n_bytes, &image, &error);
    free(exact);
    FUZZ_CHECK(fuzz_accepted(status, &error) == (image != NULL));
    return image;
}

static void prepare(const qkv_image *image) {
    static const char text[] = "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": 3}";
    float pixels[3 * 3 * 3];
    qkvi_image_rules rules;
    qkv_error error;
    FUZZ_CHECK(qkvi_image_rules_read("x", text, sizeof text - 1, NULL, &rules, &error) == QKV_OK);
    FUZZ_CHECK(qkvi_image_prepare(&rules, image, pixels, NULL, &error) == QKV_OK);
    for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++)
        FUZZ_CHECK(-1 <= pixels[i] && pixels[i] <= 1);
}

void fuzz_image(const uint8_t *bytes, size_t n_bytes) {
    qkv_image *const image = parse(bytes, n_bytes);
    if (!image) return;
    const int64_t n = image->height * image->width;
    FUZZ_CHECK(image->height > 0 && image->height <= QKV_IMAGE_MAX_SIDE);
    FUZZ_CHECK(image->width > 0 && image->width <= QKV_IMAGE_MAX_SIDE);
    FUZZ_CHECK(n <= QKV_IMAGE_MAX_PIXELS);
    qkv_image *const again = parse(bytes, n_bytes);
    FUZZ_CHECK(again && again->height == image->height && again->width == image->width);
    FUZZ_CHECK(memcmp(again->rgb, image->rgb, (size_t)n * 3) == 0);
    prepare(image);
    qkv_image_free(again);
    qkv_image_free(image);
}
