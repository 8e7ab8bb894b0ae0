/*
 * The embedded model's grammar and its corpus: sizes, determinism, what is held out, admissible
 * sets; and text corpora.
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

#include "files/file.h"
#include "limits/temporary.h"
#include "train/corpus.h"
#include "train/grammar/grammar.h"

#define GRAMMAR QKV_TEST_ROOT "/models/default/grammar.txt"

enum { SEED = 77, N_TRAIN = 150000, N_HELD = 20000 };

static qkvi_corpus *corpus;
static qkvi_grammar *grammar; /* the same, for questions that a corpus does not answer */
static qkvi_pair pair;

static int open_all(void **state) {
    (void)state;
    qkv_error error = { 0 };
    char *bytes;
    size_t n_bytes;
    if (qkvi_corpus_open_grammar(GRAMMAR, &corpus, &error) ||
        qkvi_file_load(GRAMMAR, QKVI_GRAMMAR_BYTES, &bytes, &n_bytes, &error) ||
        qkvi_grammar_parse("grammar.txt", bytes, n_bytes, &grammar, &error)) {
        print_error("%s\n", error.message);
        return 1;
    }
    free(bytes);
    return 0;
}

static int close_all(void **state) {
    (void)state;
    qkvi_corpus_free(corpus);
    qkvi_grammar_free(grammar);
    return 0;
}

static qkvi_sentence split(const qkvi_pair *p) {
    qkvi_sentence s;
    assert_true(
        qkvi_grammar_split(grammar, p->a, p->a_bytes, p->b_bytes ? p->b : NULL, p->b_bytes, &s));
    for (int32_t i = 0; i < s.n; ++i) assert_true(s.words[i] >= 0);
    return s;
}

/* ---- What the grammar is ---- */

static void test_sizes(void **state) {
    (void)state;
    /* closed by nature or by choice: short lists whose words differ in what they go with */
    static const char *const closed[] = { "subject", "preposition", "effect", "number", "giving",
                                          "wanting", "task",        "tool",   "other" };
    assert_true(grammar->n_families >= 40);
    assert_true(grammar->n_said >= 1200);
    for (int32_t c = 0; c < grammar->n_classes; ++c) {
        bool is_closed = false;
        for (size_t i = 0; i < sizeof closed / sizeof closed[0]; ++i)
            is_closed |= !strcmp(grammar->classes[c].name, closed[i]);
        if (!is_closed && grammar->classes[c].n_lexemes < 20)
            fail_msg("class '%s' has %d words", grammar->classes[c].name,
                     (int)grammar->classes[c].n_lexemes);
    }
    for (int32_t f = 0; f < grammar->n_families; ++f) assert_true(grammar->families[f].n_hold == 2);
}

/* ---- Pairs ---- */

static void test_pure_function(void **state) {
    (void)state;
    enum { N = 500 };
    static char first[N][QKVI_PAIR_BYTES];
    for (int split_ = 0; split_ < 2; ++split_) {
        for (int64_t i = 0; i < N; ++i) {
            qkvi_corpus_pair(corpus, (qkvi_split)split_, i, SEED, &pair);
            memcpy(first[i], pair.a, (size_t)(pair.a_bytes + pair.b_bytes));
            first[i][pair.a_bytes + pair.b_bytes] = '\0';
        }
        int n_same = 0;
        for (int64_t i = N - 1; i >= 0; --i) {
            qkvi_corpus_pair(corpus, (qkvi_split)split_, i, SEED, &pair);
            assert_memory_equal(first[i], pair.a, (size_t)(pair.a_bytes + pair.b_bytes));
            qkvi_corpus_pair(corpus, (qkvi_split)split_, i, SEED + 1, &pair);
            n_same += !memcmp(first[i], pair.a, (size_t)(pair.a_bytes + pair.b_bytes));
        }
        assert_true(n_same < N / 20);
    }
}

