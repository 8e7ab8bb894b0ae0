/*
 * Examples for language models and for translations: inputs, targets, where a sequence is cut; an
 * example does not depend on its batch or on threads; corpora that are refused. Masked words are in
 * test_train_parts.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "limits/temporary.h"
#include "text/bpe_train.h"
#include "train/trainer.h"

#define GRAMMAR QKV_TEST_ROOT "/models/default/grammar.txt"
#define TEXT                                                                                       \
    "the cat sat\tdas tac tas\n"                                                                   \
    "\n"                                                                                           \
    "a dog\ta god, a god, a god, a god, a god\n"                                                   \
    "one two three four five six seven eight nine\teins\n"

enum { MAX_LEN = 12, CAPACITY = 300 };

static char path[TEMPORARY_PATH];

static void write_text(const char *text) {
    FILE *const out = fopen(path, "wb");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static qkvi_corpus *open_text(const char *text) {
    qkvi_corpus *corpus;
    qkv_error error;
    write_text(text);
    if (qkvi_corpus_open_text(path, &corpus, &error)) fail_msg("%s", error.message);
    return corpus;
}

static qkv_tokenizer *make_tokenizer(const qkvi_bpe_style *style) {
    qkvi_counter words = { 0 };
    qkvi_bpe_vocab made;
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error;
    if (qkvi_bpe_count(&words, TEXT, strlen(TEXT), 2, &error) ||
        qkvi_bpe_train(&words, style, 300, &made, &error) ||
        qkvi_bpe_vocab_open(&made, &tokenizer, &error))
        fail_msg("%s", error.message);
    qkvi_counter_free(&words);
    qkvi_bpe_vocab_free(&made);
    return tokenizer;
}

typedef struct fixture {
    qkv_ctx *ctx;
    qkvi_corpus *corpus;
    qkv_tokenizer *tokenizer;
    qkvi_examples examples;
    qkvi_feed feed;
} fixture;

static void open_fixture(fixture *f, qkvi_corpus *corpus, const qkvi_objective *objective,
                         const qkvi_bpe_style *style, int n_threads) {
    qkv_ctx_options options = qkv_ctx_options_init();
    qkv_error error;
    options.n_threads = n_threads;
    assert_int_equal(qkv_ctx_create(&options, &f->ctx, &error), QKV_OK);
    f->corpus = corpus;
    f->tokenizer = make_tokenizer(style);
    f->examples = (qkvi_examples){ .make = objective->example,
                                   .n_words = INT32_MAX,
                                   .corpus = corpus,
                                   .tokenizer = f->tokenizer,
                                   .target_tokenizer = f->tokenizer,
                                   .seed = 5,
                                   .max_len = MAX_LEN,
                                   .start_id = 2 };
    assert_int_equal(qkvi_examples_make(&f->examples, CAPACITY, &error), QKV_OK);
    assert_int_equal(qkvi_feed_make(&f->feed, CAPACITY, MAX_LEN, &error), QKV_OK);
}

static void close_fixture(fixture *f) {
    qkvi_feed_free(&f->feed);
    qkvi_examples_free(&f->examples);
    qkv_tokenizer_free(f->tokenizer);
    qkvi_corpus_free(f->corpus);
    qkv_ctx_free(f->ctx);
}

static void fill(fixture *f, qkvi_split split, int64_t first, int64_t n) {
    qkv_error error;
    if (qkvi_examples_fill(f->ctx, &f->examples, split, first, n, &f->feed, &error))
        fail_msg("%s", error.message);
}

/* The text of ids. */
static void expect_text(const fixture *f, const int32_t *ids, int64_t n, const char *text) {
    qkv_text *decoded;
    qkv_error error;
    if (qkv_tokenizer_decode(f->tokenizer, ids, n, 0, &decoded, &error))
        fail_msg("%s", error.message);
    assert_string_equal(decoded->bytes, text);
    qkv_text_free(decoded);
}

/* ---- Language models ------------------------------------------------------------------------- */

/*
 * Line 0 fits: it ends with the end as target. Line 2 does not: its last target is its next token.
 */
