/**
 * Tokenizers: vocabularies, switches, byte ranges, time. Hostile ones are in the tests
 * hostile_*.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "limits/limits.h"
#include "qkv/tokenizer.h"
#include "text/tokenizer_json.h"

#define BASE "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"

static qkv_status open_bytes(const char *vocab, size_t n, const char *config, qkv_tokenizer **out,
                             qkv_error *error) {
    return qkv_tokenizer_open_memory(vocab, n, config, config ? strlen(config) : 0, out, error);
}

static qkv_tokenizer *open_text(const char *vocab, const char *config) {
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error;
    if (open_bytes(vocab, strlen(vocab), config, &tokenizer, &error)) fail_msg("%s", error.message);
    return tokenizer;
}

static void assert_refused(const char *vocab, size_t n, const char *config, qkv_status status,
                           const char *words) {
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error = { 0 };
    assert_int_equal(open_bytes(vocab, n, config, &tokenizer, &error), status);
    assert_null(tokenizer);
    if (!strstr(error.message, words)) fail_msg("\"%s\" lacks \"%s\"", error.message, words);
}

static qkv_encoding *encode(const qkv_tokenizer *tokenizer, const char *text, size_t n) {
    qkv_encoding *encoding = NULL;
    qkv_error error;
    if (qkv_tokenizer_encode(tokenizer, text, n, NULL, 0, &encoding, &error))
        fail_msg("%s", error.message);
    return encoding;
}

static void assert_encoding(const qkv_tokenizer *tokenizer, const char *text, int n,
                            const int32_t *ids) {
    qkv_encoding *encoding = encode(tokenizer, text, strlen(text));
    assert_int_equal(encoding->n, n + 2);
    for (int i = 0; i < n; i++) assert_int_equal(encoding->ids[i + 1], ids[i]);
    qkv_encoding_free(encoding);
}

static void test_vocab_lines(void **state) {
    (void)state;
    qkv_tokenizer *tokenizer =
        open_text("[UNK]\r\n[CLS]\r\n[SEP]\r\n\r\na\nc\r\r\n##b \xE3\x80\x80\n\nlast",
                  "{\"pad_token\":null,\"mask_token\":null}");
    size_t bytes = 9;
    assert_int_equal(qkv_tokenizer_size(tokenizer), 9);
    assert_non_null(qkv_tokenizer_token(tokenizer, 3, &bytes));
    assert_int_equal(bytes, 0);
    assert_int_equal(qkv_tokenizer_id(tokenizer, "a", 1), 4);
    assert_int_equal(qkv_tokenizer_id(tokenizer, "c", 1), 5);   /* white space at an end goes */
    assert_int_equal(qkv_tokenizer_id(tokenizer, "##b", 3), 6); /* U+3000, too */
    assert_int_equal(qkv_tokenizer_id(tokenizer, "", 0), 7);    /* the last empty line */
    assert_int_equal(qkv_tokenizer_id(tokenizer, "last", 4), 8);
    assert_int_equal(qkv_tokenizer_id(tokenizer, "las", 3), -1);
    assert_null(qkv_tokenizer_token(tokenizer, 9, &bytes));
    assert_null(qkv_tokenizer_token(tokenizer, -1, &bytes));
    assert_int_equal(qkv_tokenizer_special(tokenizer, QKV_TOKEN_CLS), 1);
    assert_int_equal(qkv_tokenizer_special(tokenizer, QKV_TOKEN_MASK), -1);
    assert_int_equal(qkv_tokenizer_special(tokenizer, (qkv_token_role)77), -1);
    assert_encoding(tokenizer, "ab [MASK]", 5, (const int32_t[]){ 4, 6, 0, 0, 0 });
    qkv_tokenizer_free(tokenizer);
}