static void test_training_says_nothing_held_out(void **state) {
    (void)state;
    bool *const seen = calloc((size_t)grammar->n_words, sizeof *seen);
    int n_pairs = 0, n_next = 0;
    for (int64_t i = 0; i < N_TRAIN; ++i) {
        qkvi_corpus_pair(corpus, QKVI_SPLIT_TRAIN, i, SEED, &pair);
        const qkvi_sentence s = split(&pair);
        for (int32_t k = 0; k < s.n; ++k) seen[s.words[k]] = true;
        n_pairs += pair.b_bytes > 0;
        n_next += pair.b_bytes > 0 && pair.is_next;
        if (i % 10) continue;
        const qkvi_said said = qkvi_grammar_said(grammar, &s, 3);
        assert_int_equal(said, pair.is_next ? QKVI_TRAINED : QKVI_NEVER_SAID);
    }
    assert_in_range(n_pairs, N_TRAIN * 58 / 100, N_TRAIN * 62 / 100);
    assert_in_range(n_next, n_pairs * 48 / 100, n_pairs * 52 / 100);
    for (int32_t w = 0; w < grammar->n_words; ++w)
        if (grammar->words[w].is_said && !seen[w])
            fail_msg("'%s' never occurs in %d pairs", grammar->words[w].key, N_TRAIN);
    free(seen);
}

/* Texts compared as texts, so that a mistake in the rule of what is held out shows. */
static int compare_texts(const void *a, const void *b) { return strcmp(a, b); }

static void test_held_out_texts_are_new(void **state) {
    (void)state;
    enum { BYTES = 200 };
    char(*const held)[BYTES] = calloc(N_HELD, sizeof *held);
    int32_t n = 0;
    for (int64_t i = 0; i < N_HELD; ++i) {
        qkvi_corpus_pair(corpus, QKVI_SPLIT_HELD_OUT, i, SEED, &pair);
        if (!pair.is_next && pair.b_bytes) continue;
        const qkvi_sentence s = split(&pair);
        assert_int_equal(qkvi_grammar_said(grammar, &s, 3), QKVI_HELD_OUT);
        assert_true(pair.a_bytes + pair.b_bytes < BYTES);
        memcpy(held[n++], pair.a, (size_t)(pair.a_bytes + pair.b_bytes));
    }
    qsort(held, (size_t)n, sizeof *held, compare_texts);
    for (int64_t i = 0; i < N_TRAIN; ++i) {
        qkvi_corpus_pair(corpus, QKVI_SPLIT_TRAIN, i, SEED, &pair);
        char text[QKVI_PAIR_BYTES] = { 0 };
        memcpy(text, pair.a, (size_t)(pair.a_bytes + pair.b_bytes));
        if (bsearch(text, held, (size_t)n, sizeof *held, compare_texts))
            fail_msg("held out, yet in training: %s", text);
        text[pair.a_bytes] = '\0'; /* a held-out sentence is no half of a training pair either */
        if (pair.b_bytes && bsearch(text, held, (size_t)n, sizeof *held, compare_texts))
            fail_msg("held out, yet half of a training pair: %s", text);
    }
    free(held);
}

static void test_wrong_pairs(void **state) {
    (void)state;
    int n = 0;
    for (int64_t i = 0; n < 3000; ++i) {
        qkvi_corpus_pair(corpus, QKVI_SPLIT_TRAIN, i, SEED, &pair);
        if (pair.is_next) continue;
        const qkvi_sentence s = split(&pair);
        assert_true(pair.b_bytes > 0);
        assert_false(qkvi_grammar_is_pair(grammar, &s));
        assert_int_equal(pair.counts_for_mlm, 0);
        ++n;
    }
}

/* ---- Slots and probes ---- */

