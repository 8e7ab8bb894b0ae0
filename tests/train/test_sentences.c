/*
 * Sentences judged by a grammar: texts by hand; texts of the embedded model's grammar, and the same
 * with one changed word, against the parse of a pair by the grammar.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/rng.h"
#include "files/file.h"
#include "limits/temporary.h"
#include "qkv/train.h"
#include "train/grammar/grammar.h"

static const char words[] = "person it : it it its was is has does\n"
                            "person he : he him his was is has does\n"
                            "person she : she her her was is has does\n"
                            "person they : they them their were are have do\n"
                            "function : . , ? the a an when until did not saw see\n"
                            "noun door = thing opens : door box/boxes\n"
                            "word name = actor bare she : Anna\n"
                            "word name = actor bare he : Tom\n"
                            "verb event = by=opens : open close/closes/closed/closing\n"
                            "family watching\n"
                            "  V = event\n"
                            "  Y = V.by\n"
                            "  X = actor\n"
                            "  pair <X> saw the Y . | X.subj closed Y.obj .\n"
                            "  say did <X> see the Y ?\n"
                            "  say <X> X.was opening the Y when Y.subj* V.past .\n"
                            "  held say <X> X.was opening the Y until Y.subj* V.past .\n";

static char grammar_path[TEMPORARY_PATH], text_path[TEMPORARY_PATH];
static uint64_t seed = 20261122;

static void put(const char *path, const char *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* ---- By hand --------------------------------------------------------------------------------- */

/* What is said of each sentence, a digit each, and the sentences. */
typedef struct heard {
    char digits[64], all[1024];
    size_t n;
} heard;

static void hear(void *user, const char *sentence, size_t n_bytes, int said) {
    heard *h = user;
    h->digits[h->n++] = (char)('0' + said);
    snprintf(h->all + strlen(h->all), sizeof h->all - strlen(h->all), "[%.*s]", (int)n_bytes,
             sentence);
}

static void texts_by_hand(void **state) {
    (void)state;
    static const struct {
        const char *text, *digits;
        int64_t n_unfinished;
    } cases[] = {
        { "Anna was opening the door when it opened.", "2", 0 },
        { "anna was opening the DOOR when it opened .", "2", 0 },
        { "Anna was opening the door when they opened.", "0", 0 },
        { "Anna was opening the door until it opened.", "1", 0 },
        { "Tom saw the box. He closed it.", "22", 0 },
        { "Tom saw the box.\tHe closed it.", "22", 0 },
        { "Tom saw the box. She closed it.", "20", 0 },
        { "Tom saw the box.", "2", 0 },
        { "He closed it.", "0", 0 }, /* who? */
        { "Did Tom see the box? Tom saw the box. He closed it. He closed it. Did", "2220", 1 },
        { "Tom saw the box. Tom saw the box. He closed it.", "222", 0 },
        { "Tom saw [MASK] box.", "0", 0 },
        { "Tom saw the zebra.", "0", 0 },
        { "Tom saw the box", "", 1 },
        { "Tom saw the box.  \n\n  Did Anna see the door?", "22", 0 },
        { "...", "000", 0 },
        { "Tom. saw the box.", "00", 0 },
        { "\xc3\xa9t\xc3\xa9.", "0", 0 },
    };
    put(grammar_path, words, strlen(words));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heard h = { 0 };
        qkv_sentence_score score = qkv_sentence_score_init();
        qkv_error error = { 0 };
        put(text_path, cases[i].text, strlen(cases[i].text));
        if (qkv_eval_sentences(grammar_path, text_path, hear, &h, &score, &error) != QKV_OK)
            fail_msg("%s: %s", cases[i].text, error.message);
        if (strcmp(h.digits, cases[i].digits) != 0)
            fail_msg("%s: %s of %s", cases[i].text, h.digits, h.all);
        int64_t n_said = 0, n_held = 0;
        for (const char *d = cases[i].digits; *d; d++) n_said += *d > '0', n_held += *d == '1';
        assert_int_equal(score.n_sentences, (int64_t)strlen(cases[i].digits));
        assert_int_equal(score.n_said, n_said);
        assert_int_equal(score.n_held_out, n_held);
        assert_int_equal(score.n_unfinished, cases[i].n_unfinished);
    }
}

