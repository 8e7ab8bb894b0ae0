/**
 * Maps of points: labels do not overlap each other, points or lines; labels without room are
 * counted; marks have the place and the colour of their points; hostile maps are refused by name.
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

#include <cmocka.h>

#include <cairo.h>

#include "files/file.h"
#include "qkv/picture.h"
#include "view/labels.h"
#include "view/theme.h"

#define FOLDER QKV_TEST_BUILD "/points"

/* fontconfig keeps what it parsed until the process ends; LeakSanitizer asks here. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libfontconfig"; }

enum { MOST = 2000 };

static double xy[2 * MOST];
static const char *labels[MOST];
static qkv_error error;

static int make_folder(void **state) {
    (void)state;
    mkdir(FOLDER, 0777);
    return 0;
}

static qkv_point_map make(int64_t n_queries, int64_t n_keys) {
    for (int i = 0; i < n_queries + n_keys; i++) {
        xy[2 * i] = 10 * sin(i * 12.9898 + 1);
        xy[2 * i + 1] = 10 * cos(i * 78.233);
        labels[i] = i % 3 ? "word" : "longer";
    }
    return (qkv_point_map){ .struct_size = sizeof(qkv_point_map),
                            .n_queries = n_queries,
                            .n_keys = n_keys,
                            .xy = xy,
                            .labels = labels,
                            .title = "Points",
                            .caption = "A caption." };
}

static void draw(const qkv_point_map *map, const char *path) {
    if (qkv_picture_points_write(map, path, &error)) fail_msg("%s", error.message);
}

static char *load(const char *path, size_t *n) {
    char *bytes = NULL;
    if (qkvi_file_load(path, 1 << 26, &bytes, n, &error)) fail_msg("%s", error.message);
    return bytes;
}

/* ---- Labels ---------------------------------------------------------------------------------- */

static int meet(const qkvi_box *a, const qkvi_box *b) {
    return a->x < b->x + b->width && b->x < a->x + a->width && a->y < b->y + b->height &&
           b->y < a->y + a->height;
}

static void labels_do_not_collide(void **state) {
    (void)state;
    enum { N = 400 };
    static qkvi_box marks[N], placed[N];
    int n_placed = 0;
    qkvi_raster raster;
    assert_true(qkvi_raster_make(&raster, 1280, 700));
    for (int i = 0; i < N; i++) {
        marks[i] = (qkvi_box){ 640 + 600 * sin(i * 12.9898), 350 + 340 * cos(i * 78.233), 12, 12 };
        qkvi_raster_take(&raster, &marks[i]);
    }
    for (int i = 0; i < N; i++) {
        qkvi_box box = { 0, 0, 30 + i % 5 * 17, 20 };
        if (!qkvi_raster_place(&raster, marks[i].x + 6, marks[i].y + 6, 12, 2, &box)) continue;
        for (int j = 0; j < N; j++) assert_false(meet(&box, &marks[j]));
        for (int j = 0; j < n_placed; j++) assert_false(meet(&box, &placed[j]));
        assert_true(box.x >= 0 && box.y >= 0 && box.x + box.width <= 1280 &&
                    box.y + box.height <= 700);
        placed[n_placed++] = box;
    }
    assert_true(n_placed > 100 && n_placed < N);
    qkvi_raster_free(&raster);
}

static void lines_are_kept_off(void **state) {
    (void)state;
    qkvi_raster raster;
    qkvi_box box = { 0, 0, 40, 20 };
    assert_true(qkvi_raster_make(&raster, 400, 400));
    qkvi_raster_take_line(&raster, 200, 200, 390, 200);
    assert_true(qkvi_raster_place(&raster, 200, 200, 12, 2, &box));
    assert_true(box.x + box.width <= 190); /* not to the right, where the line is */
    qkvi_raster_take_line(&raster, 0, 0, 400, 0);
    for (int y = 0; y < 400; y += 4) qkvi_raster_take_line(&raster, 0, y, 399, y);
    assert_false(qkvi_raster_place(&raster, 200, 200, 12, 2, &box));
    qkvi_raster_free(&raster);
}