static bool has_word(const qkvi_slot *slot, const char *text, size_t bytes) {
    char key[64] = { 0 };
    assert_true(bytes < sizeof key);
    for (size_t i = 0; i < bytes; ++i)
        key[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
    for (int32_t i = 0; i < slot->n_words; ++i)
        if (!strcmp(slot->words[i], key)) return true;
    return false;
}

static void test_words_are_admissible_in_their_places(void **state) {
    (void)state;
    int n_single = 0, n_all = 0;
    for (int64_t i = 0; i < 3000; ++i) {
        qkvi_corpus_pair(corpus, QKVI_SPLIT_HELD_OUT, i, SEED, &pair);
        qkvi_slot *slots;
        int32_t n;
        assert_int_equal(qkvi_corpus_slots(corpus, &pair, &slots, &n, NULL), QKV_OK);
        assert_int_equal(n, pair.counts_for_mlm ? split(&pair).n : 0);
        for (int32_t k = 0; k < n; ++k) {
            const qkvi_span span = slots[k].span;
            const char *const text = (span.half ? pair.b : pair.a) + span.begin;
            assert_true(has_word(&slots[k], text, (size_t)(span.end - span.begin)));
            assert_non_null(slots[k].type);
            for (int32_t w = 1; w < slots[k].n_words; ++w)
                assert_true(strcmp(slots[k].words[w - 1], slots[k].words[w]) < 0);
            n_single += slots[k].n_words == 1;
            ++n_all;
        }
        qkvi_slots_free(slots);
    }
    assert_in_range(n_single, n_all / 3, n_all * 4 / 5);
}

/* The antecedent is a content word, and it alone decides the pronoun. */
static void test_probes(void **state) {
    (void)state;
    int n_pronouns[4] = { 0 };
    for (int64_t i = 0; i < 1000; ++i) {
        assert_true(qkvi_corpus_probe(corpus, i, SEED, &pair));
        assert_true(pair.has_probe && pair.b_bytes == 0 && pair.n_content >= 2);
        bool found = false;
        for (int32_t k = 0; k < pair.n_content; ++k)
            found |= pair.content[k].begin == pair.antecedent.begin;
        assert_true(found);
        static const char *const pronouns[] = { "it", "he", "she", "they" };
        const size_t bytes = (size_t)(pair.pronoun.end - pair.pronoun.begin);
        char word[8] = { 0 };
        assert_true(bytes < sizeof word);
        memcpy(word, pair.a + pair.pronoun.begin, bytes);
        word[0] |= 0x20;
        int which = 0;
        while (which < 4 && strcmp(word, pronouns[which])) ++which;
        assert_true(which < 4);
        ++n_pronouns[which];
    }
    for (int k = 0; k < 4; ++k) assert_true(n_pronouns[k] > 100);
}

/* ---- What is shown is held out ---- */

static qkvi_said said(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    qkvi_sentence s;
    if (!qkvi_grammar_split(grammar, a, (int64_t)a_bytes, b, (int64_t)b_bytes, &s))
        return QKVI_NEVER_SAID;
    return qkvi_grammar_said(grammar, &s, 3);
}

static void test_shown_sentences(void **state) {
    (void)state;
    static const char *const shown[] = {
        "I was watching the [MASK] when it opened.",
        "I was watching the door when [MASK] opened.",
        "I was watching the door when it opened.",
        "I was watching the gate when it opened.",
        "I was watching the doors when [MASK] opened.",
    };
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; ++i)
        assert_int_equal(said(shown[i], strlen(shown[i]), NULL, 0), QKVI_HELD_OUT);
    assert_int_equal(said("She was watching the yacht when it stopped.", 43, NULL, 0),
                     QKVI_TRAINED);
}

typedef struct quotation {
    const char *text;
    size_t bytes;
} quotation;

/*
 * All between two quotes of a line, alone and with what stands in quotes before it (qkv next "A"
 * "B"); returns how often that is something that the grammar holds out.
 */
static int check_quotations(const char *path) {
    char *text;
    size_t n;
    int n_held = 0;
    quotation last[2] = { { "", 0 }, { "", 0 } };
    qkv_error error;
    if (qkvi_file_load(path, 1 << 22, &text, &n, &error) != QKV_OK) return 0;
    for (const char *p = text; (p = strchr(p, '"')); ++p) {
        const char *const end = strpbrk(p + 1, "\"\n");
        if (!end || *end != '"') continue;
        quotation q = { p + 1, (size_t)(end - p - 1) };
        if (q.bytes && q.text[q.bytes - 1] == '\\') --q.bytes; /* \" in C */
        const qkvi_said alone = said(q.text, q.bytes, NULL, 0);
        const qkvi_said both =
            last[0].bytes ? said(last[0].text, last[0].bytes, q.text, q.bytes) : QKVI_NEVER_SAID;
        /* "She opened it." follows many sentences; it is new after this one. */
        if (both == QKVI_TRAINED || (alone == QKVI_TRAINED && both != QKVI_HELD_OUT))
            fail_msg("%s shows a training sentence: %.*s", path, (int)q.bytes, q.text);
        n_held += (alone == QKVI_HELD_OUT) + (both == QKVI_HELD_OUT);
        last[0] = last[1];
        last[1] = q;
    }
    free(text);
    return n_held;
}