static void sentences_are_cut(void **state) {
    (void)state;
    heard h = { 0 };
    qkv_sentence_score score = qkv_sentence_score_init();
    static const char text[] = "  Tom saw the box. He closed it.\r\nDid Anna see the door?  ";
    put(text_path, text, strlen(text));
    assert_int_equal(qkv_eval_sentences(grammar_path, text_path, hear, &h, &score, NULL), QKV_OK);
    assert_string_equal(h.all, "[Tom saw the box.][He closed it.][Did Anna see the door?]");
}

/* Tens of thousands of cuts in a line, and a line of a megabyte. */
static void long_lines(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    static char text[N];
    qkv_sentence_score score = qkv_sentence_score_init();
    memset(text, '.', 50000);
    put(text_path, text, 50000);
    assert_int_equal(qkv_eval_sentences(grammar_path, text_path, NULL, NULL, &score, NULL), QKV_OK);
    assert_int_equal(score.n_sentences, 50000);
    assert_int_equal(score.n_said, 0);
    memset(text, 'x', N);
    put(text_path, text, N);
    assert_int_equal(qkv_eval_sentences(grammar_path, text_path, NULL, NULL, &score, NULL), QKV_OK);
    assert_int_equal(score.n_sentences, 0);
    assert_int_equal(score.n_unfinished, 1);
}

