/**
 * Vocabularies made from text: what is in them, that any word can be spelled, determinism, and the
 * files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "qkv/tokenizer.h"
#include "text/vocab.h"

struct line {
    const char *text;
    int64_t count;
};

static const struct line lines[] = {
    { "I was watching the door when it opened.", 50 },
    { "The doors were opening; the opener opened them again and again!", 20 },
    { "She walked, talked, walked and talked.", 30 },
    { "Caf\xC3\xA9 M\xC3\xBCller \xE4\xB8\xAD\xE6\x96\x87 \xCE\xB1\xCE\xB2", 5 },
    { "unusual unwanted undone redone rewanted", 1 },
};
enum { N_LINES = sizeof lines / sizeof lines[0] };

/* The vocabulary of the lines, each once, starting with line `first`. */
static char *make(int32_t size, int first, size_t *n_bytes) {
    qkvi_word_counts *counts = qkvi_word_counts_create(&qkvi_bert_uncased);
    qkv_error error;
    char *vocab = NULL;
    assert_non_null(counts);
    for (int i = 0; i < N_LINES; i++) {
        const struct line line = lines[(first + i) % N_LINES];
        assert_int_equal(
            qkvi_word_counts_add(counts, line.text, strlen(line.text), line.count, &error), QKV_OK);
    }
    if (qkvi_wordpiece_train(counts, size, &vocab, n_bytes, &error)) fail_msg("%s", error.message);
    qkvi_word_counts_free(counts);
    return vocab;
}

static qkv_tokenizer *open_vocab(const char *vocab, size_t n_bytes) {
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error;
    if (qkv_tokenizer_open_memory(vocab, n_bytes, NULL, 0, &tokenizer, &error))
        fail_msg("%s", error.message);
    return tokenizer;
}

static int32_t id_of(const qkv_tokenizer *tokenizer, const char *token) {
    return qkv_tokenizer_id(tokenizer, token, strlen(token));
}

/* The number of tokens of a text, none of them [UNK]. */
static int64_t spell(const qkv_tokenizer *tokenizer, const char *text) {
    qkv_encoding *encoding = NULL;
    qkv_error error;
    assert_int_equal(
        qkv_tokenizer_encode(tokenizer, text, strlen(text), NULL, 0, &encoding, &error), QKV_OK);
    const int64_t n = encoding->n - 2;
    for (int64_t i = 0; i < encoding->n; i++) assert_int_not_equal(encoding->ids[i], 1);
    qkv_encoding_free(encoding);
    return n;
}

static void test_contents(void **state) {
    (void)state;
    static const char *const special[] = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" };
    size_t n_bytes;
    char *vocab = make(300, 0, &n_bytes);
    qkv_tokenizer *tokenizer = open_vocab(vocab, n_bytes);
    assert_true(qkv_tokenizer_size(tokenizer) <= 300);
    for (int i = 0; i < 5; i++) assert_int_equal(id_of(tokenizer, special[i]), i);
    assert_int_equal(spell(tokenizer, "I was watching the door when it opened."), 9);
    assert_int_equal(spell(tokenizer, "cafe muller \xE4\xB8\xAD\xE6\x96\x87"), 4);
    assert_true(spell(tokenizer, "Zyzzyva's quixotic_JAZZ-hymn 0123456789 #$%&*@^~`|\\") > 20);
    assert_true(id_of(tokenizer, "##\xCE\xB2") >= 0);
    assert_int_equal(id_of(tokenizer, "##\xE4\xB8\xAD"), -1); /* ideographs stand alone */
    assert_int_equal(id_of(tokenizer, "##."), -1);
    qkv_tokenizer_free(tokenizer);
    free(vocab);
}

/* With no room for all words the frequent ones are whole and the others are made of pieces. */
static void test_small(void **state) {
    (void)state;
    size_t n_bytes;
    char *vocab = make(140, 0, &n_bytes);
    qkv_tokenizer *tokenizer = open_vocab(vocab, n_bytes);
    assert_int_equal(qkv_tokenizer_size(tokenizer), 140);
    assert_int_equal(spell(tokenizer, "the opened door"), 3);
    assert_true(spell(tokenizer, "unwanted rewanted") < 16);
    qkv_tokenizer_free(tokenizer);
    free(vocab);
}

