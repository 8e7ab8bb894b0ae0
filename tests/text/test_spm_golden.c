/**
 * SentencePiece models against PyPI sentencepiece (tools/spm_cases.py): ids, byte ranges and the
 * text of the ids, ten settings, the same texts for each; and against properties that hold for
 * every model. Marian's folders against transformers (tools/marian_cases.py).
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

#include "golden/inflated.h"
#include "qkv/tokenizer.h"
#include "text/spm.h"

#define FOLDER QKV_TEST_DATA "/golden/spm/"

enum { MAX_TOKENS = 4096 };

/* What an encoding was. */
struct tokens {
    int32_t ids[MAX_TOKENS];
    uint32_t begin[MAX_TOKENS], end[MAX_TOKENS];
    size_t n;
};

static qkv_status keep(void *user, const qkvi_spm_token *token) {
    struct tokens *tokens = user;
    assert_true(tokens->n < MAX_TOKENS);
    tokens->ids[tokens->n] = token->id;
    tokens->begin[tokens->n] = token->begin;
    tokens->end[tokens->n++] = token->end;
    return QKV_OK;
}

static void open_model(const char *name, qkvi_spm *spm) {
    char path[256];
    size_t n = 0;
    qkv_error error;
    snprintf(path, sizeof path, FOLDER "%s.z", name);
    char *bytes = inflated(path, &n);
    if (qkvi_spm_open(spm, name, bytes, n, &error)) fail_msg("%s", error.message);
    free(bytes);
}

static void assert_numbers(const char *model, size_t index, const char *what, const json_t *wanted,
                           const struct tokens *tokens, const uint32_t *found) {
    if (json_array_size(wanted) != tokens->n)
        fail_msg("%s, text %zu: %zu tokens, not %zu", model, index, tokens->n,
                 json_array_size(wanted));
    for (size_t i = 0; i < tokens->n; i++) {
        const json_int_t number = json_integer_value(json_array_get(wanted, i));
        if (number != (json_int_t)found[i])
            fail_msg("%s, text %zu: %s %zu is %u, not %lld", model, index, what, i, found[i],
                     (long long)number);
    }
}

static void assert_decodes(const qkvi_spm *spm, const char *model, size_t index,
                           const struct tokens *tokens, const json_t *wanted) {
    qkvi_spm_decoder decoder = { .spm = spm };
    for (size_t i = 0; i < tokens->n; i++) {
        const struct qkvi_text_piece piece = spm->pieces.tokens[tokens->ids[i]];
        assert_int_equal(
            qkvi_spm_decode(&decoder, spm->pieces.bytes + piece.offset, (size_t)piece.length),
            QKV_OK);
    }
    assert_int_equal(qkvi_spm_decode_end(&decoder), QKV_OK);
    if (decoder.n_bytes != json_string_length(wanted) ||
        memcmp(decoder.bytes, json_string_value(wanted), decoder.n_bytes) != 0)
        fail_msg("%s, text %zu: decodes as \"%.*s\", not \"%s\"", model, index,
                 (int)decoder.n_bytes, decoder.bytes, json_string_value(wanted));
    qkvi_spm_decoder_free(&decoder);
}

static void check_model(const char *name, const json_t *texts, const json_t *cases) {
    qkvi_spm spm;
    open_model(name, &spm);
    struct tokens *tokens = malloc(sizeof *tokens);
    assert_non_null(tokens);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *text = json_array_get(texts, i), *row = json_array_get(cases, i);
        tokens->n = 0;
        assert_int_equal(qkvi_spm_encode(&spm, json_string_value(text),
                                         (uint32_t)json_string_length(text), keep, tokens),
                         QKV_OK);
        assert_numbers(name, i, "id", json_array_get(row, 0), tokens, (uint32_t *)tokens->ids);
        assert_numbers(name, i, "begin", json_array_get(row, 1), tokens, tokens->begin);
        assert_numbers(name, i, "end", json_array_get(row, 2), tokens, tokens->end);
        assert_decodes(&spm, name, i, tokens, json_array_get(row, 3));
    }
    free(tokens);
    qkvi_spm_free(&spm);
}

static json_t *load(const char *bytes, size_t n) {
    json_error_t cause;
    json_t *root = json_loadb(bytes, n, JSON_ALLOW_NUL, &cause);
    if (!root) fail_msg("line %d: %s", cause.line, cause.text);
    return root;
}