static void test_lm_of_text(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, open_text(TEXT), &qkvi_objective_lm, &qkvi_bpe_gpt2, 1);
    const int32_t end = 0;
    fill(&f, QKVI_SPLIT_HELD_OUT, 0, 3);
    assert_int_equal(f.feed.view.n_sequences, 3);
    assert_null(f.feed.view.decoder_lengths);
    assert_int_equal(f.feed.view.n_targets, f.feed.n_tokens);
    int64_t token = 0;
    for (int s = 0; s < 3; s++) {
        const int64_t n = f.feed.lengths[s];
        assert_int_equal(f.feed.ids[token], end);
        for (int64_t i = 0; i < n; i++) {
            assert_int_equal(f.feed.target_tokens[token + i], token + i);
            if (i + 1 < n)
                assert_int_equal(f.feed.target_ids[token + i], f.feed.ids[token + i + 1]);
        }
        assert_int_equal(f.feed.target_ids[token + n - 1] == end, n < MAX_LEN);
        if (s == 0) expect_text(&f, f.feed.ids + 1, n - 1, "the cat sat\tdas tac tas");
        token += n;
    }
    assert_int_equal(f.feed.lengths[2], MAX_LEN);
    close_fixture(&f);
}

/* A grammar goes on until a sequence is full. */
static void test_lm_of_grammar(void **state) {
    (void)state;
    fixture f;
    qkvi_corpus *corpus;
    qkv_error error;
    if (qkvi_corpus_open_grammar(GRAMMAR, &corpus, &error)) fail_msg("%s", error.message);
    open_fixture(&f, corpus, &qkvi_objective_lm, &qkvi_bpe_gpt2, 1);
    fill(&f, QKVI_SPLIT_TRAIN, 0, CAPACITY);
    assert_int_equal(f.feed.n_tokens, CAPACITY * MAX_LEN);
    fill(&f, QKVI_SPLIT_HELD_OUT, 0, CAPACITY);
    assert_int_equal(f.feed.n_tokens, CAPACITY * MAX_LEN);
    close_fixture(&f);
}

/* What a grammar says in a document are sentences, the second of a pair only where it belongs. */
static void test_documents(void **state) {
    (void)state;
    qkvi_corpus *corpus;
    qkv_error error;
    if (qkvi_corpus_open_grammar(GRAMMAR, &corpus, &error)) fail_msg("%s", error.message);
    for (int64_t i = 0; i < 200; i++) {
        qkvi_growing text = { 0 };
        qkvi_pair pair;
        assert_int_equal(qkvi_corpus_document(corpus, QKVI_SPLIT_TRAIN, i, 9, 1, &text, &error),
                         QKV_OK);
        qkvi_corpus_pair(corpus, QKVI_SPLIT_TRAIN, i << 14, 9, &pair);
        const int both = pair.b_bytes > 0 && pair.is_next;
        const size_t n = (size_t)pair.a_bytes + (both ? 1 + (size_t)pair.b_bytes : 0);
        assert_int_equal(text.n, n);
        assert_memory_equal(text.bytes, pair.a, (size_t)pair.a_bytes);
        if (both) assert_memory_equal(text.bytes + pair.a_bytes + 1, pair.b, (size_t)pair.b_bytes);
        free(text.bytes);
    }
    qkvi_corpus_free(corpus);
}

/* ---- Translations ---------------------------------------------------------------------------- */

