/**
 * Pictures as SVG and PDF: cells have the place and the colour of their weights, words are inside
 * as text, the file has the size of the PNG in inches, fonts are embedded, and the same input gives
 * the same bytes, however many pictures the process has drawn before.
 *
 * Outlines of text are not compared: they depend on the system's fonts.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <cairo.h>

#include "files/file.h"
#include "odd_map.h"
#include "view/theme.h"

#define FOLDER QKV_TEST_BUILD "/vectors"

enum { N = 40, CELL = 26, PITCH = 28 }; /* pixels a side, without and with the gap */

static const double POINTS = 72.0 / 192; /* per pixel */
static float weights[N * N];
static const char *labels[N];

static int make_folder(void **state) {
    (void)state;
    mkdir(FOLDER, 0777);
    return 0;
}

static qkv_heatmap make_map(int theme) {
    for (int i = 0; i < N * N; i++) weights[i] = (float)(i * 37 % 61) / 60;
    for (int i = 0; i < N; i++) labels[i] = i == 3 ? "<&\"\n>" : i % 3 ? "word" : "##piece";
    return (qkv_heatmap){ .struct_size = sizeof(qkv_heatmap),
                          .n_rows = N,
                          .n_cols = N,
                          .weights = weights,
                          .row_labels = labels,
                          .col_labels = labels,
                          .title = "A title <b> & words",
                          .caption = "First line\nsecond ]]> line",
                          .theme = (qkv_theme)theme };
}

/* Draws and loads; to be freed. */
static char *draw(const qkv_heatmap *map, const char *path, size_t *n) {
    char *bytes = NULL;
    qkv_error error;
    if (qkv_picture_heatmap_write(map, path, &error)) fail_msg("%s", error.message);
    if (qkvi_file_load(path, 1 << 26, &bytes, n, &error)) fail_msg("%s", error.message);
    return bytes;
}

static void assert_holds(const char *bytes, size_t n, const char *words) {
    if (!memmem(bytes, n, words, strlen(words))) fail_msg("no \"%s\" inside", words);
}

static void assert_lacks(const char *bytes, size_t n, const char *words) {
    if (memmem(bytes, n, words, strlen(words))) fail_msg("\"%s\" inside", words);
}

/* Width and height of the same map as a PNG, in points. */
static void png_size(const qkv_heatmap *map, double size[2]) {
    qkv_error error;
    if (qkv_picture_heatmap_write(map, FOLDER "/a.png", &error)) fail_msg("%s", error.message);
    cairo_surface_t *surface = cairo_image_surface_create_from_png(FOLDER "/a.png");
    size[0] = cairo_image_surface_get_width(surface) * POINTS;
    size[1] = cairo_image_surface_get_height(surface) * POINTS;
    cairo_surface_destroy(surface);
}

static int is_color(const double percent[3], qkvi_rgb color) {
    return fabs(percent[0] * 2.55 - color.r) < 0.01 && fabs(percent[1] * 2.55 - color.g) < 0.01 &&
           fabs(percent[2] * 2.55 - color.b) < 0.01;
}

/* ---- SVG ------------------------------------------------------------------------------------- */

/* The next rectangle of a cell's size after *at: its corner and its colour. */
static int next_cell(const char **at, double corner[2], double percent[3]) {
    while ((*at = strstr(*at, "fill:rgb("))) {
        double x1, y1, x2, y2;
        const int n = sscanf(
            *at, "fill:rgb(%lf%%,%lf%%,%lf%%);fill-opacity:1;\" d=\"M %lf %lf L %lf %lf L %lf %lf",
            &percent[0], &percent[1], &percent[2], &corner[0], &corner[1], &x1, &y1, &x2, &y2);
        ++*at;
        if (n == 9 && fabs(x2 - corner[0] - CELL * POINTS) < 1e-3 &&
            fabs(y2 - corner[1] - CELL * POINTS) < 1e-3)
            return 1;
    }
    return 0;
}

static void test_svg_cells(void **state) {
    (void)state;
    for (int theme = 0; theme < 2; theme++) {
        const qkv_heatmap map = make_map(theme);
        size_t n;
        char *svg = draw(&map, FOLDER "/a.svg", &n);
        const char *at = svg;
        double corner[2], first[2] = { 0, 0 }, percent[3];
        int i = 0;
        for (; next_cell(&at, corner, percent); i++) {
            if (i == 0) memcpy(first, corner, sizeof first);
            assert_true(i < N * N);
            if (!is_color(percent, qkvi_weight_color((double)weights[i], map.theme)) ||
                fabs(corner[0] - first[0] - i % N * PITCH * POINTS) > 1e-3 ||
                fabs(corner[1] - first[1] - i / N * PITCH * POINTS) > 1e-3)
                fail_msg("cell %d of theme %d is at (%g, %g)", i, theme, corner[0], corner[1]);
        }
        assert_int_equal(i, N * N);
        free(svg);
    }
}

/* Every tag is closed in order, and text holds no '<' of its own. */
static void assert_nests(const char *text) {
    const char *open[64];
    int depth = 0;
    for (const char *at = strchr(text + 1, '<'); at; at = strchr(at + 1, '<')) {
        const char *end = strchr(at, '>');
        assert_non_null(end);
        if (at[1] == '/') {
            assert_true(depth > 0);
            const size_t n = (size_t)(end - at - 2);
            if (strncmp(open[--depth], at + 2, n) != 0)
                fail_msg("%.20s is not closed", open[depth]);
        } else if (end[-1] != '/') {
            assert_true(depth < 64);
            open[depth++] = at + 1;
        }
    }
    assert_int_equal(depth, 0);
}

