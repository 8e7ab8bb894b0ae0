/*
 * Training of models of images: runs that are stopped and go on, slices, other threads and
 * instruction sets, and the bits of the run that did not; the folder that is written opens, with
 * labels, and sees a file as it was trained to; folders with labels.tsv; what is refused; the
 * pictures themselves, of which one is in the repository.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tiny_run.h"

#include "qkv/vision.h"
#include "train/shapes.h"

#define FILES QKV_TEST_DATA "/golden/image/files/"

static qkv_train_options image_run(void) {
    qkv_train_options options = small_run();
    options.text = NULL;
    options.shapes = 1;
    options.image_size = 16;
    options.patch_size = 8;
    options.n_layers = 1;
    options.hidden = 12;
    return options;
}

static void test_the_same_bits(void **state) {
    (void)state;
    qkv_train_options options = image_run();
    const int raised = 1;
    qkv_error error;
    options.dropout = 0.1;
    options.n_slices = 3;
    const result expected = whole_run(&options);
    for (int i = 0; qkv_isa_name(i); i++) {
        qkv_ctx *const ctx = make_ctx(qkv_isa_name(i), 1 + i % 3);
        if (!ctx) continue;
        train(ctx, &options);
        expect_same(take_result(), &expected, qkv_isa_name(i));
        qkv_ctx_free(ctx);
    }
    qkv_ctx *const ctx = make_ctx(NULL, 2);
    qkv_train_options stopped = options;
    stopped.cancel = &raised;
    for (int64_t step = 1; step < options.n_steps; step++) {
        assert_int_equal(qkv_train(ctx, &stopped, &error), QKV_ERR_CANCELLED);
        stopped.resume = out_path;
    }
    if (qkv_train(ctx, &stopped, &error) != QKV_OK) fail_msg("%s", error.message);
    expect_same(take_result(), &expected, "a step at a time");
    qkv_ctx_free(ctx);
    free_result(&expected);
}

/* A checkpoint of other pictures, or of a text, is that of another run. */
static void test_another_run(void **state) {
    (void)state;
    qkv_train_options options = image_run();
    const int raised = 1;
    qkv_error error;
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    options.cancel = &raised;
    assert_int_equal(qkv_train(ctx, &options, &error), QKV_ERR_CANCELLED);
    options.resume = out_path;
    options.patch_size = 4;
    assert_int_equal(qkv_train(ctx, &options, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "patch_size 8, not 4"));
    options.patch_size = 8;
    options.shapes = 0;
    options.text = text_path;
    assert_int_equal(qkv_train(ctx, &options, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "another corpus"));
    qkv_ctx_free(ctx);
    clear_out();
}

typedef struct told {
    int n;
    double first, last, right;
} told;

static int listen(void *user, const qkv_train_report *report) {
    told *const t = user;
    assert_true(report->of_images);
    assert_true(report->mlm_loss == 0 && report->lm_loss == 0);
    assert_true(report->label_loss == report->loss);
    if (t->n++ == 0) t->first = report->loss;
    t->last = report->loss;
    t->right = report->held_out_right;
    return 0;
}

