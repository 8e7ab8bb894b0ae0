/*
 * Images in memory, and rules of preprocessor_config.json: defaults of each class, every field that
 * is refused, which of two files counts, sizes before and after a crop.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "image/decode.h"
#include "image/prepare.h"
#include "limits/temporary.h"
#include "qkv/files.h"

static qkv_error error;

static qkv_status read_text(const char *text, const char *model_type, qkvi_image_rules *rules) {
    return qkvi_image_rules_read("p.json", text, strlen(text), model_type, rules, &error);
}

static qkvi_image_rules rules_of(const char *text) {
    qkvi_image_rules rules;
    if (read_text(text, NULL, &rules) != QKV_OK) fail_msg("%s: %s", text, error.message);
    return rules;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

/* Image processors in transformers without arguments. */
static void test_defaults(void **state) {
    static const struct {
        const char *name, *model_type;
        int64_t height, shortest_edge, crop;
        qkvi_image_filter filter;
        double mean, std; /* of green */
        bool rescales_first;
    } rows[] = {
        { "ViTImageProcessor", "vit", 224, 0, 0, QKVI_IMAGE_BILINEAR, 0.5, 0.5, false },
        { "DeiTImageProcessor", "deit", 256, 0, 224, QKVI_IMAGE_BICUBIC, 0.5, 0.5, false },
        { "CLIPImageProcessor", "clip", 0, 224, 224, QKVI_IMAGE_BICUBIC, 0.4578275, 0.26130258,
          false },
        { "BitImageProcessor", "dinov2", 0, 224, 224, QKVI_IMAGE_BICUBIC, 0.4578275, 0.26130258,
          false },
        { "SiglipImageProcessor", "siglip", 224, 0, 0, QKVI_IMAGE_BICUBIC, 0.5, 0.5, false },
        { "DINOv3ViTImageProcessor", "dinov3_vit", 224, 0, 0, QKVI_IMAGE_BILINEAR, 0.456, 0.224,
          true },
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char text[200];
        qkvi_image_rules by_type;
        snprintf(text, sizeof text, "{\"image_processor_type\": \"%sFast\", \"size\": null}",
                 rows[r].name);
        const qkvi_image_rules rules = rules_of(text);
        assert_string_equal(rules.type, rows[r].name);
        assert_int_equal(rules.height, rows[r].height);
        assert_int_equal(rules.width, rows[r].height);
        assert_int_equal(rules.shortest_edge, rows[r].shortest_edge);
        assert_int_equal(rules.crop_height, rows[r].crop);
        assert_int_equal(rules.crop_width, rows[r].crop);
        assert_int_equal(rules.filter, rows[r].filter);
        assert_true(rules.mean[1] == rows[r].mean && rules.std[1] == rows[r].std);
        assert_true(rules.rescale_factor == 1 / 255.0 && rules.normalizes);
        assert_int_equal(rules.rescales_first, rows[r].rescales_first);
        assert_int_equal(read_text("{}", rows[r].model_type, &by_type), QKV_OK);
        assert_string_equal(by_type.type, rows[r].name);
    }
}

static void test_switches(void **state) {
    (void)state;
    qkvi_image_rules rules = rules_of("{\"image_processor_type\": \"DeiTImageProcessor\","
                                      "\"do_resize\": false, \"do_center_crop\": false,"
                                      "\"do_rescale\": false, \"do_normalize\": false}");
    assert_true(rules.height == 0 && rules.width == 0 && rules.shortest_edge == 0);
    assert_true(rules.crop_height == 0 && rules.rescale_factor == 0 && !rules.normalizes);
    rules = rules_of("{\"feature_extractor_type\": \"DeiTFeatureExtractor\", \"size\": [30, 40],"
                     "\"crop_size\": {\"width\": 5, \"height\": 4}, \"image_std\": 2}");
    assert_true(rules.height == 30 && rules.width == 40);
    assert_true(rules.crop_height == 4 && rules.crop_width == 5 && rules.std[2] == 2);
}

