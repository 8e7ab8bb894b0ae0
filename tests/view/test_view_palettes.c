/**
 * Options of a heat map: palettes against the published colours, lightness that is monotone for
 * every kind of colour vision, ends of the scale, sizes, figures; and refusals by name.
 */
#include <sys/stat.h>

#include "lost_by_others.h"
#include "picture_files.h"
#include "view/palette.h"

const char *__lsan_default_suppressions(void) { return LOST_BY_OTHERS; }

#define FOLDER QKV_TEST_BUILD "/palettes"
#define PNG    FOLDER "/a.png"
#define SVG    FOLDER "/a.svg"

static int make_folder(void **state) {
    (void)state;
    mkdir(FOLDER, 0777);
    return 0;
}

/* ---- Colours --------------------------------------------------------------------------------- */

static int off(uint8_t channel, uint32_t color, int shift) {
    return abs((int)channel - (int)(color >> shift & 255));
}

/*
 * Some of the 256 colours that matplotlib 3 has, as it rounds them; between the places kept here.
 */
static void test_published(void **state) {
    (void)state;
    static const struct {
        int place;
        uint32_t color[2];
    } rows[] = { { 0, { 0x440154, 0x00224E } },   { 13, { 0x481467, 0x002C64 } },
                 { 41, { 0x453882, 0x293F6E } },  { 67, { 0x39558C, 0x46516C } },
                 { 100, { 0x2A768E, 0x656870 } }, { 127, { 0x21908D, 0x7C7B78 } },
                 { 150, { 0x21A585, 0x928C78 } }, { 171, { 0x37B878, 0xA69C74 } },
                 { 199, { 0x6ECE58, 0xC3B369 } }, { 226, { 0xB2DD2D, 0xE0CB56 } },
                 { 241, { 0xDAE319, 0xF1D945 } }, { 255, { 0xFDE725, 0xFEE838 } } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int which = 0; which < 2; which++) {
            const qkvi_rgb got = qkvi_palette_color(
                rows[i].place / 255.0, which ? QKV_PALETTE_CIVIDIS : QKV_PALETTE_VIRIDIS,
                QKV_THEME_LIGHT);
            const uint32_t wanted = rows[i].color[which];
            if (off(got.r, wanted, 16) > 6 || off(got.g, wanted, 8) > 6 ||
                off(got.b, wanted, 0) > 6)
                fail_msg("palette %d, colour %d: %02X%02X%02X, not %06X", which, rows[i].place,
                         got.r, got.g, got.b, wanted);
        }
    }
}

/* As eyes see it: normal, without red cones, without green ones (Machado et al. 2009). */
static double seen(qkvi_rgb color, int eye) {
    static const double rows[3][3] = { { 0.2126, 0.7152, 0.0722 },
                                       { 0.113988, 0.782646, 0.103366 },
                                       { 0.277552, 0.667054, 0.055401 } };
    const double channels[3] = { color.r, color.g, color.b };
    double luminance = 0;
    for (int c = 0; c < 3; c++) luminance += rows[eye][c] * pow(channels[c] / 255, 2.2);
    return luminance;
}

static void test_monotone(void **state) {
    (void)state;
    for (int p = QKV_PALETTE_QKV; p <= QKV_PALETTE_GREYS; p++) {
        for (int theme = 0; theme < 2; theme++) {
            const double sign =
                p == QKV_PALETTE_VIRIDIS || p == QKV_PALETTE_CIVIDIS || theme ? 1 : -1;
            for (int eye = 0; eye < 3; eye++) {
                double last = seen(qkvi_palette_color(0, (qkv_palette)p, (qkv_theme)theme), eye);
                for (int i = 1; i <= 32; i++) {
                    const double now =
                        seen(qkvi_palette_color(i / 32.0, (qkv_palette)p, (qkv_theme)theme), eye);
                    if (!(sign * (now - last) > 0))
                        fail_msg("palette %d, theme %d, eye %d: not monotone at %d", p, theme, eye,
                                 i);
                    last = now;
                }
            }
        }
    }
}