static void test_whole_words(void **state) {
    (void)state;
    qkvi_word_counts *counts = qkvi_word_counts_create(&qkvi_bert_uncased);
    qkv_error error;
    size_t n_bytes;
    char *vocab = NULL, word[8];
    for (int i = 0; i < 80; i++) {
        snprintf(word, sizeof word, "w%cord%c", 'a' + i / 26, 'a' + i % 26);
        assert_int_equal(
            qkvi_word_counts_add(counts, word, strlen(word), QKVI_WHOLE_WORD_COUNT, &error), 0);
    }
    assert_int_equal(qkvi_wordpiece_train(counts, 109 + 80, &vocab, &n_bytes, &error), QKV_OK);
    qkv_tokenizer *tokenizer = open_vocab(vocab, n_bytes);
    for (int i = 0; i < 80; i++) {
        snprintf(word, sizeof word, "w%cord%c", 'a' + i / 26, 'a' + i % 26);
        assert_true(id_of(tokenizer, word) >= 0);
    }
    qkv_tokenizer_free(tokenizer);
    free(vocab);
    qkvi_word_counts_free(counts);
}

static void test_deterministic(void **state) {
    (void)state;
    for (int32_t size = 109; size < 400; size += 37) {
        size_t n_bytes, other_bytes;
        char *vocab = make(size, 0, &n_bytes);
        for (int first = 1; first < N_LINES; first++) { /* the order of the text does not matter */
            char *other = make(size, first, &other_bytes);
            assert_int_equal(n_bytes, other_bytes);
            assert_memory_equal(vocab, other, n_bytes);
            free(other);
        }
        free(vocab);
    }
}

static void test_refused(void **state) {
    (void)state;
    qkvi_word_counts *counts = qkvi_word_counts_create(&qkvi_bert_uncased);
    qkv_error error;
    char *vocab = NULL;
    size_t n_bytes = 0;
    assert_int_equal(qkvi_wordpiece_train(counts, 108, &vocab, &n_bytes, &error), QKV_ERR_ARGUMENT);
    assert_null(vocab);
    assert_non_null(strstr(error.message, "108"));
    assert_int_equal(qkvi_word_counts_add(counts, "ok \xFF", 4, 1, &error), QKV_ERR_FORMAT);
    assert_non_null(strstr(error.message, "byte 3"));
    assert_int_equal(qkvi_wordpiece_train(counts, 500, &vocab, &n_bytes, &error), QKV_OK);
    free(vocab); /* of no text at all: ASCII */
    qkvi_word_counts_free(counts);
}

static void assert_same_ids(const qkv_tokenizer *a, const qkv_tokenizer *b, const char *text) {
    qkv_encoding *x = NULL, *y = NULL;
    assert_int_equal(qkv_tokenizer_encode(a, text, strlen(text), "again", 5, &x, NULL), QKV_OK);
    assert_int_equal(qkv_tokenizer_encode(b, text, strlen(text), "again", 5, &y, NULL), QKV_OK);
    assert_int_equal(x->n, y->n);
    assert_memory_equal(x->ids, y->ids, (size_t)x->n * sizeof *x->ids);
    assert_memory_equal(x->types, y->types, (size_t)x->n);
    qkv_encoding_free(x);
    qkv_encoding_free(y);
}

static void test_files(void **state) {
    (void)state;
    const char *folder = QKV_TEST_BUILD "/vocab_saved";
    qkv_error error;
    size_t n_bytes;
    char *vocab = make(200, 0, &n_bytes);
    mkdir(folder, 0777);
    qkvi_files files = { .folder = folder };
    if (qkvi_tokenizer_save(&files, vocab, n_bytes, &qkvi_bert_uncased, 48, &error) ||
        qkvi_files_commit(&files, &error))
        fail_msg("%s", error.message);
    qkv_tokenizer *tokenizer = open_vocab(vocab, n_bytes), *json = NULL, *text = NULL;
    assert_int_equal(qkv_tokenizer_open(folder, QKV_SOURCE, &json, &error), QKV_OK);
    assert_int_equal(remove(QKV_TEST_BUILD "/vocab_saved/tokenizer.json"), 0);
    assert_int_equal(qkv_tokenizer_open(folder, QKV_SOURCE, &text, &error), QKV_OK);
    for (int i = 0; i < N_LINES; i++) {
        assert_same_ids(tokenizer, json, lines[i].text);
        assert_same_ids(tokenizer, text, lines[i].text);
    }
    assert_same_ids(tokenizer, json, "a [MASK] [SEP] \xE4\xB8\x80 b");
    qkv_tokenizer_free(tokenizer);
    qkv_tokenizer_free(json);
    qkv_tokenizer_free(text);
    free(vocab);
    assert_int_equal(
        qkv_tokenizer_open(QKV_TEST_BUILD "/no such folder", QKV_SOURCE, &json, &error),
        QKV_ERR_IO);
    assert_null(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contents),    cmocka_unit_test(test_small),
        cmocka_unit_test(test_whole_words), cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
