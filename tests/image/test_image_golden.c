/*
 * Images against torchvision and transformers (tools/image_cases.py): what is read of files, how
 * patterns are resized, and what each class of processors makes of an image. All of it is equal in
 * every bit but what DINOv3 resizes as floats.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "files/file.h"
#include "image/prepare.h"
#include "image/resize.h"
#include "qkv/files.h"

#define DATA QKV_TEST_DATA "/golden/image/"

enum { MAX_CASES = 128, NAME_BYTES = 100 };

typedef struct list {
    int n;
    char of[MAX_CASES][NAME_BYTES];
} list;

static void add_name(void *user, const qkv_tensor_entry *entry) {
    list *const names = user;
    assert_true(names->n < MAX_CASES && strlen(entry->name) < NAME_BYTES);
    strcpy(names->of[names->n++], entry->name);
}

static list *list_of(const char *path) {
    qkv_error error;
    list *const names = calloc(1, sizeof *names);
    if (qkv_tensor_list(path, add_name, names, &error) != QKV_OK) fail_msg("%s", error.message);
    return names;
}

static qkv_array *expected(const char *file, const char *name) {
    char path[512];
    qkv_array *array;
    qkv_error error;
    snprintf(path, sizeof path, "%s:%s", file, name);
    if (qkv_array_read(path, QKV_ARRAY_F32, &array, &error) != QKV_OK)
        fail_msg("%s", error.message);
    return array;
}

static qkv_image *read_image(const char *name) {
    char path[512];
    qkv_image *image;
    qkv_error error;
    snprintf(path, sizeof path, DATA "files/%s", name);
    if (qkv_image_read(path, &image, &error) != QKV_OK) fail_msg("%s", error.message);
    return image;
}

/* [height][width][3], which numpy stored as bytes. */
static void same_bytes(const char *name, const uint8_t *rgb, int64_t height, int64_t width,
                       const qkv_array *wanted) {
    assert_int_equal(wanted->type, QKV_ARRAY_I64);
    assert_int_equal(wanted->rank, 3);
    if (wanted->shape[0] != height || wanted->shape[1] != width)
        fail_msg("%s: %lld x %lld", name, (long long)width, (long long)height);
    for (int64_t i = 0; i < wanted->n_elems; i++)
        if (((const int64_t *)wanted->data)[i] != rgb[i])
            fail_msg("%s: value %lld is %d, not %lld", name, (long long)i, rgb[i],
                     (long long)((const int64_t *)wanted->data)[i]);
}

static void test_decoded(void **state) {
    list *const names = list_of(DATA "decoded.npz");
    (void)state;
    assert_true(names->n >= 30);
    for (int i = 0; i < names->n; i++) {
        qkv_array *const wanted = expected(DATA "decoded.npz", names->of[i]);
        qkv_image *const image = read_image(names->of[i]);
        same_bytes(names->of[i], image->rgb, image->height, image->width, wanted);
        qkv_image_free(image);
        qkv_array_free(wanted);
    }
    free(names);
}

/* ---- Resizing -------------------------------------------------------------------------------- */

static uint8_t *pattern(int64_t n) {
    uint8_t *const made = malloc((size_t)n);
    for (int64_t i = 0; i < n; i++)
        made[i] = (uint8_t)((uint32_t)((uint64_t)i * 2654435761u) >> 24);
    return made;
}

/* Also in parts, as a crop makes them. */
static void resize_part(const char *name, const qkvi_resize *whole, const uint8_t *in,
                        const uint8_t *wanted) {
    qkvi_resize part = *whole;
    part.y.begin = whole->y.n_out / 3, part.y.n = whole->y.n_out - part.y.begin;
    part.x.begin = whole->x.n_out / 2, part.x.n = 1;
    uint8_t *const out = malloc((size_t)part.y.n * 3);
    assert_int_equal(qkvi_resize_bytes(&part, in, out, NULL), QKV_OK);
    for (int64_t y = 0; y < part.y.n; y++)
        if (memcmp(out + y * 3, wanted + ((part.y.begin + y) * whole->x.n_out + part.x.begin) * 3,
                   3) != 0)
            fail_msg("%s: a part differs in row %lld", name, (long long)y);
    free(out);
}