static void test_refused(void **state) {
#define VIT(more) "{\"image_processor_type\": \"ViTImageProcessor\", " more "}"
    static const struct {
        qkv_status status;
        const char *text, *says;
    } rows[] = {
        /* PP01, PP02 */
        { QKV_ERR_FORMAT, "[]", "p.json" },
        { QKV_ERR_FORMAT, "{", "p.json: line 1" },
        { QKV_ERR_UNSUPPORTED, "{}", "image_processor_type is missing" },
        { QKV_ERR_UNSUPPORTED, "{\"image_processor_type\": \"Owl\\u0007\"}",
          "'Owl\\x07' is not supported" },
        { QKV_ERR_UNSUPPORTED, "{\"feature_extractor_type\": \"ViTTokenizer\"}",
          "feature_extractor_type" },
        { QKV_ERR_FORMAT, "{\"image_processor_type\": 3}", "image_processor_type" },
        { QKV_ERR_FORMAT, "{\"image_processor\": 3}", "image_processor" },
        { QKV_ERR_UNSUPPORTED, VIT("\"do_pad\": true"), "do_pad = true" },
        { QKV_ERR_FORMAT, VIT("\"do_resize\": 1"), "do_resize" },
        /* PP03, and more of PP01 and PP02 */
        { QKV_ERR_SHAPE, VIT("\"size\": 0"), "size = 0 is less than 1" },
        { QKV_ERR_SHAPE, VIT("\"size\": -4"), "size = -4 is less than 1" },
        { QKV_ERR_LIMIT, VIT("\"size\": 4097"), "size = 4097, the limit is 4096" },
        { QKV_ERR_FORMAT, VIT("\"size\": 22.5"), "size" },
        { QKV_ERR_FORMAT, VIT("\"size\": [1]"), "size has 1 entries, not 2" },
        { QKV_ERR_FORMAT, VIT("\"size\": []"), "size has 0 entries, not 2" },
        { QKV_ERR_FORMAT, VIT("\"size\": [1, 2, 3]"), "size has 3 entries" },
        { QKV_ERR_FORMAT, VIT("\"size\": [1, 2.0]"), "size has no integers" },
        { QKV_ERR_UNSUPPORTED, VIT("\"size\": {}"), "size is neither {height, width} nor" },
        { QKV_ERR_UNSUPPORTED, VIT("\"size\": {\"height\": 5}"), "size is neither" },
        { QKV_ERR_UNSUPPORTED, VIT("\"size\": {\"shortest_edge\": 5, \"longest_edge\": 9}"),
          "size is neither" },
        { QKV_ERR_LIMIT, VIT("\"size\": {\"height\": 5, \"width\": 2147483647}"),
          "width = 2147483647" },
        { QKV_ERR_FORMAT, VIT("\"size\": {\"height\": \"5\", \"width\": 5}"), "size.height" },
        { QKV_ERR_FORMAT, VIT("\"do_center_crop\": true"), "without crop_size" },
        { QKV_ERR_UNSUPPORTED, VIT("\"crop_size\": {\"shortest_edge\": 5}"),
          "crop_size is neither" },
        { QKV_ERR_UNSUPPORTED, VIT("\"resample\": 4"), "resample = 4" },
        { QKV_ERR_FORMAT, VIT("\"resample\": \"bicubic\""), "resample" },
        { QKV_ERR_FORMAT, VIT("\"rescale_factor\": 0"), "rescale_factor = 0" },
        { QKV_ERR_FORMAT, VIT("\"rescale_factor\": -1e300"), "rescale_factor" },
        { QKV_ERR_SHAPE, VIT("\"image_mean\": [0.5]"), "image_mean has 1 entries, not 3" },
        { QKV_ERR_FORMAT, VIT("\"image_mean\": [0, 0, \"0\"]"), "image_mean is neither" },
        { QKV_ERR_FORMAT, VIT("\"image_mean\": 1e7"), "image_mean has 1e+07" },
        { QKV_ERR_FORMAT, VIT("\"image_std\": [1, 0, 1]"), "image_std[1] = 0" },
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        qkvi_image_rules rules;
        const qkv_status status = read_text(rows[r].text, NULL, &rules);
        if (status != rows[r].status || !strstr(error.message, rows[r].says) ||
            !strstr(error.message, "p.json"))
            fail_msg("%s: %d, \"%s\"", rows[r].text, status, error.message);
    }
}

