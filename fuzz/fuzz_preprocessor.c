/*
 * preprocessor_config.json. What is accepted has steps within the limits, and makes of a small
 * image as many finite numbers as it says, or refuses its size.
 */
#include <math.h>
#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "image/prepare.h"

static void check_side(int64_t n) { FUZZ_CHECK(n >= 0 && n <= QKVI_IMAGE_MAX_OUTPUT); }

static void check_rules(const qkvi_image_rules *rules) {
    FUZZ_CHECK(rules->type != NULL);
    check_side(rules->height);
    check_side(rules->width);
    check_side(rules->shortest_edge);
    check_side(rules->crop_height);
    check_side(rules->crop_width);
    FUZZ_CHECK((rules->height > 0) == (rules->width > 0));
    FUZZ_CHECK(!(rules->height > 0 && rules->shortest_edge > 0));
    FUZZ_CHECK((rules->crop_height > 0) == (rules->crop_width > 0));
    FUZZ_CHECK(rules->filter <= QKVI_IMAGE_BICUBIC);
}

static void prepare(const qkvi_image_rules *rules) {
    enum { HEIGHT = 3, WIDTH = 5, MOST = 1 << 18 };
    uint8_t rgb[HEIGHT * WIDTH * 3];
    qkvi_image_view view;
    qkv_image *image;
    qkv_error error;
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i * 17);
    FUZZ_CHECK(qkv_image_from_rgb(rgb, HEIGHT, WIDTH, &image, &error) == QKV_OK);
    if (fuzz_accepted(qkvi_image_view_of(rules, image, &view, &error), &error) &&
        view.height * view.width <= MOST) { /* larger ones take long and tell nothing new */
        const size_t n = (size_t)(view.height * view.width) * 3;
        float *const pixels = fuzz_alloc(n * sizeof *pixels);
        FUZZ_CHECK(qkvi_image_prepare(rules, image, pixels, NULL, &error) == QKV_OK);
        for (size_t i = 0; i < n; i++) FUZZ_CHECK(isfinite(pixels[i]));
        free(pixels);
    }
    qkv_image_free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    qkvi_image_rules rules;
    qkv_error error;
    if (!fuzz_accepted(qkvi_image_rules_read("x", bytes, n_bytes, "vit", &rules, &error), &error))
        return 0;
    check_rules(&rules);
    prepare(&rules);
    return 0;
}
