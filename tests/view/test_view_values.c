/*
 * Heat maps of values that are not weights: colours of cells, the same bytes again, texts in the
 * file, refusals.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "lost_by_others.h"
#include "picture_files.h"

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
    if (qkv_picture_heatmap_write(&map, FILE_A, &error)) fail_msg("%s", error.message);
    if (qkv_picture_heatmap_write(&map, FILE_B, &error)) fail_msg("%s", error.message);
    assert_same_files(FILE_A, FILE_B);
    for (int k = 0; k < 5; k++) {
        const int64_t n = count_rgb(FILE_A, qkvi_weight_color(k / 4.0, QKV_THEME_LIGHT));
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
    assert_int_equal(qkv_picture_heatmap_write(&map, FILE_A, NULL), QKV_OK);
    assert_true(count_rgb(FILE_A, qkvi_weight_color(1, QKV_THEME_LIGHT)) >= N * N / 2 * CELL);
    assert_true(count_rgb(FILE_A, qkvi_weight_color(0, QKV_THEME_LIGHT)) >= N * N / 2 * CELL);
    assert_words(FILE_A, "Colours run from -0.25 to 3.");
    const double wrong[][2] = { { 1, 1 },         { 2, 1 },        { NAN, 1 }, { 0, NAN },
                                { -INFINITY, 0 }, { 0, INFINITY }, { 0, -1 } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        qkv_error error;
        map.low = wrong[i][0];
        map.high = wrong[i][1];
        assert_int_equal(qkv_picture_heatmap_write(&map, FILE_A, &error), QKV_ERR_ARGUMENT);
        assert_non_null(strstr(error.message, "low must be below high"));
    }
}

/* Around 0: ochre and blue of one lightness, the page's colour at 0, figures in both. */
static void test_signed(void **state) {
    (void)state;
    static float values[N * N];
    qkv_error error;
    for (int i = 0; i < N * N; i++) values[i] = 0.4f * (float)(i % 3 - 1); /* -0.4, 0, 0.4 */
    for (int theme = QKV_THEME_LIGHT; theme <= QKV_THEME_DARK; theme++) {
        qkv_heatmap map = { .struct_size = sizeof map,
                            .n_rows = N,
                            .n_cols = N,
                            .weights = values,
                            .theme = (qkv_theme)theme,
                            .is_signed = 1 };
        if (qkv_picture_heatmap_write(&map, FILE_A, &error)) fail_msg("%s", error.message);
        for (int k = -1; k <= 1; k++)
            assert_true(count_rgb(FILE_A, qkvi_signed_color(k, theme)) >= N * N / 3 * CELL);
        assert_words(FILE_A, "Colours run from -0.4 to 0.4.");
        map.low = -1;
        assert_int_equal(qkv_picture_heatmap_write(&map, FILE_A, &error), QKV_ERR_ARGUMENT);
        assert_non_null(strstr(error.message, "is_signed"));
        const qkvi_rgb above = qkvi_signed_color(0.7, theme),
                       below = qkvi_signed_color(-0.7, theme);
        assert_true(above.g == below.g && above.r == below.b && above.b == below.r);
        assert_true(above.b > above.r);
        const qkvi_rgb none = qkvi_signed_color(NAN, theme), grey = qkvi_weight_color(NAN, theme);
        assert_memory_equal(&none, &grey, sizeof none);
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
        cmocka_unit_test_setup(test_signed, make_folder),
        cmocka_unit_test(test_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