/* ---- Which file ------------------------------------------------------------------------------ */

static void put(const char *folder, const char *name, const char *text) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (text)
        assert_int_equal(qkv_file_write(path, text, strlen(text), NULL), QKV_OK);
    else
        unlink(path);
}

static void test_files(void **state) {
    static const char plain[] = "preprocessor_config.json", nested[] = "processor_config.json";
    char folder[TEMPORARY_PATH];
    qkvi_image_rules rules;
    (void)state;
    assert_non_null(mkdtemp(temporary("qkv-image", folder)));
    assert_int_equal(qkvi_image_rules_find(folder, "vit", &rules, &error), QKV_ERR_IO);
    assert_non_null(strstr(error.message, plain));
    put(folder, nested, "{\"processor_class\": \"CLIPProcessor\"}");
    assert_int_equal(qkvi_image_rules_find(folder, "vit", &rules, &error), QKV_ERR_IO);
    put(folder, plain, "{\"size\": 5}");
    assert_int_equal(qkvi_image_rules_find(folder, "vit", &rules, &error), QKV_OK);
    assert_int_equal(rules.height, 5);
    put(folder, nested, "{\"image_processor\": {\"size\": 6}}");
    assert_int_equal(qkvi_image_rules_find(folder, "vit", &rules, &error), QKV_OK);
    assert_int_equal(rules.height, 6);
    put(folder, nested, "no JSON");
    assert_int_equal(qkvi_image_rules_find(folder, "vit", &rules, &error), QKV_ERR_FORMAT);
    assert_non_null(strstr(error.message, nested));
    put(folder, nested, NULL);
    put(folder, plain, NULL);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- Images ---------------------------------------------------------------------------------- */

static qkv_image *grey(int64_t height, int64_t width) {
    qkv_image *image;
    uint8_t *const rgb = malloc((size_t)(height * width) * 3);
    memset(rgb, 100, (size_t)(height * width) * 3);
    assert_int_equal(qkv_image_from_rgb(rgb, height, width, &image, &error), QKV_OK);
    assert_memory_equal(image->rgb, rgb, (size_t)(height * width) * 3);
    free(rgb);
    return image;
}

static void test_sizes(void **state) {
    static const uint8_t rgb[3] = { 0 };
    qkv_image *image;
    (void)state;
    assert_int_equal(qkv_image_from_rgb(rgb, 0, 1, &image, &error), QKV_ERR_SHAPE);
    assert_null(image);
    assert_int_equal(qkv_image_from_rgb(rgb, 1, -1, &image, &error), QKV_ERR_SHAPE);
    assert_int_equal(qkv_image_from_rgb(rgb, INT64_MAX, INT64_MAX, &image, &error), QKV_ERR_LIMIT);
    assert_int_equal(qkv_image_from_rgb(rgb, 65536, 1, &image, &error), QKV_ERR_LIMIT);
    assert_int_equal(qkv_image_from_rgb(rgb, 8192, 8193, &image, &error), QKV_ERR_LIMIT);
}

/* What a model sees of a wide image, and of a small one between zeros. */
static void test_view(void **state) {
    const char *const clip = "{\"image_processor_type\": \"CLIPImageProcessor\","
                             "\"size\": {\"shortest_edge\": 10}, \"crop_size\": 8}";
    qkvi_image_rules rules = rules_of(clip);
    qkvi_image_view view;
    qkv_image *image = grey(20, 61); /* becomes 10 x 30 */
    (void)state;
    assert_int_equal(qkvi_image_view_of(&rules, image, &view, &error), QKV_OK);
    assert_true(view.height == 8 && view.width == 8);
    assert_true(view.y0 == 2 && view.y1 == 18);
    assert_true(fabs(view.x0 - 11 * 61 / 30.0) < 1e-12 && fabs(view.x1 - 19 * 61 / 30.0) < 1e-12);
    rules = rules_of("{\"image_processor_type\": \"ViTImageProcessor\", \"do_resize\": false,"
                     "\"do_center_crop\": true, \"crop_size\": [25, 61]}");
    assert_int_equal(qkvi_image_view_of(&rules, image, &view, &error), QKV_OK);
    assert_true(view.y0 == -2 && view.y1 == 23 && view.x0 == 0 && view.x1 == 61);
    qkv_image_free(image);
}

/* PP04 */
static void test_limits(void **state) {
    const char *const clip = "{\"image_processor_type\": \"CLIPImageProcessor\"}";
    qkvi_image_rules rules = rules_of(clip);
    qkvi_image_view view;
    float one;
    qkv_image *image = grey(1, 60000); /* would become 224 x 13440000 */
    (void)state;
    assert_int_equal(qkvi_image_view_of(&rules, image, &view, &error), QKV_ERR_LIMIT);
    assert_non_null(strstr(error.message, "13440000 pixels after resizing"));
    assert_int_equal(qkvi_image_prepare(&rules, image, &one, NULL, &error), QKV_ERR_LIMIT);
    qkv_image_free(image);
    image = grey(1, 4097);
    rules = rules_of("{\"image_processor_type\": \"ViTImageProcessor\", \"do_resize\": false}");
    assert_int_equal(qkvi_image_prepare(&rules, image, &one, NULL, &error), QKV_ERR_LIMIT);
    assert_non_null(strstr(error.message, "4097 pixels for the model"));
    qkv_image_free(image);
    image = grey(65535, 1); /* all rows, as wide as the result, are held between the passes */
    rules = rules_of("{\"image_processor_type\": \"ViTImageProcessor\","
                     "\"size\": {\"height\": 1, \"width\": 4000}}");
    float *const pixels = malloc(3 * 4000 * sizeof *pixels);
    assert_int_equal(qkvi_image_prepare(&rules, image, pixels, NULL, &error), QKV_ERR_LIMIT);
    assert_non_null(strstr(error.message, "65535 rows"));
    free(pixels);
    qkv_image_free(image);
}

/* Both orders of bytes, and what is no orientation. */
static void test_orientation(void **state) {
    (void)state;
    for (int o = 0; o < 12; o++) {
        uint8_t little[] = { 'I', 'I', '*', 0, 8, 0, 0, 0,          1, 0, 0x12,
                             1,   3,   0,   1, 0, 0, 0, (uint8_t)o, 0, 0, 0 };
        uint8_t big[] = { 'M',  'M', 0, '*', 0, 0, 0, 8, 0,          1, 1,
                          0x12, 0,   3, 0,   0, 0, 1, 0, (uint8_t)o, 0, 0 };
        const int wanted = 1 <= o && o <= 8 ? o : 1;
        assert_int_equal(qkvi_exif_orientation(little, sizeof little), wanted);
        assert_int_equal(qkvi_exif_orientation(big, sizeof big), wanted);
        for (size_t n = 0; n < sizeof big; n++) assert_int_equal(qkvi_exif_orientation(big, n), 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_switches),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_files),
        cmocka_unit_test(test_sizes),    cmocka_unit_test(test_view),
        cmocka_unit_test(test_limits),   cmocka_unit_test(test_orientation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