static void test_config(void **state) {
    (void)state;
    const char *vocab = BASE "a\nA\n\xC3\xA9\ne\n";
    const struct {
        const char *config;
        int32_t a, e; /* of "A" and of "é" */
    } rows[] = {
        { NULL, 5, 8 },
        { "{}", 5, 8 },
        { "{\"do_lower_case\":false}", 6, 7 },
        { "{\"do_lower_case\":true,\"strip_accents\":false}", 5, 7 },
        { "{\"do_lower_case\":false,\"strip_accents\":true}", 6, 8 },
        { "{\"strip_accents\":null,\"tokenizer_class\":\"BertTokenizerFast\"}", 5, 8 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        qkv_tokenizer *tokenizer = open_text(vocab, rows[i].config);
        assert_encoding(tokenizer, "A \xC3\xA9", 2, (const int32_t[]){ rows[i].a, rows[i].e });
        qkv_tokenizer_free(tokenizer);
    }
    assert_refused(vocab, strlen(vocab), "{\"do_lower_case\":1}", QKV_ERR_FORMAT, "do_lower_case");
    assert_refused(vocab, strlen(vocab), "[", QKV_ERR_FORMAT, "tokenizer_config.json");
    assert_refused(vocab, strlen(vocab), "{\"tokenizer_class\":\"BertJapaneseTokenizer\"}",
                   QKV_ERR_UNSUPPORTED, "BertJapaneseTokenizer");
}

static void assert_range(const qkv_encoding *encoding, int64_t token, int64_t begin, int64_t end) {
    assert_int_equal(encoding->begin[token], begin);
    assert_int_equal(encoding->end[token], end);
}

static void test_ranges(void **state) {
    (void)state;
    qkv_tokenizer *tokenizer = open_text(BASE "caf\n##e\nx\n.\n\xE1\x84\x92\n##\xE1\x85\xA1\n"
                                              "##\xE1\x86\xAB\n##\xE0\xB3\x95\n",
                                         NULL);
    /*                                        0   4       6 7     12 13 14 */
    qkv_encoding *encoding = encode(tokenizer, " CAF\xC3\x89 x[MASK]x.", 16);
    assert_int_equal(encoding->n, 8);
    assert_range(encoding, 0, 0, 0);
    assert_range(encoding, 1, 1, 4);
    assert_range(encoding, 2, 4, 6);
    assert_range(encoding, 3, 7, 8);
    assert_range(encoding, 4, 8, 14);
    assert_int_equal(encoding->special[4], 1);
    assert_range(encoding, 5, 14, 15);
    qkv_encoding_free(encoding);
    encoding = encode(tokenizer, "cafe\xCC\x81", 6); /* the accent belongs to its letter */
    assert_range(encoding, 2, 3, 6);
    qkv_encoding_free(encoding);
    encoding = encode(tokenizer, "\xED\x95\x9C", 3); /* one syllable, three tokens */
    assert_int_equal(encoding->n, 5);
    assert_range(encoding, 1, 0, 3);
    assert_range(encoding, 2, 3, 3);
    assert_range(encoding, 3, 3, 3);
    qkv_encoding_free(encoding);
    encoding = encode(tokenizer, "x\xE0\xB3\x87", 4); /* U+0CC7: an accent, dropped, and U+0CD5 */
    assert_int_equal(encoding->n, 4);
    assert_range(encoding, 1, 0, 1);
    assert_range(encoding, 2, 1, 4);
    qkv_encoding_free(encoding);
    qkv_tokenizer_free(tokenizer);
}

/* Seconds of CPU for n copies of a unit. */
static double seconds_for(const qkv_tokenizer *tokenizer, const char *unit, size_t n,
                          int64_t *n_tokens) {
    const size_t unit_bytes = strlen(unit);
    char *text = malloc(n * unit_bytes);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++) memcpy(text + i * unit_bytes, unit, unit_bytes);
    const clock_t start = clock();
    qkv_encoding *encoding = encode(tokenizer, text, n * unit_bytes);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    *n_tokens = encoding->n;
    qkv_encoding_free(encoding);
    free(text);
    return seconds;
}

