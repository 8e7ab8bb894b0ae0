/**
 * Byte-level BPE vocabularies against PyPI tokenizers' BpeTrainer (tools/bpe_train_cases.py): text,
 * our grammar, strange characters, ties in alphabets of a few letters. Of a case are compared all
 * merges and tokens, then the ids of strings, by the tokenizer of the two trained files and by that
 * of the tokenizer.json written beside them; of the first case of each style also every byte of the
 * files with those that PyPI tokenizers and transformers were seen to read rightly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "files/utf8.h"
#include "golden/inflated.h"
#include "text/bpe_train.h"
#include "text/byte_level.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

#define FOLDER QKV_TEST_DATA "/golden/bpe_train"

static const char *const files[] = { "vocab.json", "merges.txt", "tokenizer.json",
                                     "tokenizer_config.json" };
enum { N_FILES = sizeof files / sizeof *files };

static int open_cases(void **state) {
    size_t n;
    json_error_t cause;
    char *const bytes = inflated(FOLDER "/cases.z", &n);
    json_t *const cases = json_loadb(bytes, n, JSON_ALLOW_NUL, &cause);
    free(bytes);
    if (!cases) fail_msg("cases.z: line %d: %s", cause.line, cause.text);
    *state = cases;
    return 0;
}

static int close_cases(void **state) {
    json_decref(*state);
    return 0;
}

static const qkvi_bpe_style *style_of(const json_t *item) {
    const char *const style = json_string_value(json_object_get(item, "style"));
    return strcmp(style, "bart") == 0 ? &qkvi_bpe_bart : &qkvi_bpe_gpt2;
}

/* The vocabulary of a case, its texts read forwards or backwards. */
static void train(const json_t *item, int backwards, qkvi_bpe_vocab *made) {
    const json_t *const texts = json_object_get(item, "texts");
    const size_t n = json_array_size(texts);
    qkvi_counter words = { 0 };
    qkv_error error;
    for (size_t i = 0; i < n; i++) {
        const json_t *const text = json_array_get(texts, backwards ? n - 1 - i : i);
        const json_t *const string = json_array_get(text, 0);
        if (qkvi_bpe_count(&words, json_string_value(string), json_string_length(string),
                           json_integer_value(json_array_get(text, 1)), &error))
            fail_msg("%s", error.message);
    }
    const int32_t size = (int32_t)json_integer_value(json_object_get(item, "size"));
    if (qkvi_bpe_train(&words, style_of(item), size, made, &error)) fail_msg("%s", error.message);
    qkvi_counter_free(&words);
}

static void compare_merges(const json_t *item, const qkvi_bpe_vocab *made) {
    const json_t *merge;
    size_t i;
    qkvi_growing expected = { 0 };
    assert_int_equal(qkvi_growing_put(&expected, "#version: 0.2\n", 14), QKV_OK);
    json_array_foreach(json_object_get(item, "merges"), i, merge) {
        char line[256];
        const int n =
            snprintf(line, sizeof line, "%s %s\n", json_string_value(json_array_get(merge, 0)),
                     json_string_value(json_array_get(merge, 1)));
        assert_int_equal(qkvi_growing_put(&expected, line, (size_t)n), QKV_OK);
        if (made->merges.n < expected.n || memcmp(made->merges.bytes, expected.bytes, expected.n))
            fail_msg("merge %zu is not %s", i, line);
    }
    assert_int_equal(made->merges.n, expected.n);
    free(expected.bytes);
}

/* Special tokens, bytes, merges: the token of an id. */
static void expected_token(const json_t *item, json_int_t id, char token[256]) {
    const char *const *special = style_of(item)->special;
    for (; *special; special++)
        if (id-- == 0) {
            snprintf(token, 256, "%s", *special);
            return;
        }
    if (id >= 256) {
        const json_t *const merge =
            json_array_get(json_object_get(item, "merges"), (size_t)id - 256);
        snprintf(token, 256, "%s%s", json_string_value(json_array_get(merge, 0)),
                 json_string_value(json_array_get(merge, 1)));
        return;
    }
    int32_t code = -1;
    for (json_int_t n = 0; n <= id; n++)
        while (qkvi_char_byte(++code) < 0) continue;
    token[qkvi_utf8_put(code, token)] = '\0';
}

static void compare_tokens(const json_t *item, const qkvi_bpe_vocab *made) {
    json_t *const vocab =
        json_loadb(made->vocab.bytes, made->vocab.n, JSON_REJECT_DUPLICATES, NULL);
    const size_t n = json_array_size(json_object_get(item, "merges")) + 256 +
                     (style_of(item) == &qkvi_bpe_bart ? 5 : 1);
    assert_non_null(vocab);
    assert_int_equal(json_object_size(vocab), n);
    for (size_t id = 0; id < n; id++) {
        char token[256];
        expected_token(item, (json_int_t)id, token);
        const json_t *const found = json_object_get(vocab, token);
        if (!json_is_integer(found) || (size_t)json_integer_value(found) != id)
            fail_msg("'%s' does not have id %zu", token, id);
    }
    json_decref(vocab);
}

