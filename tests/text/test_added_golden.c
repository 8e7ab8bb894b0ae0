/**
 * Folders of tokenizers against transformers 5 (tools/added_cases.py): added tokens of every kind,
 * other names for special tokens, tokenizer.json beside tokenizer_config.json that contradicts it,
 * what older versions wrote. Ids of all texts, ranges of WordPiece's where the reference has them
 * as they are here. A folder is read as transformers reads it or refused: how many are is fixed.
 *
 * And those of decoder models and of ModernBERT, of Unigram and of MPNet's class
 * (tools/modern_cases.py): ids, and what a decoder makes of them.
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
#include "text/compose.h"
#include "text/marian.h"
#include "text/tokenizer_json.h"

/* How many of its folders are read. */
struct cases {
    const char *path;
    int n_opened;
};

static const struct cases added = { QKV_TEST_DATA "/golden/added/cases.z", 35 };
static const struct cases modern = { QKV_TEST_DATA "/golden/modern/cases.z", 37 };
static const struct cases unigram = { QKV_TEST_DATA "/golden/unigram/cases.z", 29 };

static qkvi_text_file file_of(const json_t *files, const char *name) {
    const json_t *content = json_object_get(files, name);
    return (qkvi_text_file){ name, json_string_value(content), json_string_length(content) };
}

static qkv_status open_marian(qkvi_text_files *files, const char *folder, qkv_tokenizer **tokenizer,
                              qkv_error *error) {
    char path[512], *spm = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/golden/%s/source.spm", QKV_TEST_DATA, folder);
    assert_int_equal(qkvi_file_load(path, 1 << 24, &spm, &n, error), QKV_OK);
    files->spm = (qkvi_text_file){ "source.spm", spm, n };
    const qkv_status status = qkvi_marian_read(files, 0, tokenizer, error);
    free(spm);
    return status;
}

/* As qkv_tokenizer_open chooses. */
static qkv_status open_folder(const json_t *folder, qkv_tokenizer **tokenizer, qkv_error *error) {
    const json_t *list = json_object_get(folder, "files");
    const char *spm = json_string_value(json_object_get(folder, "spm"));
    const int is_lines = json_object_get(list, "vocab.txt") != NULL;
    qkvi_text_files files = { .tokenizer = file_of(list, "tokenizer.json"),
                              .vocab = file_of(list, is_lines ? "vocab.txt" : "vocab.json"),
                              .merges = file_of(list, "merges.txt"),
                              .tokenizer_config = file_of(list, "tokenizer_config.json"),
                              .special_tokens_map = file_of(list, "special_tokens_map.json"),
                              .added_tokens = file_of(list, "added_tokens.json"),
                              .config = file_of(list, "config.json") };
    if (spm) return open_marian(&files, spm, tokenizer, error);
    if (files.tokenizer.bytes) return qkvi_tokenizer_read_json(&files, tokenizer, error);
    return is_lines ? qkvi_tokenizer_read_vocab(&files, tokenizer, error)
                    : qkvi_tokenizer_read_bpe(&files, tokenizer, error);
}

static void fail_text(const json_t *folder, const char *text, const char *what, int64_t at) {
    fail_msg("%s\n  '%s': %s of token %lld", json_string_value(json_object_get(folder, "drawn")),
             text, what, (long long)at);
}

static void check_ranges(const json_t *folder, const char *text, const qkv_encoding *got,
                         const json_t *ranges) {
    for (int64_t i = 0; i < got->n && json_is_array(ranges); i++) {
        const json_int_t begin = json_integer_value(json_array_get(ranges, (size_t)(2 * i)));
        const json_int_t end = json_integer_value(json_array_get(ranges, (size_t)(2 * i + 1)));
        if (begin >= 0 && (got->begin[i] != begin || got->end[i] != end))
            fail_text(folder, text, "the range", i);
    }
}

/* What a decoder makes of ids. */
static void check_made(const json_t *folder, const qkv_tokenizer *tokenizer, const int32_t *ids,
                       int64_t n, int flags, const json_t *made) {
    qkv_text *text = NULL;
    qkv_error error;
    if (qkv_tokenizer_decode(tokenizer, ids, n, flags, &text, &error))
        fail_msg("%s", error.message);
    if (text->n != (int64_t)json_string_length(made) ||
        memcmp(text->bytes, json_string_value(made), (size_t)text->n) != 0)
        fail_msg("%s\n  %lld ids from %d on make '%s', not '%s'",
                 json_string_value(json_object_get(folder, "drawn")), (long long)n, n ? ids[0] : -1,
                 text->bytes, json_string_value(made));
    qkv_text_free(text);
}