/* 2 MB each: a tenth of a second, of which anything quadratic needs 10^12 steps. */
static void test_long_words(void **state) {
    (void)state;
    qkv_tokenizer *tokenizer = open_text(BASE "a\n##a\n,\n", NULL);
    const double most = limit_seconds(10);
    int64_t n = 0;
    assert_true(seconds_for(tokenizer, "a", 2000000, &n) < most);
    assert_int_equal(n, 3);
    assert_true(seconds_for(tokenizer, "\xCC\x81\xCC\x96", 500000, &n) < most); /* to be sorted */
    assert_int_equal(n, 2);
    assert_true(seconds_for(tokenizer, "a,", 1000000, &n) < most);
    assert_int_equal(n, 2000002);
    assert_true(seconds_for(tokenizer, "[MASK", 400000, &n) < most);
    qkv_tokenizer_free(tokenizer);
}

/* ---- tokenizer.json -------------------------------------------------------------------------- */

#define NORMALIZER "\"normalizer\":{\"type\":\"BertNormalizer\"}"
#define PRE        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}"
#define VOCAB      "\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,\"a\":3,\"##b\":7}"
#define MODEL      "\"model\":{\"type\":\"WordPiece\"," VOCAB "}"
#define BERT_POST                                                                                  \
    "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",2],\"cls\":[\"[CLS]\",1]}"
#define ADDED(content) "\"added_tokens\":[" content "]"
#define CLS_ADDED      ADDED("{\"id\":1,\"content\":\"[CLS]\",\"special\":true}")

static qkv_status read_json(const char *json, qkv_tokenizer **out, qkv_error *error) {
    const qkvi_text_files files = { .tokenizer = { "tokenizer.json", json, strlen(json) } };
    return qkvi_tokenizer_read_json(&files, out, error);
}

static void assert_json_refused(const char *json, qkv_status status, const char *words) {
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error = { 0 };
    const qkv_status got = read_json(json, &tokenizer, &error);
    if (got != status) fail_msg("%s: \"%s\"", qkv_status_name(got), error.message);
    assert_null(tokenizer);
    if (!strstr(error.message, words)) fail_msg("\"%s\" lacks \"%s\"", error.message, words);
}

static void test_json(void **state) {
    (void)state;
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error;
    const char *json =
        "{" NORMALIZER "," PRE "," MODEL "," BERT_POST
        "," ADDED("{\"id\":1,\"content\":\"[CLS]\"},{\"id\":5,\"content\":\"<x>\"}") "}";
    if (read_json(json, &tokenizer, &error)) fail_msg("%s", error.message);
    size_t bytes;
    assert_int_equal(qkv_tokenizer_size(tokenizer), 8);
    assert_null(qkv_tokenizer_token(tokenizer, 4, &bytes)); /* a hole */
    assert_non_null(qkv_tokenizer_token(tokenizer, 5, &bytes));
    assert_int_equal(qkv_tokenizer_id(tokenizer, "<x>", 3), 5);
    assert_encoding(tokenizer, "AB<x>[CLS]c", 5, (const int32_t[]){ 3, 7, 5, 1, 0 });
    qkv_tokenizer_free(tokenizer);
}

static void test_json_template(void **state) {
    (void)state;
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error;
    const char *json =
        "{" NORMALIZER "," PRE "," MODEL ",\"post_processor\":{\"type\":\"TemplateProcessing\","
        "\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"e\","
        "\"type_id\":0}}],"
        "\"pair\":[{\"Sequence\":{\"id\":\"B\",\"type_id\":5}},{\"Sequence\":{\"id\":\"A\",\"type_"
        "id\":1}}],"
        "\"special_tokens\":{\"e\":{\"id\":\"e\",\"ids\":[2,1],\"tokens\":[\"[SEP]\",\"[CLS]\"]}}}"
        "}";
    if (read_json(json, &tokenizer, &error)) fail_msg("%s", error.message);
    qkv_encoding *encoding = encode(tokenizer, "a", 1);
    assert_int_equal(encoding->n, 3);
    assert_int_equal(encoding->ids[1], 2);
    assert_int_equal(encoding->ids[2], 1);
    qkv_encoding_free(encoding);
    assert_int_equal(qkv_tokenizer_encode(tokenizer, "a", 1, "ab", 2, &encoding, &error), QKV_OK);
    assert_int_equal(encoding->n, 3);
    assert_int_equal(encoding->types[0], 5);
    assert_int_equal(encoding->types[2], 1);
    assert_int_equal(encoding->ids[1], 7);
    qkv_encoding_free(encoding);
    qkv_tokenizer_free(tokenizer);
}