/* Greys by equal steps of L*, from their bytes: Y by sRGB, L* = 116 cbrt(Y) - 16. */
static void test_greys(void **state) {
    (void)state;
    static const double ends[2][2] = { { 96, 0 }, { 14, 100 } };
    for (int theme = 0; theme < 2; theme++) {
        for (int i = 0; i <= 10; i++) {
            const qkvi_rgb c = qkvi_palette_color(i / 10.0, QKV_PALETTE_GREYS, (qkv_theme)theme);
            const double s = c.r / 255.0,
                         y = s <= 0.04045 ? s / 12.92 : pow((s + 0.055) / 1.055, 2.4),
                         level = y > 0.008856 ? 116 * cbrt(y) - 16 : 903.3 * y,
                         wanted = ends[theme][0] + i / 10.0 * (ends[theme][1] - ends[theme][0]);
            assert_true(c.r == c.g && c.g == c.b);
            if (fabs(level - wanted) > 0.35) fail_msg("L* %g, not %g", level, wanted);
        }
    }
    for (int p = QKV_PALETTE_VIRIDIS; p <= QKV_PALETTE_GREYS; p++) { /* not to be mistaken */
        const qkvi_rgb nan = qkvi_palette_color(NAN, (qkv_palette)p, QKV_THEME_LIGHT);
        for (int i = 0; i <= 100; i++) {
            const qkvi_rgb c = qkvi_palette_color(i / 100.0, (qkv_palette)p, QKV_THEME_LIGHT);
            assert_true(abs(c.r - nan.r) + abs(c.g - nan.g) + abs(c.b - nan.b) > 60);
        }
    }
}

/* ---- Maps ------------------------------------------------------------------------------------ */

enum { N = 40 };
static float weights[N * N];
static qkv_error error;

static qkv_heatmap make(void) {
    for (int i = 0; i < N * N; i++) weights[i] = (float)(i % 5) / 10; /* 0 ... 0.4 */
    return (qkv_heatmap){
        .struct_size = sizeof(qkv_heatmap), .n_rows = N, .n_cols = N, .weights = weights
    };
}

static void draw(const qkv_heatmap *map, const char *path) {
    if (qkv_picture_heatmap_write(map, path, &error)) fail_msg("%s", error.message);
}

static void assert_cells(qkvi_rgb color, int64_t wanted) {
    const int64_t n = count_rgb(PNG, color);
    if (n < wanted || n > wanted + 600) /* the scale has it, too */
        fail_msg("%02X%02X%02X: %lld pixels, not %lld", color.r, color.g, color.b, (long long)n,
                 (long long)wanted);
}

static void test_ends(void **state) {
    (void)state;
    for (int p = QKV_PALETTE_QKV; p <= QKV_PALETTE_GREYS; p++) {
        for (int theme = 0; theme < 2; theme++) {
            const qkv_palette palette = (qkv_palette)p;
            qkv_heatmap map = make();
            map.palette = palette;
            map.theme = (qkv_theme)theme;
            map.figures = QKV_FIGURES_OFF;
            map.min = 0.1;
            map.max = 0.3;
            draw(&map, PNG); /* 0 and 0.1 are one colour, 0.3 and 0.4 another, 0.2 between */
            assert_cells(qkvi_palette_color(0, palette, map.theme), 2 * N * N / 5 * 26 * 26);
            assert_cells(qkvi_palette_color(1, palette, map.theme), 2 * N * N / 5 * 26 * 26);
            assert_cells(qkvi_palette_color((0.2f - 0.1) / 0.2, palette, map.theme),
                         N * N / 5 * 26 * 26);
            assert_words(PNG, "Colours run from 0.1 to 0.3, and what is beyond has the colour of "
                              "the end; the largest weight is 0.400.");
        }
    }
}

