/*
 * models/seer, the demonstration of images, on held-out pictures that no report of its training
 * saw; and on examples/images/two-boats.png.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "make_ctx.h"
#include "qkv/vision.h"
#include "sanitizers.h"
#include "train/shapes.h"

/* The demonstration, on pictures that it was not trained on: n of them, of another seed. */
static void test_seer(void **state) {
    (void)state;
    enum { N = UNDER_SANITIZER ? 30 : 300, SIDE = 48 };
    static uint8_t rgb[3 * SIDE * SIDE];
    qkv_model *model;
    qkv_error error;
    int n_right = 0;
    qkv_ctx *const ctx = make_ctx(NULL, 2);
    if (qkv_model_open(QKV_TEST_ROOT "/models/seer", NULL, &model, &error) != QKV_OK)
        fail_msg("%s", error.message);
    for (int64_t i = 0; i < N; i++) {
        qkv_image *image;
        qkv_encoding *tokens;
        qkv_run *run;
        char name[QKVI_SHAPES_NAME];
        float logits[48];
        int best = 0;
        qkvi_shapes_name(qkvi_shapes_draw(1, QKVI_SPLIT_HELD_OUT, 128 + i, SIDE, rgb), name);
        assert_int_equal(qkv_image_from_rgb(rgb, SIDE, SIDE, &image, &error), QKV_OK);
        assert_int_equal(qkv_image_see(model, image, NULL, &tokens, &error), QKV_OK);
        assert_int_equal(qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&tokens, 0, NULL,
                                       &run, &error),
                         QKV_OK);
        assert_int_equal(qkv_model_classify(ctx, model, run, 0, logits, &error), QKV_OK);
        for (int l = 1; l < 48; l++)
            if (logits[l] > logits[best]) best = l;
        n_right += strcmp(qkv_model_label(model, best), name) == 0;
        qkv_run_free(run);
        qkv_encoding_free(tokens);
        qkv_image_free(image);
    }
    print_message("%d of %d held-out pictures right\n", n_right, (int)N);
    assert_true(n_right >= N * 9 / 10);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_seer) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