/* It learns, and what is written is a model that sees files as it saw pictures. */
static void test_the_folder(void **state) {
    (void)state;
    static uint8_t rgb[3 * 24 * 24];
    qkv_train_options options = image_run();
    told t = { 0 };
    qkv_ctx *const ctx = make_ctx(NULL, 2);
    qkv_error error;
    qkv_model *model;
    qkv_image *image;
    qkv_encoding *tokens;
    qkv_run *run;
    float logits[48];
    options.image_size = 24;
    options.hidden = 32;
    options.n_steps = 150;
    options.batch = 32;
    options.report_every = 50;
    options.learning_rate = 8e-3;
    options.report = listen;
    options.report_user = &t;
    train(ctx, &options);
    assert_int_equal(t.n, 3);
    print_message("loss %.3f to %.3f, %.1f %% of held-out pictures right\n", t.first, t.last,
                  100 * t.right);
    assert_true(t.last < t.first - 0.1 && t.last < 3.8); /* ln 48 = 3.87 */
    if (qkv_model_open(out_path, NULL, &model, &error) != QKV_OK) fail_msg("%s", error.message);
    const qkv_model_info *const info = qkv_model_get_info(model);
    assert_string_equal(info->architecture, "vit");
    assert_int_equal(info->n_labels, 48);
    assert_string_equal(qkv_model_label(model, 16 + 2), "two red boats");
    assert_int_equal(info->image_height, 24);
    qkvi_shapes_draw(1, QKVI_SPLIT_HELD_OUT, 0, 24, rgb);
    assert_int_equal(qkv_image_from_rgb(rgb, 24, 24, &image, &error), QKV_OK);
    if (qkv_image_see(model, image, NULL, &tokens, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_int_equal(tokens->n, 10);
    for (int p = 0; p < 24 * 24; p++) /* the pixels that it was trained on */
        assert_true(tokens->image->pixels[p] == ((float)image->rgb[3 * p] - 127.5f) / 127.5f);
    assert_int_equal(
        qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&tokens, 0, NULL, &run, &error),
        QKV_OK);
    assert_int_equal(qkv_model_classify(ctx, model, run, 0, logits, &error), QKV_OK);
    qkv_run_free(run);
    qkv_encoding_free(tokens);
    qkv_image_free(image);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
    clear_out();
}

/* ---- Folders of images ----------------------------------------------------------------------- */

static char images[TEMPORARY_PATH + 8], list[TEMPORARY_PATH + 32];

static void put_link(const char *name) {
    char from[512], to[TEMPORARY_PATH + 64];
    snprintf(from, sizeof from, FILES "%s", name);
    snprintf(to, sizeof to, "%s/%s", images, name);
    unlink(to);
    assert_int_equal(symlink(from, to), 0);
}

static void put_labels(const char *text) {
    FILE *const out = fopen(list, "wb");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static void test_a_folder_of_images(void **state) {
    (void)state;
    static const struct {
        const char *labels;
        qkv_status status;
        const char *says;
    } wrong[] = {
        { "RGB.png\n", QKV_ERR_FORMAT, "labels.tsv: line 1" },
        { "RGB.png\tcat\nL.png\tcat\n", QKV_ERR_ARGUMENT, "labels.tsv has one label" },
        { "RGB.png\tcat\nnone.png\tdog\n", QKV_ERR_IO, "none.png" },
        { "RGB.png\tcat\n../images/L.png\tdog\n", QKV_ERR_ARGUMENT, "not in its folder" },
        { "RGB.png\tcat\n/etc/passwd\tdog\n", QKV_ERR_ARGUMENT, "not in its folder" },
        { "RGB.png\tcat\nlabels.tsv\tdog\n", QKV_ERR_FORMAT, "neither a PNG nor" },
    };
    qkv_train_options options = image_run();
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    qkv_error error;
    snprintf(images, sizeof images, "%s/images", folder);
    snprintf(list, sizeof list, "%s/labels.tsv", images);
    assert_int_equal(mkdir(images, 0777), 0);
    put_link("RGB.png");
    put_link("L.png");
    options.shapes = 0;
    options.images = images;
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        put_labels(wrong[w].labels);
        const qkv_status status = qkv_train(ctx, &options, &error);
        if (status != wrong[w].status || !strstr(error.message, wrong[w].says))
            fail_msg("%s: status %d, \"%s\"", wrong[w].labels, (int)status, error.message);
    }
    put_labels("RGB.png\tcat\nL.png\tdog\nRGB.png\tcat\nL.png\tdog\nL.png\tdog\nRGB.png\tcat\n"
               "RGB.png\tcat\nL.png\tdog\nRGB.png\tcat\nL.png\tdog\nL.png\tdog\n");
    train(ctx, &options);
    qkv_model *model;
    if (qkv_model_open(out_path, NULL, &model, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_int_equal(qkv_model_get_info(model)->n_labels, 2);
    assert_string_equal(qkv_model_label(model, 0), "cat");
    assert_string_equal(qkv_model_label(model, 1), "dog");
    qkv_model_free(model);
    qkv_ctx_free(ctx);
    clear_out();
    static const char *const names[] = { "RGB.png", "L.png", "labels.tsv" };
    for (int i = 0; i < 3; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", images, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(images), 0);
}

static void test_refusals(void **state) {
    (void)state;
    qkv_ctx *const ctx = make_ctx(NULL, 1);
    qkv_error error;
    for (int i = 0; i < 7; i++) {
        static const char *const says[] = { "exactly one of text, grammar, shapes and images",
                                            "exactly one of",
                                            "image_size = 16 is not a multiple of patch_size = 5",
                                            "image_size = 1032 is not a multiple",
                                            "kind is not for a model of images",
                                            "from is not for a model of images",
                                            "architecture 'bert' is none of a vit" };
        qkv_train_options options = image_run();
        if (i == 0) options.text = text_path;
        if (i == 1) options.shapes = 0;
        if (i == 2) options.patch_size = 5;
        if (i == 3) options.image_size = 1032;
        if (i == 4) options.kind = QKV_MODEL_DECODER;
        if (i == 5) options.from = QKV_TEST_DATA "/golden/vision/vit_1";
        if (i == 6) options.architecture = "bert";
        const qkv_status status = qkv_train(ctx, &options, &error);
        if (status == QKV_OK || !strstr(error.message, says[i]))
            fail_msg("%d: %s", i, error.message);
    }
    qkv_ctx_free(ctx);
}

/* ---- Pictures -------------------------------------------------------------------------------- */

static void test_pictures(void **state) {
    (void)state;
    enum { SIDE = 192 };
    static uint8_t rgb[3 * SIDE * SIDE], other[3 * SIDE * SIDE];
    qkv_image *file;
    qkv_error error;
    char name[QKVI_SHAPES_NAME];
    int n_named[3] = { 0 };
    qkvi_shapes_name(qkvi_shapes_draw(1, QKVI_SPLIT_HELD_OUT, 123, SIDE, rgb), name);
    assert_string_equal(name, "two red boats");
    if (qkv_image_read(QKV_TEST_ROOT "/examples/images/two-boats.png", &file, &error) != QKV_OK)
        fail_msg("%s", error.message);
    assert_int_equal(file->width, SIDE);
    assert_memory_equal(file->rgb, rgb, sizeof rgb);
    qkvi_shapes_draw(2, QKVI_SPLIT_HELD_OUT, 123, SIDE, other);
    assert_memory_not_equal(other, rgb, sizeof rgb);
    qkv_image_free(file);
    for (int64_t i = 0; i < 300; i++) {
        qkvi_shapes_name(qkvi_shapes_draw(7, QKVI_SPLIT_TRAIN, i, 8, rgb), name);
        n_named[0] += strncmp(name, "one ", 4) == 0;
        n_named[1] += strncmp(name, "two ", 4) == 0 && name[strlen(name) - 1] == 's';
        n_named[2] += strstr(name, "yellow") != NULL;
    }
    for (int k = 0; k < 3; k++) assert_true(n_named[k] > 50 && n_named[k] < 150);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_bits), cmocka_unit_test(test_another_run),
        cmocka_unit_test(test_the_folder),    cmocka_unit_test(test_a_folder_of_images),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_pictures),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