static void test_scale_numbers(void **state) {
    (void)state;
    static const struct {
        double min, max;
        const char *numbers[3];
        const char *none;
    } rows[] = { { 0, 0.9, { ">0.9<", ">0.3<", ">0.6<" }, ">0.25<" },
                 { 0.05, 0.37, { ">0.05<", ">0.21<", ">0.37<" }, ">0.2<" },
                 { 0, 2, { ">0<", ">1<", ">2<" }, ">0.5<" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_heatmap map = make();
        map.min = rows[i].min;
        map.max = rows[i].max;
        draw(&map, SVG);
        for (int t = 0; t < 3; t++) assert_words(SVG, rows[i].numbers[t]);
        size_t n;
        char *bytes = load(SVG, &n);
        assert_lacks(bytes, n, rows[i].none);
        free(bytes);
    }
}

static int count_words(const char *path, const char *words) {
    size_t n;
    char *bytes = load(path, &n), *at = bytes;
    int count = 0;
    while ((at = memmem(at, n - (size_t)(at - bytes), words, strlen(words)))) {
        at += strlen(words);
        count++;
    }
    free(bytes);
    return count;
}

static void test_figures(void **state) {
    (void)state;
    qkv_heatmap map = make();
    map.figures = QKV_FIGURES_ON; /* 28 pixels are enough */
    draw(&map, SVG);
    for (int k = 0; k < 5; k++) {
        char words[16];
        snprintf(words, sizeof words, ">0.%d0<", k);
        assert_int_equal(count_words(SVG, words), N * N / 5);
    }
    map.n_rows = map.n_cols = 4; /* large cells have them unless they are turned off */
    map.figures = QKV_FIGURES_AUTO;
    draw(&map, SVG);
    assert_int_equal(count_words(SVG, ">0.40<"), 3);
    assert_int_equal(count_words(SVG, ">0.00<"), 0);
    map.figures = QKV_FIGURES_OFF;
    draw(&map, SVG);
    assert_int_equal(count_words(SVG, ">0.40<"), 0);
    qkv_head_grid grid = { .struct_size = sizeof grid,
                           .n_layers = 2,
                           .n_heads = 3,
                           .n = 5,
                           .weights = weights,
                           .figures = QKV_FIGURES_ON,
                           .palette = QKV_PALETTE_CIVIDIS };
    if (qkv_picture_grid_write(&grid, SVG, &error)) fail_msg("%s", error.message);
    assert_int_equal(count_words(SVG, ">0.20<"), 6 * 5);
}

static void test_hidden_figures(void **state) {
    (void)state;
    qkv_heatmap map = make();
    uint8_t hidden[16] = { 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0 };
    map.n_rows = map.n_cols = 4;
    map.hidden = hidden;
    map.figures = QKV_FIGURES_ON;
    draw(&map, SVG);
    assert_int_equal(count_words(SVG, ">0."), 10 + 4); /* cells, and numbers of the scale above 0 */
    assert_int_equal(count_words(SVG, ">-"), 0);
}

static void test_size(void **state) {
    (void)state;
    static const int64_t sizes[] = { 64, 400, 1300, 5000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        qkv_heatmap map = make();
        map.size = sizes[i];
        map.figures = QKV_FIGURES_OFF;
        draw(&map, PNG);
        const int64_t cell = sizes[i] / N, gap = cell >= 24 ? 2 : cell >= 14 ? 1 : 0;
        assert_cells(qkvi_weight_color(0.5f, QKV_THEME_LIGHT),
                     N * N / 5 * (cell - gap) * (cell - gap));
    }
}

static void refused(const qkv_heatmap *map, qkv_status status, const char *words) {
    assert_int_equal(qkv_picture_heatmap_write(map, PNG, &error), status);
    if (!strstr(error.message, words)) fail_msg("\"%s\" lacks \"%s\"", error.message, words);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        double min, max;
        int is_signed;
        const char *words;
    } ends[] = { { 0.3, 0.3, 0, "min must be below max" },
                 { 0, -1, 0, "min must be below max" },
                 { NAN, 1, 0, "within 1e9" },
                 { 0, INFINITY, 0, "within 1e9" },
                 { 0.5, 0, 0, "must be below the end" },
                 { 0.1, 1, 1, "must be 0 or -max" },
                 { 0, -1, 1, "max must not be below 0" } };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        qkv_heatmap map = make();
        map.min = ends[i].min;
        map.max = ends[i].max;
        map.is_signed = ends[i].is_signed;
        refused(&map, QKV_ERR_ARGUMENT, ends[i].words);
    }
    qkv_heatmap map = make();
    map.palette = (qkv_palette)4;
    refused(&map, QKV_ERR_ARGUMENT, "palette = 4");
    map.palette = QKV_PALETTE_GREYS;
    map.is_signed = 1;
    refused(&map, QKV_ERR_ARGUMENT, "values around 0");
    map = make();
    map.figures = (qkv_figures)3;
    refused(&map, QKV_ERR_ARGUMENT, "figures = 3");
    map = make();
    map.size = 63;
    refused(&map, QKV_ERR_ARGUMENT, "size = 63");
    map.size = 1119;
    map.figures = QKV_FIGURES_ON;
    refused(&map, QKV_ERR_LIMIT, "at least 1120 pixels");
    map = make();
    map.low = -1;
    map.high = map.max = 1;
    refused(&map, QKV_ERR_ARGUMENT, "low and high");
}

static void test_many_figures(void **state) {
    (void)state;
    enum { MANY = 293 };
    float *const many = calloc((size_t)MANY * MANY, sizeof *many);
    qkv_heatmap map = make();
    map.n_rows = map.n_cols = MANY;
    map.weights = many;
    map.figures = QKV_FIGURES_ON;
    refused(&map, QKV_ERR_LIMIT, "at most 292");
    free(many);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published),      cmocka_unit_test(test_monotone),
        cmocka_unit_test(test_greys),          cmocka_unit_test_setup(test_ends, make_folder),
        cmocka_unit_test(test_scale_numbers),  cmocka_unit_test(test_figures),
        cmocka_unit_test(test_hidden_figures), cmocka_unit_test(test_size),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_many_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