static void check_decoder(const json_t *folder, const qkv_tokenizer *tokenizer,
                          const qkv_encoding *got, const json_t *made) {
    if (made == NULL) return;
    int32_t *const backwards = calloc((size_t)got->n + 1, sizeof *backwards);
    assert_non_null(backwards);
    for (int64_t i = 0; i < got->n; i++) backwards[i] = got->ids[got->n - 1 - i];
    check_made(folder, tokenizer, got->ids, got->n, 0, json_array_get(made, 0));
    check_made(folder, tokenizer, got->ids, got->n, QKV_DECODE_SKIP_SPECIAL,
               json_array_get(made, 1));
    check_made(folder, tokenizer, backwards, got->n, 0, json_array_get(made, 2));
    free(backwards);
}

/* Ranges follow one another and do not overlap; those of one text. */
static void check_order(const json_t *folder, const char *text, size_t n, const qkv_encoding *got) {
    for (int64_t i = 0; i < got->n; i++) {
        const int64_t before = i > 0 ? got->end[i - 1] : 0;
        if (got->begin[i] < before || got->end[i] < got->begin[i] || got->end[i] > (int64_t)n)
            fail_text(folder, text, "the order", i);
    }
}

static void check_text(const json_t *folder, const qkv_tokenizer *tokenizer, size_t which) {
    const json_t *text = json_array_get(json_object_get(folder, "texts"), which);
    const json_t *ids = json_array_get(json_object_get(folder, "ids"), which);
    const json_t *a = json_is_array(text) ? json_array_get(text, 0) : text;
    const json_t *b = json_is_array(text) ? json_array_get(text, 1) : NULL;
    qkv_encoding *got = NULL;
    qkv_error error;
    if (qkv_tokenizer_encode(tokenizer, json_string_value(a), json_string_length(a),
                             json_string_value(b), json_string_length(b), &got, &error))
        fail_msg("%s", error.message);
    if (got->n != (int64_t)json_array_size(ids))
        fail_text(folder, json_string_value(a), "the number, not that", got->n);
    for (int64_t i = 0; i < got->n; i++)
        if (got->ids[i] != json_integer_value(json_array_get(ids, (size_t)i)))
            fail_text(folder, json_string_value(a), "the id", i);
    check_ranges(folder, json_string_value(a), got,
                 json_array_get(json_object_get(folder, "ranges"), which));
    if (b == NULL) check_order(folder, json_string_value(a), json_string_length(a), got);
    check_decoder(folder, tokenizer, got, json_array_get(json_object_get(folder, "made"), which));
    qkv_encoding_free(got);
}

static void test_folders(void **state) {
    size_t n_bytes = 0;
    int n_opened = 0, n_folders = 0;
    const struct cases *const cases = *state;
    char *text = inflated(cases->path, &n_bytes);
    json_t *root = json_loadb(text, n_bytes, JSON_ALLOW_NUL, NULL);
    const json_t *folders = json_object_get(root, "folders");
    assert_non_null(root);
    for (; n_folders < (int)json_array_size(folders); n_folders++) {
        const json_t *folder = json_array_get(folders, (size_t)n_folders);
        qkv_tokenizer *tokenizer = NULL;
        qkv_error error;
        if (open_folder(folder, &tokenizer, &error) != QKV_OK) {
            assert_null(tokenizer);
            print_message("refused: %s\n", error.message);
            continue;
        }
        for (size_t i = 0; i < json_array_size(json_object_get(folder, "texts")); i++)
            check_text(folder, tokenizer, i);
        qkv_tokenizer_free(tokenizer);
        n_opened++;
    }
    print_message("%d of %d folders read\n", n_opened, n_folders);
    assert_int_equal(n_opened, cases->n_opened);
    json_decref(root);
    free(text);
}

/* ---- NFC ------------------------------------------------------------------------------------- */

static void test_nfc(void **state) {
    size_t n_bytes = 0;
    char *text = inflated(QKV_TEST_DATA "/golden/modern/nfc.z", &n_bytes);
    json_t *root = json_loadb(text, n_bytes, 0, NULL);
    const json_t *pairs = json_object_get(root, "pairs");
    const qkvi_compose_rules rules = { .composes = 1 };
    qkvi_normal_text normal = { 0 };
    (void)state;
    assert_true(json_array_size(pairs) > 10000);
    for (size_t i = 0; i + 1 < json_array_size(pairs); i += 2) {
        const json_t *raw = json_array_get(pairs, i), *composed = json_array_get(pairs, i + 1);
        const uint32_t n = (uint32_t)json_string_length(raw);
        assert_int_equal(qkvi_compose(json_string_value(raw), 0, n, &rules, &normal), QKV_OK);
        if (normal.bytes.n != json_string_length(composed) ||
            memcmp(normal.bytes.bytes, json_string_value(composed), normal.bytes.n) != 0)
            fail_msg("'%s' is not '%s'", json_string_value(raw), json_string_value(composed));
        assert_false(qkvi_is_composed(json_string_value(raw), n));
    }
    qkvi_normal_text_free(&normal);
    json_decref(root);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_folders, (void *)(uintptr_t)&added),
        cmocka_unit_test_prestate(test_folders, (void *)(uintptr_t)&modern),
        cmocka_unit_test_prestate(test_folders, (void *)(uintptr_t)&unigram),
        cmocka_unit_test(test_nfc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