/* Ids between what stands around a text. */
static void compare_ids(const json_t *item, const qkv_tokenizer *tokenizer) {
    const int64_t around = style_of(item) == &qkvi_bpe_bart;
    const json_t *pair;
    size_t i;
    json_array_foreach(json_object_get(item, "strings"), i, pair) {
        const json_t *const string = json_array_get(pair, 0), *const ids = json_array_get(pair, 1);
        qkv_encoding *encoding;
        qkv_error error;
        if (qkv_tokenizer_encode(tokenizer, json_string_value(string), json_string_length(string),
                                 NULL, 0, &encoding, &error))
            fail_msg("%s", error.message);
        assert_int_equal(encoding->n, (int64_t)json_array_size(ids) + 2 * around);
        for (size_t at = 0; at < json_array_size(ids); at++)
            assert_int_equal(encoding->ids[(int64_t)at + around],
                             json_integer_value(json_array_get(ids, at)));
        qkv_encoding_free(encoding);
    }
}

/* ---- Files ----------------------------------------------------------------------------------- */

static char *load(const char *folder, const char *name, size_t *n) {
    char path[600], *bytes;
    qkv_error error;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (qkvi_file_load(path, 1 << 24, &bytes, n, &error)) fail_msg("%s", error.message);
    return bytes;
}

static void save(const qkvi_bpe_vocab *made, const char *folder) {
    qkvi_files out = { .folder = folder };
    qkv_error error;
    if (qkvi_bpe_vocab_save(&out, made, 64, &error) || qkvi_files_commit(&out, &error))
        fail_msg("%s", error.message);
}

static void compare_files(const char *folder, const char *style) {
    char seen[512];
    snprintf(seen, sizeof seen, "%s/%s", FOLDER, style);
    for (int f = 0; f < N_FILES; f++) {
        size_t n, n_seen;
        char *const bytes = load(folder, files[f], &n);
        char *const seen_bytes = load(seen, files[f], &n_seen);
        if (n != n_seen || memcmp(bytes, seen_bytes, n) != 0)
            fail_msg("%s/%s is not what PyPI tokenizers was seen to read", style, files[f]);
        free(bytes);
        free(seen_bytes);
    }
}

static void remove_folder(const char *folder) {
    for (int f = 0; f < N_FILES; f++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, files[f]);
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void equals_the_reference(void **state) {
    size_t c;
    const json_t *item;
    json_array_foreach(*state, c, item) {
        char folder[] = "bpe_train.XXXXXX";
        qkvi_bpe_vocab made;
        qkv_tokenizer *tokenizer;
        qkv_error error;
        train(item, 0, &made);
        compare_merges(item, &made);
        compare_tokens(item, &made);
        if (qkvi_bpe_vocab_open(&made, &tokenizer, &error)) fail_msg("%s", error.message);
        compare_ids(item, tokenizer);
        qkv_tokenizer_free(tokenizer);
        assert_non_null(mkdtemp(folder));
        save(&made, folder);
        if (qkv_tokenizer_open(folder, QKV_SOURCE, &tokenizer, &error))
            fail_msg("%s", error.message);
        compare_ids(item, tokenizer);
        qkv_tokenizer_free(tokenizer);
        if (c < 2) compare_files(folder, json_string_value(json_object_get(item, "style")));
        remove_folder(folder);
        qkvi_bpe_vocab_free(&made);
    }
    assert_true(c > 8);
}

static void order_of_texts_is_nothing(void **state) {
    size_t c;
    const json_t *item;
    json_array_foreach(*state, c, item) {
        qkvi_bpe_vocab made, again;
        train(item, 0, &made);
        train(item, 1, &again);
        assert_int_equal(made.merges.n, again.merges.n);
        assert_memory_equal(made.merges.bytes, again.merges.bytes, made.merges.n);
        qkvi_bpe_vocab_free(&made);
        qkvi_bpe_vocab_free(&again);
    }
}

static void refuses(void **state) {
    (void)state;
    qkvi_counter words = { 0 };
    qkvi_bpe_vocab made;
    qkv_error error;
    assert_int_equal(qkvi_bpe_count(&words, "ab\xff", 3, 1, &error), QKV_ERR_FORMAT);
    assert_string_equal(error.message, "text is not valid UTF-8 at byte 2");
    assert_int_equal(qkvi_bpe_train(&words, &qkvi_bpe_bart, 260, &made, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message,
                        "vocab_size = 260 is less than the 261 bytes and special tokens");
    qkvi_counter_free(&words);
}

/* golden_bpe_train --write: the folders that bpe_train_cases.py --check looks at. */
static int write_folders(void) {
    void *cases;
    open_cases(&cases);
    for (size_t c = 0; c < 2; c++) {
        const json_t *const item = json_array_get(cases, c);
        char folder[512];
        qkvi_bpe_vocab made;
        snprintf(folder, sizeof folder, "%s/%s", FOLDER,
                 json_string_value(json_object_get(item, "style")));
        mkdir(folder, 0777);
        train(item, 0, &made);
        save(&made, folder);
        qkvi_bpe_vocab_free(&made);
    }
    return close_cases(&cases);
}

int main(int n_words, char **words) {
    if (n_words > 1 && strcmp(words[1], "--write") == 0) return write_folders();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_reference),
        cmocka_unit_test(order_of_texts_is_nothing),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, open_cases, close_cases);
}