/* Where all is taken around a point, its label stands farther off, and nothing crosses the line. */
static void labels_are_led_to(void **state) {
    (void)state;
    qkvi_raster raster;
    qkvi_box box = { 0, 0, 40, 20 };
    double from_x, from_y, x, y;
    assert_true(qkvi_raster_make(&raster, 400, 400));
    const qkvi_box above = { 120, 120, 160, 66 }, below = { 120, 214, 160, 66 },
                   left = { 120, 186, 60, 28 };
    qkvi_raster_take(&raster, &above);
    qkvi_raster_take(&raster, &below);
    qkvi_raster_take(&raster, &left);
    const qkvi_box right = { 220, 190, 24, 8 }; /* leaves no room beside, only a way */
    qkvi_raster_take(&raster, &right);
    assert_false(qkvi_raster_place(&raster, 200, 200, 12, 2, &box));
    assert_true(qkvi_raster_lead(&raster, 200, 200, 12, &box, &from_x, &from_y));
    assert_false(meet(&box, &above) || meet(&box, &below) || meet(&box, &left) ||
                 meet(&box, &right));
    qkvi_box_near(&box, from_x, from_y, &x, &y);
    assert_true(hypot(from_x - 200, from_y - 200) > 11 && hypot(x - 200, y - 200) > 30);
    for (int i = 0; i <= 50; i++) {
        const qkvi_box dot = { from_x + (x - from_x) * i / 50, from_y + (y - from_y) * i / 50, 0,
                               0 };
        assert_false(meet(&dot, &above) || meet(&dot, &below) || meet(&dot, &left) ||
                     meet(&dot, &right));
    }
    for (int row = 0; row < 400; row += 4) qkvi_raster_take_line(&raster, 0, row, 399, row);
    assert_false(qkvi_raster_lead(&raster, 200, 200, 12, &box, &from_x, &from_y));
    qkvi_raster_free(&raster);
}

/* A wider field has room for more labels. */
static void a_larger_map_shows_more(void **state) {
    (void)state;
    size_t n;
    int shown[2];
    for (int i = 0; i < 2; i++) {
        qkv_point_map map = make(MOST / 2, MOST / 2);
        map.size = i ? 4000 : 0;
        draw(&map, FOLDER "/size.svg");
        char *svg = load(FOLDER "/size.svg", &n);
        const char *count = memmem(svg, n, " of 2000 labels found room", 26);
        assert_non_null(count);
        while (count[-1] >= '0' && count[-1] <= '9') count--;
        shown[i] = atoi(count);
        free(svg);
    }
    assert_true(shown[1] > 2 * shown[0]);
}

static void what_finds_no_room_is_counted(void **state) {
    (void)state;
    size_t n;
    qkv_point_map map = make(9, 9);
    draw(&map, FOLDER "/few.svg");
    char *svg = load(FOLDER "/few.svg", &n);
    assert_null(memmem(svg, n, "found room", 10));
    assert_non_null(memmem(svg, n, "the points span", 15));
    free(svg);
    map = make(MOST / 2, MOST / 2);
    draw(&map, FOLDER "/many.svg");
    svg = load(FOLDER "/many.svg", &n);
    const char *count = memmem(svg, n, " of 2000 labels found room", 26);
    assert_non_null(count);
    while (count[-1] >= '0' && count[-1] <= '9') count--;
    const int shown = atoi(count);
    assert_true(shown > 20 && shown < 2000);
    int words = 0;
    for (const char *at = svg; (at = memmem(at, n - (size_t)(at - svg), ">word<", 6)); at++)
        words++;
    for (const char *at = svg; (at = memmem(at, n - (size_t)(at - svg), ">longer<", 8)); at++)
        words++;
    assert_int_equal(words, shown);
    free(svg);
}

/* ---- Marks ----------------------------------------------------------------------------------- */

static int has_color(cairo_surface_t *surface, int r, int g, int b) {
    const unsigned char *data = cairo_image_surface_get_data(surface);
    const int stride = cairo_image_surface_get_stride(surface), found = r << 16 | g << 8 | b;
    int n = 0;
    for (int y = 0; y < cairo_image_surface_get_height(surface); y++)
        for (int x = 0; x < cairo_image_surface_get_width(surface); x++) {
            uint32_t pixel;
            memcpy(&pixel, data + y * stride + 4 * x, 4);
            n += (int)(pixel & 0xFFFFFF) == found;
        }
    return n;
}

