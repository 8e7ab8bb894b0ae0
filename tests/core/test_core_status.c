/* Status names, error texts, escaping of hostile bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/status.h"

static void every_status_has_its_name(void **state) {
    (void)state;
    assert_string_equal(qkv_status_name(QKV_OK), "QKV_OK");
    assert_string_equal(qkv_status_name(QKV_ERR_ARGUMENT), "QKV_ERR_ARGUMENT");
    assert_string_equal(qkv_status_name(QKV_ERR_CANCELLED), "QKV_ERR_CANCELLED");
    for (int value = -12; value <= 0; value++)
        assert_memory_equal(qkv_status_name((qkv_status)value), "QKV_", 4);
    assert_string_equal(qkv_status_name((qkv_status)1), "unknown status");
    assert_string_equal(qkv_status_name((qkv_status)-13), "unknown status");
}

static void version_is_that_of_the_header(void **state) {
    (void)state;
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d%s", QKV_VERSION_MAJOR, QKV_VERSION_MINOR,
             QKV_VERSION_PATCH, QKV_VERSION_SUFFIX);
    assert_string_equal(qkv_version(), expected);
}

static void error_texts_are_cut_not_overrun(void **state) {
    (void)state;
    struct {
        qkv_error error;
        char guard[8];
    } x;
    memset(&x, '#', sizeof x);
    assert_int_equal(qkvi_error_set(&x.error, QKV_ERR_SHAPE, "%1200d", 1), QKV_ERR_SHAPE);
    assert_int_equal(x.error.status, QKV_ERR_SHAPE);
    assert_int_equal(strlen(x.error.message), sizeof x.error.message - 1);
    assert_memory_equal(x.guard, "########", 8);
    assert_int_equal(qkvi_error_set(NULL, QKV_ERR_IO, "not read"), QKV_ERR_IO);
}

static qkv_status second_step(int *steps, qkv_status status) {
    QKV_TRY(status);
    ++*steps;
    return QKV_OK;
}

static void try_returns_on_failure_only(void **state) {
    (void)state;
    int steps = 0;
    assert_int_equal(second_step(&steps, QKV_ERR_MEMORY), QKV_ERR_MEMORY);
    assert_int_equal(steps, 0);
    assert_int_equal(second_step(&steps, QKV_OK), QKV_OK);
    assert_int_equal(steps, 1);
}

static void escapes(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *expected;
    } cases[] = {
        { "", "" },
        { "embeddings.weight", "embeddings.weight" },
        { "caf\xC3\xA9 \xE6\xBC\xA2 \xF0\x9F\x98\x80",
          "caf\xC3\xA9 \xE6\xBC\xA2 \xF0\x9F\x98\x80" },
        { "a\\b", "a\\\\b" },
        { "\x1b[31m\n\t\x7f", "\\x1b[31m\\x0a\\x09\\x7f" },
        { "\xC2\x9B", "\\xc2\\x9b" },                   /* CSI in 8 bits */
        { "\xE2\x80\xAE", "\\xe2\\x80\\xae" },          /* right-to-left override */
        { "\xEF\xBB\xBFx", "\\xef\\xbb\\xbfx" },        /* byte-order mark */
        { "\xC0\xAF", "\\xc0\\xaf" },                   /* overlong */
        { "\xE0\x80\xAF", "\\xe0\\x80\\xaf" },          /* overlong */
        { "\xED\xA0\x80", "\\xed\\xa0\\x80" },          /* surrogate */
        { "\xF4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" }, /* above U+10FFFF */
        { "\xE6\xBC", "\\xe6\\xbc" },                   /* cut short */
        { "\xFF\x80", "\\xff\\x80" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[100];
        assert_string_equal(qkvi_escape(text, sizeof text, cases[i].bytes, strlen(cases[i].bytes)),
                            cases[i].expected);
    }
    char text[10];
    assert_string_equal(qkvi_escape(text, sizeof text, "a\0b", 3), "a\\x00b");
}

/*
 * Whatever the size, the text is a prefix of the whole one, cut between characters, and says that
 * it was cut.
 */
static void cut_texts_end_in_dots(void **state) {
    (void)state;
    static const char bytes[] = "a\xC3\xA9\x01z\\\xE6\xBC\xA2!";
    char whole[64], text[64];
    qkvi_escape(whole, sizeof whole, bytes, strlen(bytes));
    for (size_t size = 4; size <= strlen(whole) + 1; size++) {
        memset(text, '#', sizeof text);
        qkvi_escape(text, size, bytes, strlen(bytes));
        const size_t length = strlen(text);
        assert_true(length < size);
        assert_int_equal(text[size], '#');
        if (size == strlen(whole) + 1) {
            assert_string_equal(text, whole);
            continue;
        }
        assert_true(length >= 3);
        assert_string_equal(text + length - 3, "...");
        assert_memory_equal(text, whole, length - 3);
        assert_true(((unsigned char)whole[length - 3] & 0xC0) != 0x80);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_name),
        cmocka_unit_test(version_is_that_of_the_header),
        cmocka_unit_test(error_texts_are_cut_not_overrun),
        cmocka_unit_test(try_returns_on_failure_only),
        cmocka_unit_test(escapes),
        cmocka_unit_test(cut_texts_end_in_dots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
