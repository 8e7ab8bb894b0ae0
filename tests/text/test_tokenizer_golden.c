/**
 * Tokenizers against PyPI tokenizers: every case of tokenizer/cases.json
 * (tools/tokenizer_cases.py), picked by hand, under twelve settings, from vocab.txt and from
 * tokenizer.json. Random strings are in test_strings_golden.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "files/file.h"
#include "qkv/tokenizer.h"

#define FOLDER QKV_TEST_DATA "/golden/tokenizer"

static json_t *load_cases(void) {
    json_error_t cause;
    json_t *root = json_load_file(FOLDER "/cases.json", JSON_ALLOW_NUL, &cause);
    if (!root) fail_msg("line %d: %s", cause.line, cause.text);
    return root;
}

static qkv_tokenizer *open_with(const json_t *setting) {
    char *vocab = NULL, *config = json_dumps(setting, 0);
    size_t vocab_bytes = 0;
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error;
    assert_int_equal(qkvi_file_load(FOLDER "/vocab.txt", 1 << 20, &vocab, &vocab_bytes, &error),
                     QKV_OK);
    if (qkv_tokenizer_open_memory(vocab, vocab_bytes, config, strlen(config), &tokenizer, &error))
        fail_msg("%s", error.message);
    free(vocab);
    free(config);
    return tokenizer;
}

static void assert_ids(const qkv_encoding *encoding, int64_t skip, const json_t *ids,
                       const char *what, size_t index) {
    const int64_t n = (int64_t)json_array_size(ids);
    if (encoding->n != n + 2 * skip)
        fail_msg("%s %zu: %lld tokens, not %lld", what, index, (long long)(encoding->n - 2 * skip),
                 (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const json_int_t wanted = json_integer_value(json_array_get(ids, (size_t)i));
        if (encoding->ids[i + skip] != wanted)
            fail_msg("%s %zu: token %lld is %d, not %lld", what, index, (long long)i,
                     encoding->ids[i + skip], (long long)wanted);
    }
}

/* Ranges lie in the text, follow one another, and begin and end at characters. */
static void assert_ranges(const qkv_encoding *encoding, const char *text, int64_t n_bytes) {
    int64_t last = 0;
    for (int64_t i = 0; i < encoding->n; i++) {
        const int64_t begin = encoding->begin[i], end = encoding->end[i];
        assert_true(last <= begin && begin <= end && end <= n_bytes);
        assert_true(begin == n_bytes || (text[begin] & 0xC0) != 0x80);
        assert_true(end == n_bytes || (text[end] & 0xC0) != 0x80);
        last = end;
    }
}

static void check_cases(const qkv_tokenizer *tokenizer, const json_t *cases, size_t setting) {
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *row = json_array_get(cases, i), *text = json_array_get(row, 0);
        const json_t *which = json_array_get(json_array_get(row, 1), setting);
        const json_t *ids =
            json_array_get(json_array_get(row, 2), (size_t)json_integer_value(which));
        const char *bytes = json_string_value(text);
        const size_t n_bytes = json_string_length(text);
        qkv_encoding *encoding = NULL;
        qkv_error error;
        if (qkv_tokenizer_encode(tokenizer, bytes, n_bytes, NULL, 0, &encoding, &error))
            fail_msg("case %zu: %s", i, error.message);
        assert_ids(encoding, 1, ids, "case", i);
        assert_ranges(encoding, bytes, (int64_t)n_bytes);
        qkv_encoding_free(encoding);
    }
}

static void test_settings(void **state) {
    (void)state;
    json_t *root = load_cases();
    const json_t *settings = json_object_get(root, "settings");
    const json_t *cases = json_object_get(root, "cases");
    assert_int_equal(json_array_size(settings), 12);
    assert_true(json_array_size(cases) >= 40);
    for (size_t s = 0; s < json_array_size(settings); s++) {
        qkv_tokenizer *tokenizer = open_with(json_array_get(settings, s));
        check_cases(tokenizer, cases, s);
        qkv_tokenizer_free(tokenizer);
    }
    json_decref(root);
}

static void test_tokenizer_json(void **state) {
    (void)state;
    json_t *root = load_cases();
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error;
    if (qkv_tokenizer_open(FOLDER, QKV_SOURCE, &tokenizer, &error)) fail_msg("%s", error.message);
    check_cases(tokenizer, json_object_get(root, "cases"), 0);
    qkv_tokenizer_free(tokenizer);
    json_decref(root);
}

static void test_pairs(void **state) {
    (void)state;
    json_t *root = load_cases();
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error;
    if (qkv_tokenizer_open(FOLDER, QKV_SOURCE, &tokenizer, &error)) fail_msg("%s", error.message);
    const json_t *pairs = json_object_get(root, "pairs");
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *row = json_array_get(pairs, i);
        const char *a = json_string_value(json_array_get(row, 0));
        const char *b = json_string_value(json_array_get(row, 1));
        qkv_encoding *encoding = NULL;
        assert_int_equal(
            qkv_tokenizer_encode(tokenizer, a, strlen(a), b, strlen(b), &encoding, &error), QKV_OK);
        assert_ids(encoding, 0, json_array_get(row, 2), "pair", i);
        for (int64_t t = 0; t < encoding->n; t++) {
            const json_t *type = json_array_get(json_array_get(row, 3), (size_t)t);
            assert_int_equal(encoding->types[t], json_integer_value(type));
        }
        qkv_encoding_free(encoding);
    }
    qkv_tokenizer_free(tokenizer);
    json_decref(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_tokenizer_json),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
