/*
 * Helpers for tests of picture files: bytes, words in them, comparison with another file, pixels of
 * a colour.
 */
#ifndef QKV_TESTS_PICTURE_FILES_H
#define QKV_TESTS_PICTURE_FILES_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cairo.h>

#include "files/file.h"
#include "view/cells.h"

static inline char *load(const char *path, size_t *n) {
    char *bytes = NULL;
    qkv_error error;
    if (qkvi_file_load(path, 1 << 26, &bytes, n, &error)) fail_msg("%s", error.message);
    return bytes;
}

static inline void assert_holds(const char *bytes, size_t n, const char *words) {
    if (!memmem(bytes, n, words, strlen(words))) fail_msg("no \"%s\" inside", words);
}

static inline void assert_lacks(const char *bytes, size_t n, const char *words) {
    if (memmem(bytes, n, words, strlen(words))) fail_msg("\"%s\" inside", words);
}

static inline void assert_words(const char *path, const char *words) {
    size_t n;
    char *bytes = load(path, &n);
    assert_holds(bytes, n, words);
    free(bytes);
}

static inline void assert_same_files(const char *path_a, const char *path_b) {
    size_t n_a, n_b;
    char *a = load(path_a, &n_a), *b = load(path_b, &n_b);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a);
    free(a);
    free(b);
}

/* The number of pixels whose channels, 0 ... 255, are within `near` of a colour. */
static inline int64_t count_pixels(const char *path, const double color[3], double near) {
    cairo_surface_t *surface = cairo_image_surface_create_from_png(path);
    assert_int_equal(cairo_surface_status(surface), CAIRO_STATUS_SUCCESS);
    const unsigned char *const data = cairo_image_surface_get_data(surface);
    const int stride = cairo_image_surface_get_stride(surface);
    int64_t n = 0;
    for (int y = 0; y < cairo_image_surface_get_height(surface); y++) {
        for (int x = 0; x < cairo_image_surface_get_width(surface); x++) {
            uint32_t pixel;
            memcpy(&pixel, data + (size_t)y * (size_t)stride + 4 * (size_t)x, sizeof pixel);
            n += fabs((pixel >> 16 & 255) - color[0]) <= near &&
                 fabs((pixel >> 8 & 255) - color[1]) <= near &&
                 fabs((pixel & 255) - color[2]) <= near;
        }
    }
    cairo_surface_destroy(surface);
    return n;
}

static inline int64_t count_rgb(const char *path, qkvi_rgb color) {
    return count_pixels(path, (const double[3]){ color.r, color.g, color.b }, 0);
}

#endif
