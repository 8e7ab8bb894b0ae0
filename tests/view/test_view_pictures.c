/**
 * Pictures as files: cells have the colours of their weights, the same input gives the same bytes,
 * texts are in the file, any text can be drawn, and a failed write leaves nothing behind.
 *
 * Pixels of text are not compared: they depend on the system's fonts.
 */
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "odd_map.h"
#include "picture_files.h"

#define FOLDER QKV_TEST_BUILD "/pictures"
#define FILE_A FOLDER "/a.png"
#define FILE_B FOLDER "/b.png"

static int make_folder(void **state) {
    (void)state;
    mkdir(FOLDER, 0777);
    unlink(FILE_A);
    unlink(FILE_B);
    return 0;
}

static int n_files(const char *folder) {
    DIR *directory = opendir(folder);
    int n = 0;
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory));) n += entry->d_name[0] != '.';
    closedir(directory);
    return n;
}

/* ---- Scale and cells ---------------------------------------------------------------------------
 * */

static void test_scale(void **state) {
    (void)state;
    static const struct {
        float largest;
        double top;
        int n_steps, decimals;
    } rows[] = { { 1, 1, 5, 1 },          { 0.81f, 1, 5, 1 },    { 0.8f, 0.8, 4, 1 },
                 { 0.41f, 0.5, 5, 1 },    { 0.12f, 0.15, 3, 2 }, { 0.1f, 0.1, 5, 2 },
                 { 0.013f, 0.015, 3, 3 }, { 0, 1, 5, 1 },        { 1.0000001f, 1, 5, 1 },
                 { 37, 40, 4, 0 },        { 1e-30f, 0, 0, 0 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const float weights[] = { 0, rows[i].largest, -1, NAN, INFINITY };
        const qkvi_scale scale = qkvi_scale_of(weights, 5, NULL, 5);
        assert_true(scale.has_nan);
        assert_true(scale.top >= scale.largest * (1 - 1e-6) && scale.top > 0);
        if (rows[i].n_steps == 0) continue;
        if (fabs(scale.top - rows[i].top) > 1e-12 || scale.n_steps != rows[i].n_steps ||
            scale.decimals != rows[i].decimals)
            fail_msg("%g: 0 ... %g in %d steps of %d decimals", (double)rows[i].largest, scale.top,
                     scale.n_steps, scale.decimals);
    }
}

static void test_fold(void **state) {
    (void)state;
    const float weights[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, NAN, 13, 14, 15 };
    const qkvi_cells cells = qkvi_cells_fit(weights, 3, 5, 6, 2, 10);
    assert_int_equal(cells.fold, 2);
    assert_int_equal(cells.cell, 2);
    assert_int_equal(qkvi_cells_rows(&cells), 2);
    assert_int_equal(qkvi_cells_cols(&cells), 3);
    assert_true(qkvi_cells_at(&cells, 0, 0) == 7);
    assert_true(qkvi_cells_at(&cells, 0, 2) == 10);
    assert_true(isnan(qkvi_cells_at(&cells, 1, 0)));
    assert_true(qkvi_cells_at(&cells, 1, 2) == 15);
}

static void test_numbers(void **state) {
    (void)state;
    static const struct {
        double x;
        int decimals;
        const char *text;
    } rows[] = { { 0.45, 1, "0.5" },  { 0.996, 2, "1.00" },           { -0.001, 2, "0.00" },
                 { -2.5, 1, "-2.5" }, { 1e14, 0, "100000000000000" }, { 3, 3, "3.000" } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[40];
        qkvi_number(text, sizeof text, rows[i].x, rows[i].decimals);
        assert_string_equal(text, rows[i].text);
    }
}

/* ---- Heat maps ---------------------------------------------------------------------------------
 * */

enum { N = 40 }; /* cells of 28 pixels: no figures in them */

static float weights[N * N];
static const char *labels[N];

static qkv_heatmap make_map(qkv_theme theme) {
    for (int i = 0; i < N * N; i++) weights[i] = (float)(i % 7) / 10;
    for (int i = 0; i < N; i++) labels[i] = i % 3 ? "word" : "##piece";
    return (qkv_heatmap){ .struct_size = sizeof(qkv_heatmap),
                          .n_rows = N,
                          .n_cols = N,
                          .weights = weights,
                          .row_labels = labels,
                          .col_labels = labels,
                          .title = "Title \xE2\x80\xAE words",
                          .caption = "First line\nsecond line",
                          .theme = theme };
}

static void test_cells(void **state) {
    (void)state;
    for (int theme = 0; theme < 2; theme++) {
        const qkv_heatmap map = make_map((qkv_theme)theme);
        qkv_error error;
        if (qkv_picture_heatmap_write(&map, FILE_A, &error)) fail_msg("%s", error.message);
        for (int k = 1; k < 7; k++) { /* the scale shares colours: a few pixels more */
            const qkvi_rgb color = qkvi_weight_color((float)k / 10 / 0.6, (qkv_theme)theme);
            int64_t cells = 0;
            for (int i = 0; i < N * N; i++) cells += i % 7 == k;
            const int64_t n = count_rgb(FILE_A, color);
            if (n < cells * 26 * 26 || n > cells * 26 * 26 + 100)
                fail_msg("theme %d: %lld pixels of weight 0.%d", theme, (long long)n, k);
        }
    }
}

/*
 * Keys that are hidden: no cell, whatever their weight, in a map and in a grid that is not square.
 */
static void test_hidden(void **state) {
    (void)state;
    enum { ROWS = 30, COLS = 40, SIDE = 26 };
    static float causal[ROWS * COLS];
    static uint8_t hidden[ROWS * COLS];
    int64_t n_seen = 0;
    for (int c = 0; c < ROWS * COLS; c++) {
        hidden[c] = c % COLS > c / COLS;
        causal[c] = hidden[c] ? NAN : 0;
        n_seen += !hidden[c];
    }
    const qkvi_rgb zero = qkvi_weight_color(0, QKV_THEME_LIGHT),
                   grey = qkvi_weight_color(NAN, QKV_THEME_LIGHT);
    qkv_heatmap map = { .struct_size = sizeof map,
                        .n_rows = ROWS,
                        .n_cols = COLS,
                        .weights = causal,
                        .hidden = hidden };
    qkv_error error;
    if (qkv_picture_heatmap_write(&map, FILE_A, &error)) fail_msg("%s", error.message);
    const int64_t cells = n_seen * SIDE * SIDE, found = count_rgb(FILE_A, zero);
    assert_true(found >= cells && found < cells + 20 * 20);
    assert_int_equal(count_rgb(FILE_A, grey), 0);
    map.hidden = NULL;
    assert_int_equal(qkv_picture_heatmap_write(&map, FILE_A, &error), QKV_OK);
    assert_true(count_rgb(FILE_A, grey) >= (ROWS * COLS - n_seen) * SIDE * SIDE);
    qkv_head_grid grid = { .struct_size = sizeof grid,
                           .n_layers = 1,
                           .n_heads = 1,
                           .n = 5,
                           .weights = causal,
                           .n_queries = 3,
                           .hidden = hidden };
    memset(causal, 0, sizeof causal);
    memset(hidden, 0, sizeof hidden);
    hidden[1] = hidden[14] = 1;
    if (qkv_picture_grid_write(&grid, FILE_A, &error)) fail_msg("%s", error.message);
    assert_true(count_rgb(FILE_A, zero) >= 13 * 38 * 38);
    assert_true(count_rgb(FILE_A, zero) < 14 * 38 * 38);
    grid.n_queries = -1;
    assert_int_equal(qkv_picture_grid_write(&grid, FILE_A, &error), QKV_ERR_SHAPE);
}

static void test_same_bytes(void **state) {
    (void)state;
    const qkv_heatmap map = make_map(QKV_THEME_LIGHT);
    assert_int_equal(qkv_picture_heatmap_write(&map, FILE_A, NULL), QKV_OK);
    setenv("LANG", "ja_JP.UTF-8", 1);
    setenv("PANGO_LANGUAGE", "ja", 1);
    assert_int_equal(qkv_picture_heatmap_write(&map, FILE_B, NULL), QKV_OK);
    assert_same_files(FILE_A, FILE_B);
    assert_int_equal(n_files(FOLDER), 2);
}

static void test_words(void **state) {
    (void)state;
    const qkv_heatmap map = make_map(QKV_THEME_DARK);
    assert_int_equal(qkv_picture_heatmap_write(&map, FILE_A, NULL), QKV_OK);
    assert_words(FILE_A, "Title \\xe2\\x80\\xae words");
    assert_words(FILE_A, "First line\nsecond line\nColours run from 0 to 0.6; the largest weight "
                         "is 0.600. Weights show mixing, not reasons.");
}

static void test_any_text(void **state) {
    (void)state;
    qkv_heatmap map = make_map(QKV_THEME_LIGHT);
    make_odd(&map);
    qkv_error error;
    if (qkv_picture_heatmap_write(&map, FILE_A, &error)) fail_msg("%s", error.message);
    map.row_labels = map.col_labels = NULL;
    map.title = map.caption = NULL;
    assert_int_equal(qkv_picture_heatmap_write(&map, FILE_A, &error), QKV_OK);
    assert_true(count_rgb(FILE_A, qkvi_weight_color(NAN, QKV_THEME_LIGHT)) > 0);
}

static void test_huge(void **state) {
    (void)state;
    enum { WIDE = 9000 };
    float *row = calloc(WIDE, sizeof *row);
    qkv_heatmap map = make_map(QKV_THEME_LIGHT);
    map.n_rows = 1;
    map.n_cols = WIDE;
    map.weights = row;
    map.row_labels = map.col_labels = NULL;
    row[4000] = 1;
    assert_int_equal(qkv_picture_heatmap_write(&map, FILE_A, NULL), QKV_OK);
    assert_words(FILE_A, "A cell shows the largest of 3 \xC3\x97 3 weights.");
    assert_true(count_rgb(FILE_A, qkvi_weight_color(1, QKV_THEME_LIGHT)) >= 4);
    free(row);
}

static void assert_map_refused(const qkv_heatmap *map, const char *path, qkv_status status,
                               const char *words) {
    qkv_error error = { 0 };
    const int before = n_files(FOLDER);
    assert_int_equal(qkv_picture_heatmap_write(map, path, &error), status);
    if (!strstr(error.message, words)) fail_msg("\"%s\" lacks \"%s\"", error.message, words);
    assert_int_equal(n_files(FOLDER), before);
}

static void test_refused(void **state) {
    (void)state;
    qkv_heatmap map = make_map(QKV_THEME_LIGHT);
    assert_map_refused(NULL, FILE_A, QKV_ERR_ARGUMENT, "map is NULL");
    assert_map_refused(&map, NULL, QKV_ERR_ARGUMENT, "path is NULL");
    assert_map_refused(&map, FOLDER "/none/a.png", QKV_ERR_IO, "none/a.png");
    mkdir(FOLDER "/folder.png", 0777);
    assert_map_refused(&map, FOLDER "/folder.png", QKV_ERR_IO,
                       "folder.png: cannot write: Is a dir");
    rmdir(FOLDER "/folder.png");
    assert_map_refused(&map, FOLDER "/a.gif", QKV_ERR_ARGUMENT,
                       "a.gif' does not end in .png, .svg");
    assert_map_refused(&map, "png", QKV_ERR_ARGUMENT, "'png' does not end in");
    map.theme = (qkv_theme)2;
    assert_map_refused(&map, FILE_A, QKV_ERR_ARGUMENT, "theme = 2");
    map = make_map(QKV_THEME_LIGHT);
    map.n_cols = 0;
    assert_map_refused(&map, FILE_A, QKV_ERR_SHAPE, "n_cols = 0");
    map.n_cols = INT64_MAX;
    assert_map_refused(&map, FILE_A, QKV_ERR_SHAPE, "n_cols");
    map = make_map(QKV_THEME_LIGHT);
    map.weights = NULL;
    assert_map_refused(&map, FILE_A, QKV_ERR_ARGUMENT, "weights is NULL");
    map = make_map(QKV_THEME_LIGHT);
    map.struct_size = 8;
    assert_map_refused(&map, FILE_A, QKV_ERR_ARGUMENT, "struct_size");
}

/* ---- Grids and curves --------------------------------------------------------------------------
 * */

static void test_grid(void **state) {
    (void)state;
    enum { LAYERS = 2, HEADS = 3, LEN = 5 };
    float all[LAYERS * HEADS * LEN * LEN] = { 0 };
    const char *const names[LAYERS * HEADS] = { "prev", NULL, "", "\xFF", "same-token", "broad" };
    for (int h = 0; h < LAYERS * HEADS; h++) all[h * LEN * LEN + h] = (float)(h + 1) / 10;
    qkv_head_grid grid = { .struct_size = sizeof grid,
                           .n_layers = LAYERS,
                           .n_heads = HEADS,
                           .n = LEN,
                           .weights = all,
                           .labels = names,
                           .title = "Grid",
                           .theme = QKV_THEME_DARK };
    qkv_error error;
    if (qkv_picture_grid_write(&grid, FILE_A, &error)) fail_msg("%s", error.message);
    if (qkv_picture_grid_write(&grid, FILE_B, &error)) fail_msg("%s", error.message);
    assert_same_files(FILE_A, FILE_B);
    for (int h = 0; h < LAYERS * HEADS; h++) {
        const qkvi_rgb color = qkvi_weight_color((float)(h + 1) / 10 / 0.6, QKV_THEME_DARK);
        assert_true(count_rgb(FILE_A, color) >= 38 * 38);
    }
    /* The one weight of the first head is hidden, in all heads or in that one. */
    uint8_t hidden[sizeof all / sizeof *all] = { 0 };
    const qkvi_rgb first = qkvi_weight_color(0.1 / 0.6, QKV_THEME_DARK),
                   none = qkvi_weight_color(0, QKV_THEME_DARK);
    hidden[0] = 1;
    grid.hidden = hidden;
    if (qkv_picture_grid_write(&grid, FILE_A, &error)) fail_msg("%s", error.message);
    const int64_t n_none = count_rgb(FILE_A, none);
    assert_true(count_rgb(FILE_A, first) < 38 * 38);
    grid.hidden_of_heads = 1;
    if (qkv_picture_grid_write(&grid, FILE_A, &error)) fail_msg("%s", error.message);
    assert_true(count_rgb(FILE_A, first) < 38 * 38);
    assert_true(count_rgb(FILE_A, none) >= n_none + (LAYERS * HEADS - 1) * 38 * 38);
    grid.hidden = NULL;
    grid.labels = NULL;
    assert_int_equal(qkv_picture_grid_write(&grid, FILE_A, &error), QKV_OK);
    grid.n = 0;
    assert_int_equal(qkv_picture_grid_write(&grid, FILE_A, &error), QKV_ERR_SHAPE);
    grid.n = 1 << 20;
    grid.n_layers = grid.n_heads = 4096;
    assert_int_equal(qkv_picture_grid_write(&grid, FILE_A, &error), QKV_ERR_SHAPE);
    assert_int_equal(qkv_picture_grid_write(NULL, FILE_A, &error), QKV_ERR_ARGUMENT);
}

static void test_curve(void **state) {
    (void)state;
    double x[100], y[100];
    for (int i = 0; i < 100; i++) {
        x[i] = i * 10;
        y[i] = exp(-i / 20.0);
    }
    qkv_curve curve = {
        sizeof curve, 100, x, y, "step", "loss", "Loss", "caption", QKV_THEME_LIGHT
    };
    const qkvi_rgb mark = qkvi_palette_of(QKV_THEME_LIGHT)->mark;
    qkv_error error;
    if (qkv_picture_curve_write(&curve, FILE_A, &error)) fail_msg("%s", error.message);
    if (qkv_picture_curve_write(&curve, FILE_B, &error)) fail_msg("%s", error.message);
    assert_same_files(FILE_A, FILE_B);
    assert_true(count_rgb(FILE_A, mark) > 1500);
    y[50] = NAN;
    y[99] = INFINITY;
    x[98] = NAN;
    curve.x_label = curve.y_label = curve.title = curve.caption = NULL;
    assert_int_equal(qkv_picture_curve_write(&curve, FILE_A, &error), QKV_OK);
    curve.n = 1;
    assert_int_equal(qkv_picture_curve_write(&curve, FILE_A, &error), QKV_OK);
    assert_true(count_rgb(FILE_A, mark) > 50);
    y[0] = 1e300;
    assert_int_equal(qkv_picture_curve_write(&curve, FILE_A, &error), QKV_OK);
    curve.n = 0;
    assert_int_equal(qkv_picture_curve_write(&curve, FILE_A, &error), QKV_ERR_SHAPE);
    curve.y = NULL;
    assert_int_equal(qkv_picture_curve_write(&curve, FILE_A, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "y is NULL"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale),   cmocka_unit_test(test_fold),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_cells),
        cmocka_unit_test(test_hidden),  cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_words),   cmocka_unit_test(test_any_text),
        cmocka_unit_test(test_huge),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_grid),    cmocka_unit_test(test_curve),
    };
    return cmocka_run_group_tests(tests, make_folder, NULL);
}