static void test_models(void **state) {
    (void)state;
    size_t n = 0;
    char *bytes = inflated(FOLDER "cases.z", &n);
    json_t *root = load(bytes, n);
    free(bytes);
    const json_t *texts = json_object_get(root, "texts"), *cases;
    assert_true(json_array_size(texts) > 300);
    size_t models = 0;
    const char *name;
    json_object_foreach(json_object_get(root, "models"), name, cases) {
        assert_int_equal(json_array_size(cases), json_array_size(texts));
        check_model(name, texts, cases);
        models++;
    }
    assert_int_equal(models, 10);
    json_decref(root);
}

/* ---- Marian ---------------------------------------------------------------------------------- */

static void assert_ids(const qkv_tokenizer *tokenizer, const json_t *text, const json_t *ids) {
    const int64_t n_bytes = (int64_t)json_string_length(text);
    qkv_encoding *encoding = NULL;
    qkv_error error;
    if (qkv_tokenizer_encode(tokenizer, json_string_value(text), (size_t)n_bytes, NULL, 0,
                             &encoding, &error))
        fail_msg("%s", error.message);
    assert_int_equal(encoding->n, json_array_size(ids));
    int64_t before = 0;
    for (int64_t i = 0; i < encoding->n; i++) {
        assert_int_equal(encoding->ids[i], json_integer_value(json_array_get(ids, (size_t)i)));
        assert_true(before <= encoding->begin[i] && encoding->begin[i] <= encoding->end[i]);
        assert_true(encoding->end[i] <= n_bytes);
        before = encoding->end[i];
    }
    qkv_encoding_free(encoding);
}

static void assert_text(const qkv_tokenizer *tokenizer, const json_t *ids, const json_t *wanted) {
    const size_t n = json_array_size(ids);
    int32_t *numbers = malloc((n + 1) * sizeof *numbers);
    qkv_text *text = NULL;
    qkv_error error;
    assert_non_null(numbers);
    for (size_t i = 0; i < n; i++) numbers[i] = (int32_t)json_integer_value(json_array_get(ids, i));
    if (qkv_tokenizer_decode(tokenizer, numbers, (int64_t)n, 0, &text, &error))
        fail_msg("%s", error.message);
    if ((size_t)text->n != json_string_length(wanted) ||
        memcmp(text->bytes, json_string_value(wanted), (size_t)text->n) != 0)
        fail_msg("\"%s\", not \"%s\"", text->bytes, json_string_value(wanted));
    qkv_text_free(text);
    free(numbers);
}

static void check_folder(const char *folder, int is_separate) {
    char path[256];
    json_error_t cause;
    qkv_tokenizer *source = NULL, *target = NULL;
    qkv_error error;
    snprintf(path, sizeof path, "%s/cases.json", folder);
    json_t *root = json_load_file(path, JSON_ALLOW_NUL, &cause);
    if (!root) fail_msg("line %d: %s", cause.line, cause.text);
    if (qkv_tokenizer_open(folder, QKV_SOURCE, &source, &error)) fail_msg("%s", error.message);
    if (qkv_tokenizer_open(folder, QKV_TARGET, &target, &error)) fail_msg("%s", error.message);
    const json_t *cases = json_object_get(root, "cases");
    assert_true(json_array_size(cases) > 100);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *row = json_array_get(cases, i);
        assert_ids(source, json_array_get(row, 0), json_array_get(row, 1));
        const json_t *other = json_array_get(row, 2), *decoded = json_array_get(row, 3);
        if (!json_is_null(other)) assert_ids(target, json_array_get(row, 0), other);
        if (!is_separate) assert_text(source, json_array_get(row, 1), decoded);
        if (is_separate && !json_is_null(decoded)) assert_text(target, other, decoded);
    }
    qkv_tokenizer_free(source);
    qkv_tokenizer_free(target);
    json_decref(root);
}

static void test_marian(void **state) {
    (void)state;
    check_folder(QKV_TEST_DATA "/golden/marian", 0);
}

static void test_separate_vocabularies(void **state) {
    (void)state;
    check_folder(QKV_TEST_DATA "/golden/marian_separate", 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_marian),
        cmocka_unit_test(test_separate_vocabularies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
