/*
 * Maps over an image: colours where cells lie and the image where none does, the weight between
 * cells that are smoothed, the same bytes again, words inside, what cannot be drawn refused.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "lost_by_others.h"
#include "picture_files.h"

const char *__lsan_default_suppressions(void) { return LOST_BY_OTHERS; }

#define FOLDER QKV_TEST_BUILD "/image_maps"
#define FILE_A FOLDER "/a.png"
#define FILE_B FOLDER "/b.png"

enum { HEIGHT = 10, WIDTH = 14, SIDE = 280 };

static uint8_t rgb[HEIGHT * WIDTH * 3];
static float weights[4] = { 0, 0.2f, 0.4f, 0.4f };

/* Two by two patches of 4 by 6 pixels: rows 8 and 9, and columns 12 and 13, are not covered. */
static qkv_image_maps of_patches(void) {
    return (qkv_image_maps){ .struct_size = sizeof(qkv_image_maps),
                             .rgb = rgb,
                             .height = HEIGHT,
                             .width = WIDTH,
                             .rows = 2,
                             .columns = 2,
                             .cell_height = 4,
                             .cell_width = 6,
                             .n_layers = 1,
                             .n_heads = 1,
                             .weights = weights,
                             .title = "Patches",
                             .size = SIDE };
}

static int set_up(void **state) {
    (void)state;
    mkdir(FOLDER, 0777);
    for (int i = 0; i < HEIGHT * WIDTH; i++) memcpy(rgb + 3 * i, (uint8_t[]){ 200, 40, 90 }, 3);
    return 0;
}

static void draw(const qkv_image_maps *maps, const char *path) {
    qkv_error error;
    if (qkv_picture_image_write(maps, path, &error)) fail_msg("%s", error.message);
}

/* (1 - a) image + a colour, rounded. */
static qkvi_rgb mixed(double opacity, double t) {
    const qkvi_rgb over = qkvi_weight_color(t, false);
    return (qkvi_rgb){ (uint8_t)lround(200 * (1 - opacity) + over.r * opacity),
                       (uint8_t)lround(40 * (1 - opacity) + over.g * opacity),
                       (uint8_t)lround(90 * (1 - opacity) + over.b * opacity) };
}

static void about(const char *what, int64_t n, double wanted) {
    if (fabs((double)n - wanted) > 0.03 * wanted + 40)
        fail_msg("%s: %lld pixels, not %.0f", what, (long long)n, wanted);
}

/* A panel is 280 by 200 pixels, a patch 120 by 80. */
static void test_crisp(void **state) {
    const double patch = 120 * 80, panel = 280 * 200;
    qkv_image_maps maps = of_patches();
    (void)state;
    draw(&maps, FILE_A);
    draw(&maps, FILE_B);
    assert_same_files(FILE_A, FILE_B);
    about("weight 0", count_rgb(FILE_A, mixed(0.5, 0)), patch);
    about("weight 0.2", count_rgb(FILE_A, mixed(0.5, 0.5)), patch);
    about("weight 0.4", count_rgb(FILE_A, mixed(0.5, 1)), 2 * patch);
    about("image", count_rgb(FILE_A, (qkvi_rgb){ 200, 40, 90 }), 2 * panel - 4 * patch);
    assert_words(FILE_A, "Over the image with an opacity of 0.5; a cell is a patch. Colours run");
    maps.opacity = 1;
    draw(&maps, FILE_A);
    about("opaque", count_rgb(FILE_A, qkvi_weight_color(1, false)), 2 * patch);
}

/* Below each other 0.2 and 0.4: in the middle 0.3. The right column is 0.2 to 0.4 from top down. */
static void test_smooth(void **state) {
    static float down[] = { 0.2f, 0.2f, 0.4f, 0.4f };
    qkv_image_maps maps = of_patches();
    (void)state;
    maps.weights = down;
    maps.smooth = 1;
    draw(&maps, FILE_A);
    about("above the middle", count_rgb(FILE_A, mixed(0.5, 0.5)), 240 * 40);
    about("below the middle", count_rgb(FILE_A, mixed(0.5, 1)), 240 * 40);
    assert_words(FILE_A, "between the middles of patches values are interpolated");
    maps.smooth = 0;
    draw(&maps, FILE_A);
    about("crisp", count_rgb(FILE_A, mixed(0.5, 0.5)), 240 * 80);
}