/* Contrast of WCAG 2 between two colours. */
static double contrast(qkvi_rgb a, qkvi_rgb b) {
    const double x = qkvi_luminance(a), y = qkvi_luminance(b);
    return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

static void marks_can_be_seen(void **state) {
    (void)state;
    static const qkvi_rgb colors[2][2] = { { { 0x00, 0x72, 0xB2 }, { 0xD5, 0x5E, 0x00 } },
                                           { { 0x56, 0xB4, 0xE9 }, { 0xE6, 0x9F, 0x00 } } };
    for (int theme = 0; theme < 2; theme++) {
        qkv_point_map map = make(6, 9);
        map.theme = (qkv_theme)theme;
        draw(&map, FOLDER "/marks.png");
        cairo_surface_t *surface = cairo_image_surface_create_from_png(FOLDER "/marks.png");
        for (int kind = 0; kind < 2; kind++) {
            const qkvi_rgb color = colors[theme][kind];
            assert_true(contrast(color, qkvi_palette_of(map.theme)->page) >= 3);
            assert_true(has_color(surface, color.r, color.g, color.b) > (kind ? 9 : 6) * 60);
        }
        cairo_surface_destroy(surface);
    }
}

/* A line is as wide as its weight; a weight of nearly nothing has no line, nor a bold label. */
static void lines_are_as_wide_as_weights(void **state) {
    (void)state;
    static const int64_t to[] = { 0, 1, 2, 3 };
    static const double weights[] = { 0.8, 0.01, 0.0099, 6e-8 };
    qkv_point_map map = make(3, 6);
    size_t n, n_two;
    map.to = to;
    map.weights = weights;
    map.n_lines = 4;
    draw(&map, FOLDER "/four.svg");
    map.n_lines = 2;
    draw(&map, FOLDER "/two.svg");
    char *const four = load(FOLDER "/four.svg", &n), *const two = load(FOLDER "/two.svg", &n_two);
    assert_int_equal(n, n_two);
    assert_memory_equal(four, two, n);
    assert_non_null(memmem(four, n, "stroke-width:7.7;", 17));
    assert_non_null(memmem(four, n, "stroke-width:0.59;", 18));
    free(four);
    free(two);
}

static void odd_maps_are_drawn(void **state) {
    (void)state;
    static const int64_t to[] = { 0, 0, 1 };
    static const double weights[] = { 0, 1, 0.5 };
    qkv_point_map map = make(1, 0);
    draw(&map, FOLDER "/one.png");
    map = make(2, 2);
    for (int i = 0; i < 8; i++) xy[i] = 3; /* all at one place */
    map.n_lines = 3;
    map.to = to;
    map.weights = weights;
    draw(&map, FOLDER "/same.png");
    map = make(2, 2);
    for (int i = 0; i < 4; i++) xy[2 * i + 1] = -1e12; /* on a line */
    labels[0] = "\x1b[31m\xff";
    labels[1] = NULL;
    labels[2] = "";
    draw(&map, FOLDER "/line.pdf");
    map.labels = NULL;
    map.title = map.caption = NULL;
    draw(&map, FOLDER "/bare.svg");
}

static void the_same_map_has_the_same_bytes(void **state) {
    (void)state;
    static const char *const paths[] = { FOLDER "/a.png", FOLDER "/a.svg", FOLDER "/a.pdf" };
    for (int i = 0; i < 3; i++) {
        size_t n, again;
        const qkv_point_map map = make(20, 20);
        draw(&map, paths[i]);
        char *first = load(paths[i], &n);
        draw(&map, paths[i]);
        char *second = load(paths[i], &again);
        assert_int_equal(n, again);
        assert_memory_equal(first, second, n);
        free(first);
        free(second);
    }
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void refuse(const qkv_point_map *map, const char *path, qkv_status status,
                   const char *words) {
    const qkv_status got = qkv_picture_points_write(map, path, &error);
    if (got != status || !strstr(error.message, words))
        fail_msg("%s: '%s', not '%s'", qkv_status_name(got), error.message, words);
}

static void refusals(void **state) {
    (void)state;
    static int64_t to[65];
    static double weights[65];
    const char *const path = FOLDER "/never.png";
    qkv_point_map map = make(3, 3);
    refuse(NULL, path, QKV_ERR_ARGUMENT, "map is NULL");
    refuse(&map, NULL, QKV_ERR_ARGUMENT, "path is NULL");
    refuse(&map, FOLDER "/x.gif", QKV_ERR_ARGUMENT, "does not end in");
    map.n_lines = 65;
    map.to = to;
    map.weights = weights;
    refuse(&map, path, QKV_ERR_SHAPE, "n_lines = 65");
    map.n_lines = 2;
    to[1] = 3;
    refuse(&map, path, QKV_ERR_SHAPE, "to[1] = 3 is none of 3 keys");
    to[1] = 2;
    weights[0] = NAN;
    refuse(&map, path, QKV_ERR_ARGUMENT, "weights[0] = nan");
    weights[0] = 0.5;
    map.from = 3;
    refuse(&map, path, QKV_ERR_SHAPE, "from = 3 is none of 3 queries");
    map.from = 0;
    map.to = NULL;
    refuse(&map, path, QKV_ERR_ARGUMENT, "to is NULL");
    map.n_lines = 0;
    xy[7] = INFINITY;
    refuse(&map, path, QKV_ERR_ARGUMENT, "xy[3][1] = inf");
    xy[7] = 0;
    map.n_keys = INT64_MAX;
    refuse(&map, path, QKV_ERR_SHAPE, "n_keys = 9223372036854775807");
    map.n_keys = 3;
    map.size = 319;
    refuse(&map, path, QKV_ERR_ARGUMENT, "size = 319");
    map.size = 0;
    map.theme = (qkv_theme)2;
    refuse(&map, path, QKV_ERR_ARGUMENT, "theme = 2");
    map.struct_size = 0;
    refuse(&map, path, QKV_ERR_ARGUMENT, "qkv_point_map.struct_size = 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_do_not_collide),
        cmocka_unit_test(lines_are_kept_off),
        cmocka_unit_test(labels_are_led_to),
        cmocka_unit_test(a_larger_map_shows_more),
        cmocka_unit_test(what_finds_no_room_is_counted),
        cmocka_unit_test(marks_can_be_seen),
        cmocka_unit_test(lines_are_as_wide_as_weights),
        cmocka_unit_test(odd_maps_are_drawn),
        cmocka_unit_test(the_same_map_has_the_same_bytes),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, make_folder, NULL);
}