static void test_svg_words(void **state) {
    (void)state;
    const qkv_heatmap map = make_map(0);
    size_t n;
    double size[2];
    char opening[200], *svg = draw(&map, FOLDER "/a.svg", &n);
    assert_holds(svg, n, "<title>A title &lt;b&gt; &amp; words</title>");
    assert_holds(svg, n, "<desc>First line\nsecond ]]&gt; line\nColours run from 0 to 1; ");
    assert_holds(svg, n, "fill-opacity=\"0\"");
    assert_holds(svg, n, ">&lt;&amp;\"\\x0a&gt;</text>");
    int words = 0;
    for (const char *at = svg; (at = strstr(at, ">##piece</text>")); at++) words++;
    assert_int_equal(words, 2 * 13);
    assert_nests(svg);
    png_size(&map, size);
    snprintf(opening, sizeof opening, "width=\"%.10gpt\" height=\"%.10gpt\"", size[0], size[1]);
    assert_holds(svg, n, opening);
    free(svg);
}

/* ---- PDF ------------------------------------------------------------------------------------- */

static void test_pdf(void **state) {
    (void)state;
    const qkv_heatmap map = make_map(1);
    size_t n;
    double size[2];
    char box[100], *pdf = draw(&map, FOLDER "/a.pdf", &n);
    assert_memory_equal(pdf, "%PDF-1.", 7);
    assert_lacks(pdf, n, "Date");
    assert_holds(pdf, n, "/Title (A title <b> & words)");
    assert_holds(pdf, n, "/FontFile");
    assert_lacks(pdf, n, "/Subtype /Image");
    png_size(&map, size);
    snprintf(box, sizeof box, "[ 0 0 %.10g %.10g ]", size[0], size[1]);
    assert_holds(pdf, n, box);
    free(pdf);
}

/* ---- Both ------------------------------------------------------------------------------------ */

static void test_same_bytes(void **state) {
    (void)state;
    static const char *const paths[] = { FOLDER "/b.svg", FOLDER "/b.pdf" };
    static float many[128 * 128];
    for (int i = 0; i < 4; i++) {
        qkv_heatmap map = make_map(0);
        if (i >= 2) { /* without labels, and as an image */
            map.n_rows = map.n_cols = 128;
            map.weights = many;
            map.row_labels = map.col_labels = NULL;
        }
        size_t n_a, n_b;
        char *a = draw(&map, paths[i % 2], &n_a);
        setenv("LANG", "de_DE.UTF-8", 1);
        setenv("SOURCE_DATE_EPOCH", i % 2 ? "1" : "1000000000", 1);
        char *b = draw(&map, paths[i % 2], &n_b);
        assert_int_equal(n_a, n_b);
        assert_memory_equal(a, b, n_a);
        const char *const image = i % 2 ? "/Subtype /Image" : "<image";
        assert_int_equal(memmem(a, n_a, image, strlen(image)) != NULL, i >= 2);
        free(a);
        free(b);
    }
}

static void test_grid_and_curve(void **state) {
    (void)state;
    float all[2 * 3 * 5 * 5] = { 0.5f };
    const double x[] = { 0, 1, 2 }, y[] = { 3, NAN, 1 };
    const qkv_head_grid grid = { .struct_size = sizeof grid,
                                 .n_layers = 2,
                                 .n_heads = 3,
                                 .n = 5,
                                 .weights = all,
                                 .title = "Grid",
                                 .theme = QKV_THEME_DARK };
    const qkv_curve curve = {
        sizeof curve, 3, x, y, "step", "loss", "Loss", NULL, QKV_THEME_LIGHT
    };
    static const char *const paths[] = { FOLDER "/c.svg", FOLDER "/c.pdf" };
    for (int i = 0; i < 4; i++) {
        qkv_error error;
        char *bytes = NULL;
        size_t n;
        if (i < 2 ? qkv_picture_grid_write(&grid, paths[i], &error)
                  : qkv_picture_curve_write(&curve, paths[i - 2], &error))
            fail_msg("%s", error.message);
        if (qkvi_file_load(paths[i % 2], 1 << 26, &bytes, &n, &error))
            fail_msg("%s", error.message);
        const char *title = i < 2 ? "Grid" : "Loss";
        assert_holds(bytes, n, title);
        if (i % 2 == 0) assert_nests(bytes);
        if (i == 0) assert_holds(bytes, n, ">layer 1</text>");
        if (i == 2) assert_holds(bytes, n, ">step</text>");
        free(bytes);
    }
}

/* Labels of any bytes, a map of one cell, and one that is folded. */
static void test_any_input(void **state) {
    (void)state;
    float *row = calloc(9000, sizeof *row);
    static const char *const paths[] = { FOLDER "/d.svg", FOLDER "/d.pdf" };
    for (int i = 0; i < 2; i++) {
        qkv_heatmap map = make_map(i);
        size_t n;
        make_odd(&map);
        char *bytes = draw(&map, paths[i], &n);
        if (i == 0) assert_nests(bytes);
        free(bytes);
        map.row_labels = map.col_labels = NULL;
        map.title = map.caption = NULL;
        map.n_rows = map.n_cols = 1;
        free(draw(&map, paths[i], &n));
        map.n_cols = 9000;
        map.weights = row;
        free(draw(&map, paths[i], &n));
    }
    free(row);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_svg_cells),  cmocka_unit_test(test_svg_words),
        cmocka_unit_test(test_pdf),        cmocka_unit_test(test_grid_and_curve),
        cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_any_input),
    };
    return cmocka_run_group_tests(tests, make_folder, NULL);
}