/* Each map by itself: the largest has the last colour. */
static void test_own_scale(void **state) {
    static float two[8] = { 0.01f, 0, 0, 0, 0.4f, 0, 0, 0 };
    static const char *const labels[] = { "first", NULL };
    qkv_image_maps maps = of_patches();
    (void)state;
    maps.weights = two;
    maps.n_heads = 2;
    maps.labels = labels;
    draw(&maps, FILE_A);
    about("one scale", count_rgb(FILE_A, mixed(0.5, 1)), 120 * 80);
    maps.own_scale = 1;
    draw(&maps, FILE_A);
    about("own scales", count_rgb(FILE_A, mixed(0.5, 1)), 2 * 120 * 80);
    assert_words(FILE_A, "Colours of each map run from 0 to its own largest weight");
    draw(&maps, FOLDER "/a.svg");
    assert_words(FOLDER "/a.svg", "first");
    draw(&maps, FOLDER "/a.pdf");
}

/* Two maps, each over an image of its own; labels alone name them. */
static void test_images(void **state) {
    static uint8_t other[HEIGHT * WIDTH * 3];
    static float two[8];
    static const char *const labels[] = { "this one", "that one" };
    const uint8_t *images[] = { rgb, other };
    qkv_image_maps maps = of_patches();
    qkv_error error;
    (void)state;
    for (int i = 0; i < HEIGHT * WIDTH; i++) memcpy(other + 3 * i, (uint8_t[]){ 10, 250, 20 }, 3);
    for (int i = 0; i < 8; i++) two[i] = weights[i % 4];
    maps.n_heads = 2;
    maps.weights = two;
    maps.labels = labels;
    maps.images = images;
    draw(&maps, FILE_A);
    about("the first image", count_rgb(FILE_A, (qkvi_rgb){ 200, 40, 90 }), 280 * 200 - 240 * 160);
    about("the second image", count_rgb(FILE_A, (qkvi_rgb){ 10, 250, 20 }), 280 * 200 - 240 * 160);
    draw(&maps, FOLDER "/a.svg");
    assert_words(FOLDER "/a.svg", "that one");
    images[1] = NULL;
    assert_int_equal(qkv_picture_image_write(&maps, FILE_A, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "images[1] is NULL");
}

static void refused(const qkv_image_maps *maps, qkv_status status, const char *says) {
    qkv_error error;
    assert_int_equal(qkv_picture_image_write(maps, FILE_A, &error), status);
    if (!strstr(error.message, says)) fail_msg("\"%s\"", error.message);
}

static void test_refused(void **state) {
    (void)state;
#define CHANGED(change)                                                                            \
    qkv_image_maps maps = of_patches();                                                            \
    change
    {
        CHANGED(maps.rows = 3);
        refused(&maps, QKV_ERR_SHAPE, "rows = 3: must be 1 to 2");
    }
    {
        CHANGED(maps.columns = 0);
        refused(&maps, QKV_ERR_SHAPE, "columns = 0");
    }
    {
        CHANGED(maps.cell_height = 11);
        refused(&maps, QKV_ERR_SHAPE, "cell_height = 11");
    }
    {
        CHANGED(maps.width = 4097);
        refused(&maps, QKV_ERR_SHAPE, "width = 4097");
    }
    {
        CHANGED(maps.n_layers = 4097);
        refused(&maps, QKV_ERR_SHAPE, "n_layers = 4097");
    }
    {
        CHANGED(maps.opacity = 1.5);
        refused(&maps, QKV_ERR_ARGUMENT, "opacity = 1.5");
    }
    {
        CHANGED(maps.opacity = NAN);
        refused(&maps, QKV_ERR_ARGUMENT, "opacity = nan");
    }
    {
        CHANGED(maps.size = 9);
        refused(&maps, QKV_ERR_ARGUMENT, "size = 9");
    }
    {
        CHANGED(maps.own_scale = 1; maps.max = 2);
        refused(&maps, QKV_ERR_ARGUMENT, "own_scale");
    }
    {
        CHANGED(maps.rgb = NULL);
        refused(&maps, QKV_ERR_ARGUMENT, "rgb is NULL");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crisp),     cmocka_unit_test(test_smooth),
        cmocka_unit_test(test_own_scale), cmocka_unit_test(test_images),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