static void test_json_refused(void **state) {
    (void)state;
    assert_json_refused("{}", QKV_ERR_UNSUPPORTED, "model \"null\"");
    assert_json_refused("{" MODEL "}", QKV_ERR_UNSUPPORTED, "normalizer \"null\"");
    assert_json_refused("{" MODEL ",\"normalizer\":{\"type\":\"Sequence\"}}", QKV_ERR_UNSUPPORTED,
                        "\"Sequence\"");
    assert_json_refused("{" MODEL "," NORMALIZER ",\"pre_tokenizer\":{\"type\":\"Wh\\u0007\"}}",
                        QKV_ERR_UNSUPPORTED, "Wh\\x07");
    assert_json_refused("{" NORMALIZER "," PRE ",\"model\":{\"type\":\"WordLevel\"}}",
                        QKV_ERR_UNSUPPORTED, "\"WordLevel\"");
    assert_json_refused("{" NORMALIZER "," PRE "," MODEL
                        ",\"post_processor\":{\"type\":\"ByteLevel\"}}",
                        QKV_ERR_UNSUPPORTED, "ByteLevel");
    assert_json_refused("{" NORMALIZER "," PRE "," MODEL
                        ",\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",9],"
                        "\"cls\":[\"[CLS]\",1]}}",
                        QKV_ERR_FORMAT, "does not have id 9");
    assert_json_refused("{" NORMALIZER "," PRE
                        ",\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}",
                        QKV_ERR_FORMAT, "[UNK]");
    assert_json_refused("{" NORMALIZER "," PRE
                        ",\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0,\"b\":0}}}",
                        QKV_ERR_FORMAT, "two tokens have id 0");
    assert_json_refused("{" NORMALIZER "," PRE
                        ",\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":4194304}}}",
                        QKV_ERR_LIMIT, "4194304");
    assert_json_refused("{" NORMALIZER "," PRE
                        ",\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":-1}}}",
                        QKV_ERR_FORMAT, "-1");
    assert_json_refused("{" NORMALIZER "," PRE
                        ",\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":1.5}}}",
                        QKV_ERR_FORMAT, "no integer");
    assert_json_refused("{" NORMALIZER "," PRE "," MODEL
                        "," ADDED("{\"id\":2,\"content\":\"[CLS]\"}") "}",
                        QKV_ERR_FORMAT, "disagrees");
    assert_json_refused("{" NORMALIZER "," PRE "," MODEL
                        "," ADDED("{\"id\":3,\"content\":\"new\"}") "}",
                        QKV_ERR_FORMAT, "disagrees: the next id is 5");
    assert_json_refused("{" NORMALIZER "," PRE "," MODEL
                        "," ADDED("{\"id\":9,\"content\":\"new\"}") "}",
                        QKV_ERR_FORMAT, "disagrees: the next id is 5");
    assert_json_refused(
        "{" NORMALIZER "," PRE "," MODEL
        ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[],\"pair\":[]}}",
        QKV_ERR_FORMAT, "must hold A once");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vocab_lines),  cmocka_unit_test(test_config),
        cmocka_unit_test(test_ranges),       cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_json),         cmocka_unit_test(test_json_template),
        cmocka_unit_test(test_json_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