static void test_documentation(void **state) {
    (void)state;
    static const char *const files[] = { "README.md",
                                         "models/default/README.md",
                                         "docs/grammar.md",
                                         "cli/look/cmd_look.c",
                                         "cli/model/cmd_fill.c",
                                         "cli/model/cmd_next.c",
                                         "cli/model/cmd_tokenize.c",
                                         "tests/cli/test_text.sh",
                                         "tests/cli/test_usage.sh" };
    int n = 0;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; ++i) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", QKV_TEST_ROOT, files[i]);
        n += check_quotations(path);
    }
    assert_true(n > 0);
}

/* ---- Text files ---- */

static qkvi_corpus *text_corpus(const char *content) {
    char path[TEMPORARY_PATH];
    const int fd = mkstemp(temporary("qkv-corpus", path));
    qkvi_corpus *text = NULL;
    qkv_error error = { 0 };
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    close(fd);
    const qkv_status status = qkvi_corpus_open_text(path, &text, &error);
    unlink(path);
    if (status != QKV_OK) print_message("%s\n", error.message);
    return text;
}

static void expect(const qkvi_corpus *text, int64_t index, const char *a, const char *b,
                   int is_next) {
    qkvi_corpus_pair(text, QKVI_SPLIT_HELD_OUT, index, 0, &pair);
    assert_int_equal(pair.a_bytes, strlen(a));
    assert_memory_equal(pair.a, a, strlen(a));
    assert_int_equal(pair.b_bytes, strlen(b));
    assert_memory_equal(pair.b, b, strlen(b));
    assert_int_equal(pair.is_next, is_next);
}

static void test_text(void **state) {
    (void)state;
    qkvi_corpus *const text = text_corpus("a b\n\n \t\r\nc\td\r\ne\n f\tg\th");
    assert_non_null(text);
    assert_int_equal(qkvi_corpus_n_texts(text), 4);
    assert_int_equal(qkvi_corpus_held_out_pairs(text), 6);
    expect(text, 0, "a b", "", 1);
    expect(text, 1, "c", "d", 1);
    expect(text, 2, "e", "", 1);
    expect(text, 3, "f", "g\th", 1);
    expect(text, 4, "c", "g\th", 0);
    expect(text, 5, "f", "d", 0);
    /* a byte order mark is no text, and makes no line of a blank one */
    qkvi_corpus *const marked = text_corpus("\xEF\xBB\xBF"
                                            "a b\r\nc");
    assert_non_null(marked);
    assert_int_equal(qkvi_corpus_n_texts(marked), 2);
    expect(marked, 0, "a b", "", 1);
    qkvi_corpus_free(marked);
    assert_null(text_corpus("\xEF\xBB\xBF \r\n"));
    int n_wrong = 0;
    for (int64_t i = 0; i < 4000; ++i) {
        qkvi_corpus_pair(text, QKVI_SPLIT_TRAIN, i, SEED, &pair);
        const bool crossed = pair.b_bytes && (pair.a[0] == 'c') != (pair.b[0] == 'd');
        assert_int_equal(pair.is_next, !crossed);
        n_wrong += crossed;
    }
    assert_in_range(n_wrong, 850, 1150);
    qkvi_slot *slots;
    int32_t n_slots;
    assert_int_equal(qkvi_corpus_slots(text, &pair, &slots, &n_slots, NULL), QKV_OK);
    assert_int_equal(n_slots, 0);
    assert_int_equal(qkvi_corpus_probe(text, 0, 0, &pair), 0);
    qkvi_corpus_free(text);
}

static void test_text_with_one_pair(void **state) {
    (void)state;
    qkvi_corpus *const text = text_corpus("a\tb\n");
    assert_non_null(text);
    assert_int_equal(qkvi_corpus_held_out_pairs(text), 1);
    for (int64_t i = 0; i < 50; ++i) {
        qkvi_corpus_pair(text, QKVI_SPLIT_TRAIN, i, SEED, &pair);
        assert_int_equal(pair.is_next, 1);
    }
    qkvi_corpus_free(text);
    assert_null(text_corpus("\n \n\t\n"));
    assert_null(text_corpus(""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_pure_function),
        cmocka_unit_test(test_training_says_nothing_held_out),
        cmocka_unit_test(test_held_out_texts_are_new),
        cmocka_unit_test(test_wrong_pairs),
        cmocka_unit_test(test_words_are_admissible_in_their_places),
        cmocka_unit_test(test_probes),
        cmocka_unit_test(test_shown_sentences),
        cmocka_unit_test(test_documentation),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_text_with_one_pair),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
