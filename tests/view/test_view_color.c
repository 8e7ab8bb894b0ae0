/**
 * Colours of weights: monotone lightness for every kind of colour vision, near the page at 0, and
 * text readable on them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "view/theme.h"

enum { N_STEPS = 1000 };

static double linear(double channel) {
    const double c = channel / 255;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

/* Luminance as seen by an eye: normal, without red cones, without green cones (Machado et al.
 * 2009). */
static double seen(qkvi_rgb color, int eye) {
    static const double rows[3][3][3] = {
        { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } },
        { { 0.152286, 1.052583, -0.204868 },
          { 0.114503, 0.786281, 0.099216 },
          { -0.003882, -0.048116, 1.051998 } },
        { { 0.367322, 0.860646, -0.227968 },
          { 0.280085, 0.672501, 0.047413 },
          { -0.011820, 0.042940, 0.968881 } },
    };
    static const double weights[3] = { 0.2126, 0.7152, 0.0722 };
    const double rgb[3] = { linear(color.r), linear(color.g), linear(color.b) };
    double luminance = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) luminance += weights[i] * rows[eye][i][j] * rgb[j];
    return luminance;
}

static double contrast(qkvi_rgb a, qkvi_rgb b) {
    const double x = qkvi_luminance(a) + 0.05, y = qkvi_luminance(b) + 0.05;
    return x > y ? x / y : y / x;
}

static int same(qkvi_rgb a, qkvi_rgb b) { return a.r == b.r && a.g == b.g && a.b == b.b; }

static void test_monotone(void **state) {
    (void)state;
    for (int theme = 0; theme < 2; theme++) {
        const double sign = theme == QKV_THEME_DARK ? 1 : -1;
        for (int eye = 0; eye < 3; eye++) {
            double last = seen(qkvi_weight_color(0, (qkv_theme)theme), eye);
            for (int i = 20; i <= N_STEPS; i += 20) { /* one step of fifty can be told apart */
                const double now =
                    seen(qkvi_weight_color((double)i / N_STEPS, (qkv_theme)theme), eye);
                assert_true(sign * (now - last) > 0);
                last = now;
            }
        }
    }
}

static void test_ends(void **state) {
    (void)state;
    for (int theme = 0; theme < 2; theme++) {
        const qkvi_rgb page = qkvi_palette_of((qkv_theme)theme)->page;
        const qkvi_rgb zero = qkvi_weight_color(0, (qkv_theme)theme);
        const qkvi_rgb one = qkvi_weight_color(1, (qkv_theme)theme);
        assert_true(contrast(zero, page) > 1.02 && contrast(zero, page) < 1.25);
        assert_true(contrast(one, page) > 12);
        assert_true(same(qkvi_weight_color(-5, (qkv_theme)theme), zero));
        assert_true(same(qkvi_weight_color(INFINITY, (qkv_theme)theme), one));
        const qkvi_rgb grey = qkvi_weight_color(NAN, (qkv_theme)theme);
        assert_true(grey.r == grey.g && grey.g == grey.b);
    }
}

static void test_public(void **state) {
    (void)state;
    for (int i = 0; i <= 10; i++) {
        const qkvi_rgb color = qkvi_weight_color(i / 10.0, QKV_THEME_DARK);
        uint8_t rgb[3];
        qkv_picture_color(i / 10.0, QKV_THEME_DARK, rgb);
        assert_true(rgb[0] == color.r && rgb[1] == color.g && rgb[2] == color.b);
    }
}

static void test_readable(void **state) {
    (void)state;
    for (int theme = 0; theme < 2; theme++) {
        const qkvi_palette *palette = qkvi_palette_of((qkv_theme)theme);
        assert_true(contrast(palette->strong, palette->page) >= 7);
        assert_true(contrast(palette->text, palette->page) >= 7);
        assert_true(contrast(palette->faint, palette->page) >= 4.5);
        assert_true(contrast(palette->mark, palette->page) >= 4.5);
        for (int i = 0; i <= N_STEPS; i++) {
            const qkvi_rgb color = qkvi_weight_color((double)i / N_STEPS, (qkv_theme)theme);
            assert_true(contrast(qkvi_ink_on(color), color) >= 4.2);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_monotone),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_public),
        cmocka_unit_test(test_readable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