static void mistakes_are_named(void **state) {
    (void)state;
    qkv_sentence_score score = qkv_sentence_score_init();
    qkv_error error;
    put(text_path, "\xff\n", 2);
    assert_int_equal(qkv_eval_sentences(grammar_path, text_path, NULL, NULL, &score, &error),
                     QKV_ERR_FORMAT);
    assert_non_null(strstr(error.message, "1: not valid UTF-8"));
    assert_int_equal(qkv_eval_sentences(grammar_path, "/nowhere/a", NULL, NULL, &score, &error),
                     QKV_ERR_IO);
    assert_int_equal(qkv_eval_sentences(text_path, text_path, NULL, NULL, &score, &error),
                     QKV_ERR_FORMAT);
    assert_int_equal(qkv_eval_sentences(NULL, text_path, NULL, NULL, &score, &error),
                     QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "grammar is NULL");
    assert_int_equal(qkv_eval_sentences(grammar_path, NULL, NULL, NULL, &score, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_eval_sentences(grammar_path, text_path, NULL, NULL, NULL, &error),
                     QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "score is NULL");
}

/* ---- What the grammar of the embedded model says --------------------------------------------- */

static qkvi_grammar *open_default(const char *path) {
    char *bytes;
    size_t n;
    qkvi_grammar *g = NULL;
    qkv_error error;
    if (qkvi_file_load(path, QKVI_GRAMMAR_BYTES, &bytes, &n, &error) != QKV_OK ||
        qkvi_grammar_parse("default", bytes, n, &g, &error) != QKV_OK)
        fail_msg("%s", error.message);
    free(bytes);
    return g;
}

static void note_digit(void *user, const char *sentence, size_t n_bytes, int said) {
    (void)sentence, (void)n_bytes;
    char *digits = user;
    digits[strlen(digits)] = (char)('0' + said);
}

/* A line for each pair that belongs together, whole or only its begin; what must be said of all. */
static void all_that_is_said(void **state) {
    (void)state;
    enum { N = 400 };
    static char digits[4 * N];
    const char *path = QKV_TEST_ROOT "/models/default/grammar.txt";
    qkvi_grammar *const g = open_default(path);
    const qkvi_split splits[] = { QKVI_SPLIT_TRAIN, QKVI_SPLIT_HELD_OUT };
    for (int s = 0; s < 2; s++) {
        FILE *file = fopen(text_path, "wb");
        qkv_sentence_score score = qkv_sentence_score_init();
        size_t n_sentences = 0;
        assert_non_null(file);
        for (int64_t i = 0; i < N; i++) {
            qkvi_pair pair;
            qkvi_grammar_pair(g, splits[s], i, seed, &pair);
            const bool both = pair.b_bytes > 0 && pair.is_next;
            if (s == 1 && pair.b_bytes > 0) continue; /* its halves may be of training */
            fprintf(file, "%.*s %.*s%c", (int)pair.a_bytes, pair.a, both ? (int)pair.b_bytes : 0,
                    both ? pair.b : "", i % 3 ? '\n' : ' ');
            n_sentences += 1 + both;
        }
        fclose(file);
        memset(digits, 0, sizeof digits);
        assert_int_equal(qkv_eval_sentences(path, text_path, note_digit, digits, &score, NULL),
                         QKV_OK);
        assert_int_equal(score.n_sentences, n_sentences);
        const size_t n_right = strspn(digits, s ? "1" : "2");
        if (n_right < n_sentences)
            fail_msg("split %d: sentence %zu is %c", s, n_right, digits[n_right]);
    }
    qkvi_grammar_free(g);
}

/* One word is replaced by any other: right exactly if the grammar admits it there. */
static void changed_words(void **state) {
    (void)state;
    enum { N = 600 };
    const char *path = QKV_TEST_ROOT "/models/default/grammar.txt";
    qkvi_grammar *const g = open_default(path);
    qkvi_rng rng = qkvi_rng_make(seed, 5, 0);
    static char digits[2 * N], wanted[2 * N];
    FILE *file = fopen(text_path, "wb");
    assert_non_null(file);
    memset(wanted, 0, sizeof wanted);
    memset(digits, 0, sizeof digits);
    for (int64_t i = 0; i < N; i++) {
        qkvi_pair pair;
        qkvi_sentence s;
        qkvi_grammar_pair(g, QKVI_SPLIT_TRAIN, i, seed + 1, &pair);
        assert_true(qkvi_grammar_split(g, pair.a, pair.a_bytes, NULL, 0, &s));
        const int32_t at = (int32_t)qkvi_rng_below(&rng, (uint32_t)s.n - 1); /* not its end */
        const int32_t other = g->said[qkvi_rng_below(&rng, (uint32_t)g->n_said)];
        if (strchr(".?!", g->words[other].key[0])) continue;
        s.words[at] = other;
        wanted[strlen(wanted)] = (char)('0' + qkvi_grammar_said(g, &s, 2));
        for (int32_t w = 0; w < s.n; w++)
            fprintf(file, "%s%c", g->words[s.words[w]].key, w + 1 < s.n ? ' ' : '\n');
    }
    fclose(file);
    qkv_sentence_score score = qkv_sentence_score_init();
    assert_int_equal(qkv_eval_sentences(path, text_path, note_digit, digits, &score, NULL), QKV_OK);
    assert_string_equal(digits, wanted);
    assert_true(strchr(wanted, '0') && score.n_said > 0);
    qkvi_grammar_free(g);
}

static int remove_files(void **state) {
    (void)state;
    unlink(grammar_path);
    unlink(text_path);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_by_hand),    cmocka_unit_test(sentences_are_cut),
        cmocka_unit_test(long_lines),       cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(all_that_is_said), cmocka_unit_test(changed_words),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    print_message("seed %llu\n", (unsigned long long)seed);
    if (close(mkstemp(temporary("qkv-grammar", grammar_path))) != 0 ||
        close(mkstemp(temporary("qkv-sentences", text_path))) != 0)
        return perror("mkstemp"), 1;
    return cmocka_run_group_tests_name("sentences", tests, NULL, remove_files);
}