static void test_seq2seq(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, open_text(TEXT), &qkvi_objective_seq2seq, &qkvi_bpe_bart, 1);
    fill(&f, QKVI_SPLIT_HELD_OUT, 0, 3);
    assert_int_equal(f.feed.view.n_sequences, 3);
    assert_int_equal(f.feed.view.n_targets, f.feed.n_decoder_tokens);
    assert_ptr_equal(f.feed.view.decoder_ids, f.feed.decoder_ids);
    int64_t token = 0;
    for (int s = 0; s < 3; s++) {
        const int64_t n = f.feed.decoder_lengths[s];
        assert_int_equal(f.feed.decoder_ids[token], 2); /* it starts from </s> */
        assert_int_equal(f.feed.target_ids[token], 0);  /* and writes <s> … */
        assert_int_equal(f.feed.target_ids[token + n - 1], 2);
        for (int64_t i = 0; i < n; i++) {
            assert_int_equal(f.feed.target_tokens[token + i], token + i);
            if (i > 0)
                assert_int_equal(f.feed.decoder_ids[token + i], f.feed.target_ids[token + i - 1]);
        }
        token += n;
    }
    expect_text(&f, f.feed.ids, f.feed.lengths[0], "<s>the cat sat</s>");
    expect_text(&f, f.feed.target_ids, f.feed.decoder_lengths[0], "<s>das tac tas</s>");
    assert_int_equal(f.feed.decoder_lengths[1], MAX_LEN);
    assert_int_equal(f.feed.lengths[2], MAX_LEN);
    close_fixture(&f);
}

static void expect_no_translations(const char *text, const char *says) {
    qkv_error error;
    qkvi_corpus *const corpus = open_text(text);
    assert_int_equal(qkvi_corpus_check_translations(corpus, &error), QKV_ERR_FORMAT);
    assert_string_equal(error.message, says);
    qkvi_corpus_free(corpus);
}

static void test_no_translations(void **state) {
    (void)state;
    qkvi_corpus *corpus;
    qkv_error error;
    expect_no_translations("a\tb\n\nab\n", "line 3 is not source TAB target");
    expect_no_translations("a\tb\nab\t\n", "line 2 is not source TAB target");
    if (qkvi_corpus_open_grammar(GRAMMAR, &corpus, &error)) fail_msg("%s", error.message);
    assert_int_equal(qkvi_corpus_check_translations(corpus, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "source TAB target"));
    qkvi_corpus_free(corpus);
    corpus = open_text(TEXT);
    assert_int_equal(qkvi_corpus_check_translations(corpus, &error), QKV_OK);
    qkvi_corpus_free(corpus);
}

/* ---- Both ------------------------------------------------------------------------------------ */

/* An example does not depend on the batch around it, nor on threads. */
static void test_examples_are_functions(void **state) {
    (void)state;
    const qkvi_objective *const objectives[] = { &qkvi_objective_lm, &qkvi_objective_seq2seq };
    const qkvi_bpe_style *const styles[] = { &qkvi_bpe_gpt2, &qkvi_bpe_bart };
    for (int o = 0; o < 2; o++) {
        fixture all, some;
        open_fixture(&all, open_text(TEXT), objectives[o], styles[o], 3);
        open_fixture(&some, open_text(TEXT), objectives[o], styles[o], 1);
        fill(&all, QKVI_SPLIT_TRAIN, 0, 200);
        fill(&some, QKVI_SPLIT_TRAIN, 150, 50);
        const int64_t n = some.feed.n_tokens, n_targets = some.feed.view.n_targets;
        assert_memory_equal(all.feed.ids + all.feed.n_tokens - n, some.feed.ids,
                            (size_t)n * sizeof *some.feed.ids);
        assert_memory_equal(all.feed.target_ids + all.feed.view.n_targets - n_targets,
                            some.feed.target_ids, (size_t)n_targets * sizeof(int32_t));
        assert_memory_equal(
            all.feed.decoder_ids + all.feed.n_decoder_tokens - some.feed.n_decoder_tokens,
            some.feed.decoder_ids, (size_t)some.feed.n_decoder_tokens * sizeof(int32_t));
        close_fixture(&all);
        close_fixture(&some);
    }
}

static int make_path(void **state) {
    (void)state;
    const int file = mkstemp(temporary("qkv-objectives", path));
    return file < 0 || close(file) != 0;
}

static int remove_path(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lm_of_text),      cmocka_unit_test(test_lm_of_grammar),
        cmocka_unit_test(test_documents),       cmocka_unit_test(test_seq2seq),
        cmocka_unit_test(test_no_translations), cmocka_unit_test(test_examples_are_functions),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