static void test_resized(void **state) {
    list *const names = list_of(DATA "resized.npz");
    (void)state;
    assert_true(names->n >= 28);
    for (int i = 0; i < names->n; i++) {
        long long filter, h, w, to_h, to_w;
        assert_int_equal(
            sscanf(names->of[i], "%lld %lldx%lld %lldx%lld", &filter, &h, &w, &to_h, &to_w), 5);
        const qkvi_resize resize = { { h, to_h, 0, to_h },
                                     { w, to_w, 0, to_w },
                                     (qkvi_image_filter)filter };
        uint8_t *const in = pattern(h * w * 3), *const out = malloc((size_t)(to_h * to_w * 3));
        qkv_array *const wanted = expected(DATA "resized.npz", names->of[i]);
        assert_int_equal(qkvi_resize_bytes(&resize, in, out, NULL), QKV_OK);
        same_bytes(names->of[i], out, to_h, to_w, wanted);
        resize_part(names->of[i], &resize, in, out);
        qkv_array_free(wanted);
        free(in);
        free(out);
    }
    free(names);
}

/* ---- Processors ------------------------------------------------------------------------------ */

static void read_rules(const char *name, qkvi_image_rules *rules) {
    char path[512], *bytes;
    size_t n_bytes;
    qkv_error error;
    snprintf(path, sizeof path, DATA "processors/%s.json", name);
    if (qkvi_file_load(path, 1 << 20, &bytes, &n_bytes, &error) != QKV_OK ||
        qkvi_image_rules_read(path, bytes, n_bytes, NULL, rules, &error) != QKV_OK)
        fail_msg("%s", error.message);
    free(bytes);
}

static void same_floats(const char *name, const qkvi_image_rules *rules, const float *pixels,
                        const qkv_array *wanted) {
    const float *const w = wanted->data;
    float top = 0;
    for (int64_t i = 0; i < wanted->n_elems; i++) top = fmaxf(top, fabsf(w[i]));
    const float bound = rules->rescales_first ? 1e-5f * top : 0;
    for (int64_t i = 0; i < wanted->n_elems; i++)
        if (!(fabsf(pixels[i] - w[i]) <= bound))
            fail_msg("%s: value %lld is %.9g, not %.9g", name, (long long)i, (double)pixels[i],
                     (double)w[i]);
}

/* Values and, of those that are not resized as floats, bytes agree. */
static void same_rgb(const char *name, const qkvi_image_rules *rules, const qkv_image *image,
                     const qkvi_image_view *view, const float *pixels) {
    const int64_t n = view->height * view->width;
    uint8_t *const rgb = malloc((size_t)n * 3);
    assert_int_equal(qkvi_image_prepare(rules, image, NULL, rgb, NULL), QKV_OK);
    for (int64_t i = 0; i < n * 3; i++) {
        const int c = (int)(i % 3);
        double v = rgb[i] * (rules->rescale_factor > 0 ? rules->rescale_factor : 1);
        if (rules->normalizes) v = (v - rules->mean[c]) / rules->std[c];
        const double difference = fabs(v - (double)pixels[c * n + i / 3]);
        if (!(difference <= (rules->rescales_first ? 0.02 : 1e-5) * (1 + fabs(v))))
            fail_msg("%s: byte %lld is off by %g", name, (long long)i, difference);
    }
    free(rgb);
}

static void test_prepared(void **state) {
    list *const names = list_of(DATA "prepared.npz");
    (void)state;
    assert_true(names->n >= 42);
    for (int i = 0; i < names->n; i++) {
        char processor[NAME_BYTES], file[NAME_BYTES];
        qkvi_image_rules rules;
        qkvi_image_view view;
        qkv_error error;
        assert_int_equal(sscanf(names->of[i], "%99s %99s", processor, file), 2);
        read_rules(processor, &rules);
        qkv_image *const image = read_image(file);
        qkv_array *const wanted = expected(DATA "prepared.npz", names->of[i]);
        assert_int_equal(qkvi_image_view_of(&rules, image, &view, &error), QKV_OK);
        assert_true(wanted->rank == 3 && wanted->shape[0] == 3);
        assert_int_equal(wanted->shape[1], view.height);
        assert_int_equal(wanted->shape[2], view.width);
        float *const pixels = malloc((size_t)wanted->n_elems * sizeof *pixels);
        assert_int_equal(qkvi_image_prepare(&rules, image, pixels, NULL, &error), QKV_OK);
        same_floats(names->of[i], &rules, pixels, wanted);
        same_rgb(names->of[i], &rules, image, &view, pixels);
        free(pixels);
        qkv_array_free(wanted);
        qkv_image_free(image);
    }
    free(names);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoded),
        cmocka_unit_test(test_resized),
        cmocka_unit_test(test_prepared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
