/*
 * Heat maps of values that are no weights: colours where they belong, the same bytes again, words
 * inside, what cannot be drawn refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <cairo.h>

#include "lost_by_others.h"
#include "model/store/file.h"
#include "view/cells.h"

const char *__lsan_default_suppressions(void) { return LOST_BY_OTHERS; }

#define FOLDER QKV_TEST_BUILD "/values"
#define FILE_A FOLDER "/a.png"
#define FILE_B FOLDER "/b.png"

static int make_folder(void **state) {
    (void)state;
    mkdir(FOLDER, 0777);
    unlink(FILE_A);
    unlink(FILE_B);
    return 0;
}

static char *load(const char *path, size_t *n) {
    char *bytes = NULL;
    qkv_error error;
    if (qkvi_file_load(path, 1 << 26, &bytes, n, &error)) fail_msg("%s", error.message);
    return bytes;
}

static void assert_words(const char *path, const char *words) {
    size_t n;
    char *bytes = load(path, &n);
    if (!memmem(bytes, n, words, strlen(words))) fail_msg("no \"%s\" inside", words);
    free(bytes);
}

static void assert_same_files(void) {
    size_t n_a, n_b;
    char *a = load(FILE_A, &n_a), *b = load(FILE_B, &n_b);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a);
    free(a);
    free(b);
}

static int64_t count_pixels(const char *path, qkvi_rgb color) {
    cairo_surface_t *surface = cairo_image_surface_create_from_png(path);
    assert_int_equal(cairo_surface_status(surface), CAIRO_STATUS_SUCCESS);
    const unsigned char *data = cairo_image_surface_get_data(surface);
    const int stride = cairo_image_surface_get_stride(surface);
    const uint32_t wanted = (uint32_t)color.r << 16 | (uint32_t)color.g << 8 | color.b;
    int64_t n = 0;
    for (int y = 0; y < cairo_image_surface_get_height(surface); y++)
        for (int x = 0; x < cairo_image_surface_get_width(surface); x++) {
            uint32_t pixel;
            memcpy(&pixel, data + (size_t)y * (size_t)stride + 4 * (size_t)x, sizeof pixel);
            n += (pixel & 0xFFFFFF) == wanted;
        }
    cairo_surface_destroy(surface);
    return n;
}

/* ---- Values ---------------------------------------------------------------------------------- */

enum { N = 40, CELL = 26 * 26 };

static void test_values(void **state) {
    (void)state;
    static float values[N * N];
    qkv_error error;
    for (int i = 0; i < N * N; i++) values[i] = (float)(i % 5) / 2 - 1; /* -1, -0.5, 0, 0.5, 1 */
    const qkv_heatmap map = { .struct_size = sizeof map,
                              .n_rows = N,
                              .n_cols = N,
                              .weights = values,
                              .title = "Values",
                              .low = -1,
                              .high = 1 };
    if (qkv_view_heatmap_write(&map, FILE_A, &error)) fail_msg("%s", error.message);
    if (qkv_view_heatmap_write(&map, FILE_B, &error)) fail_msg("%s", error.message);
    assert_same_files();
    for (int k = 0; k < 5; k++) {
        const int64_t n = count_pixels(FILE_A, qkvi_weight_color(k / 4.0, QKV_THEME_LIGHT));
        const int64_t wanted = N * N / 5 * CELL;
        if (n < wanted || n > wanted + 200) fail_msg("%d: %lld pixels", k, (long long)n);
    }
    assert_words(FILE_A, "Colours run from -1 to 1.");
    size_t n;
    char *bytes = load(FILE_A, &n);
    assert_null(memmem(bytes, n, "reasons", 7)); /* these are no weights */
    free(bytes);
}

/* Beyond the ends: the colours at the ends. */
static void test_clamped(void **state) {
    (void)state;
    static float values[N * N];
    for (int i = 0; i < N * N; i++) values[i] = i % 2 ? 7 : -7;
    qkv_heatmap map = { .struct_size = sizeof map,
                        .n_rows = N,
                        .n_cols = N,
                        .weights = values,
                        .low = -0.25,
                        .high = 3 };
    assert_int_equal(qkv_view_heatmap_write(&map, FILE_A, NULL), QKV_OK);
    assert_true(count_pixels(FILE_A, qkvi_weight_color(1, QKV_THEME_LIGHT)) >= N * N / 2 * CELL);
    assert_true(count_pixels(FILE_A, qkvi_weight_color(0, QKV_THEME_LIGHT)) >= N * N / 2 * CELL);
    assert_words(FILE_A, "Colours run from -0.25 to 3.");
    const double wrong[][2] = { { 1, 1 },         { 2, 1 },        { NAN, 1 }, { 0, NAN },
                                { -INFINITY, 0 }, { 0, INFINITY }, { 0, -1 } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        qkv_error error;
        map.low = wrong[i][0];
        map.high = wrong[i][1];
        assert_int_equal(qkv_view_heatmap_write(&map, FILE_A, &error), QKV_ERR_ARGUMENT);
        assert_non_null(strstr(error.message, "low must be below high"));
    }
}

static void test_scale(void **state) {
    (void)state;
    const qkvi_scale scale = qkvi_scale_between(-2, 6);
    assert_true(qkvi_scale_place(&scale, -2) == 0 && qkvi_scale_place(&scale, 6) == 1);
    assert_true(qkvi_scale_place(&scale, 0) == 0.25 && isnan(qkvi_scale_place(&scale, NAN)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_values, make_folder),
        cmocka_unit_test_setup(test_clamped, make_folder),
        cmocka_unit_test(test_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
