/*
 * Grammars: admissible sets against hand-written and exhaustively collected ones, what is held out,
 * and broken files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "train/grammar/grammar.h"

#define WORDS                                                                                      \
    "person it : it it its was is has does\n"                                                      \
    "person he : he him his was is has does\n"                                                     \
    "person she : she her her was is has does\n"                                                   \
    "person they : they them their were are have do\n"                                             \
    "person I : I me my was am have do\n"                                                          \
    "function : . , ? the a an when until did not\n"                                               \
    "noun door = thing opens : door box/boxes hatch/hatches\n"                                     \
    "noun cup = thing breaks : cup mug\n"                                                          \
    "noun woman = person actor she : girl woman/women\n"                                           \
    "noun worker = person actor he she : baker\n"                                                  \
    "word name = actor bare she : Anna\n"                                                          \
    "word name = actor bare he : Tom\n"                                                            \
    "word speaker = actor bare I : I\n"                                                            \
    "verb event = by=opens : open close/closes/closed/closing\n"                                   \
    "verb event = by=breaks : break/breaks/broke/breaking/broken\n"                                \
    "verb event = by=opens|breaks|person : fall/falls/fell/falling/fallen\n"

static const char watching[] = WORDS "family watching\n"
                                     "  V = event\n"
                                     "  Y = V.by\n"
                                     "  X = actor\n"
                                     "  say <X> X.was opening the Y when|until Y.subj* V.past .\n"
                                     "  say the Y V.past .\n"
                                     "family habit\n"
                                     "  X = actor\n"
                                     "  V = event\n"
                                     "  Y = thing V.by\n"
                                     "  say X V:X a:Y Y .\n";

static qkvi_grammar *parse(const char *text) {
    qkv_error error = { 0 };
    qkvi_grammar *g = NULL;
    if (qkvi_grammar_parse("test", text, strlen(text), &g, &error) != QKV_OK)
        fail_msg("%s", error.message);
    return g;
}

/* The admissible words, joined by spaces, of the [MASK] in a text. */
static const char *admissible(const qkvi_grammar *g, const char *a, const char *b) {
    static char joined[4096];
    int32_t set[1000];
    qkvi_sentence s;
    joined[0] = '\0';
    assert_true(qkvi_grammar_split(g, a, (int64_t)strlen(a), b, b ? (int64_t)strlen(b) : 0, &s));
    const int32_t n = qkvi_grammar_admissible(g, &s, set);
    for (int32_t i = 0; i < n; ++i) {
        if (i) strcat(joined, " ");
        strcat(joined, g->words[set[i]].key);
    }
    return joined;
}

static void test_admissible_by_hand(void **state) {
    (void)state;
    qkvi_grammar *const g = parse(watching);
    static const struct {
        const char *text, *words;
    } cases[] = {
        { "I was opening the door when [MASK] opened.", "it" },
        { "I was opening the doors when [MASK] opened.", "they" },
        { "I was opening the girl until [MASK] fell.", "she" },
        { "I was opening the baker until [MASK] fell.", "he she" },
        { "I was opening the [MASK] when it opened.", "box door hatch" },
        { "I was opening the [MASK] when it fell.", "box cup door hatch mug" },
        { "I was opening the [MASK] when he fell.", "baker" },
        { "I was opening the [MASK] when they fell.",
          "bakers boxes cups doors girls hatches mugs women" },
        { "I was opening the door when it [MASK].", "closed fell opened" },
        { "I was opening the cup when it [MASK].", "broke fell" },
        { "I was opening the girl when she [MASK].", "fell" },
        { "I was opening the door [MASK] it opened.", "until when" },
        { "I [MASK] opening the door when it opened.", "was" },
        { "The women [MASK] opening the door when it opened.", "were" },
        { "The [MASK] was opening the door when it opened.", "baker girl woman" },
        { "[MASK] was opening the door when it opened.", "anna i tom" },
        { "[MASK] girls were opening the door when it opened.", "the" },
        { "I was opening the cup when it [MASK]", "" },
        { "I was opening the cup when it opened [MASK]", "" },
        { "The [MASK] broke.", "cup cups mug mugs" },
        { "Anna [MASK] a door.", "closes falls opens" },
        { "I [MASK] a door.", "close fall open" },
        { "Anna opens [MASK] door.", "a" },
        { "[MASK] opens a door.",
          "anna baker girl tom woman" }, /* the habit's X takes no article */
        { "Nobody [MASK] the door.", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        assert_string_equal(admissible(g, cases[i].text, NULL), cases[i].words);
    qkvi_grammar_free(g);
}

static const char pairs[] = WORDS "family losing\n"
                                  "  X = actor\n"
                                  "  Y = thing\n"
                                  "  pair <X> did not open the Y . | Y.subj Y.was opened .\n"
                                  "  pair <X> opened the Y . | X.subj closed Y.obj .\n"
                                  "  say <X> opened the Y .\n";

static void test_admissible_in_pairs(void **state) {
    (void)state;
    qkvi_grammar *const g = parse(pairs);
    assert_string_equal(admissible(g, "Anna opened the [MASK].", "She closed it."),
                        "box cup door hatch mug");
    assert_string_equal(admissible(g, "Anna opened the doors.", "She closed [MASK]."), "them");
    assert_string_equal(admissible(g, "[MASK] opened the doors.", "She closed them."), "anna");
    assert_string_equal(admissible(g, "[MASK] opened the doors.", NULL), "anna i tom");
    assert_string_equal(admissible(g, "Tom opened the doors.", "[MASK] closed them."), "he");
    assert_string_equal(admissible(g, "Tom did not open the [MASK].", "It was opened."),
                        "box cup door hatch mug");
    assert_string_equal(admissible(g, "Tom did not open the cup.", "It [MASK] opened."), "was");
    qkvi_grammar_free(g);
}

/* ---- The sets against all that the grammar says ---- */

enum { DRAWS = 150000, SHORT_WORDS = 20 };

typedef struct short_sentence {
    int32_t words[SHORT_WORDS], n, n_a;
} short_sentence;

typedef struct said_list {
    short_sentence *sentences;
    int32_t n;
} said_list;

static int compare_sentences(const void *a, const void *b) {
    return memcmp(a, b, sizeof(short_sentence));
}

static short_sentence shorten(const qkvi_sentence *s) {
    short_sentence out = { .n = s->n, .n_a = s->n_a };
    assert_true(s->n <= SHORT_WORDS);
    memcpy(out.words, s->words, (size_t)s->n * sizeof s->words[0]);
    return out;
}

/*
 * The grammars are so small that so many draws say everything: each sentence some 20 times or more.
 */
static said_list say_all(const qkvi_grammar *g) {
    said_list list = { calloc(DRAWS, sizeof *list.sentences), 0 };
    static qkvi_pair pair;
    assert_non_null(list.sentences);
    for (int64_t i = 0; i < DRAWS; ++i) {
        qkvi_sentence s;
        qkvi_grammar_pair(g, QKVI_SPLIT_TRAIN, i, 11, &pair);
        if (!pair.is_next && pair.b_bytes) continue;
        assert_true(qkvi_grammar_split(g, pair.a, pair.a_bytes, pair.b_bytes ? pair.b : NULL,
                                       pair.b_bytes, &s));
        list.sentences[list.n++] = shorten(&s);
    }
    qsort(list.sentences, (size_t)list.n, sizeof *list.sentences, compare_sentences);
    int32_t n = 0;
    for (int32_t i = 0; i < list.n; ++i)
        if (!n || compare_sentences(&list.sentences[n - 1], &list.sentences[i]))
            list.sentences[n++] = list.sentences[i];
    list.n = n;
    return list;
}

static bool is_said(const said_list *list, const qkvi_sentence *s) {
    const short_sentence key = shorten(s);
    return bsearch(&key, list->sentences, (size_t)list->n, sizeof key, compare_sentences) != NULL;
}

/*
 * Every word of the grammar in every place of every sentence: it is in the set exactly when the
 * result is said.
 */
static void check_sets(const char *text, int32_t n_expected) {
    qkvi_grammar *const g = parse(text);
    said_list list = say_all(g);
    int32_t set[1000];
    assert_int_equal(list.n, n_expected);
    for (int32_t i = 0; i < list.n; ++i)
        for (int32_t place = 0; place < list.sentences[i].n; ++place) {
            qkvi_sentence s = { .n = list.sentences[i].n, .n_a = list.sentences[i].n_a };
            memcpy(s.words, list.sentences[i].words, sizeof list.sentences[i].words);
            s.words[place] = -1;
            const int32_t n = qkvi_grammar_admissible(g, &s, set);
            int32_t n_found = 0;
            for (int32_t w = 0; w < g->n_words; ++w) {
                s.words[place] = w;
                bool in_set = false;
                for (int32_t k = 0; k < n; ++k) in_set |= set[k] == w;
                assert_int_equal(in_set, is_said(&list, &s));
                n_found += in_set;
            }
            assert_int_equal(n, n_found);
        }
    free(list.sentences);
    qkvi_grammar_free(g);
}

static void test_sets_are_exact(void **state) {
    (void)state;
    /*
     * 9 subjects x 2 conjunctions x 33 (noun, verb, pronoun), 32 (noun, verb), 9 subjects x 26
     * (verb, thing)
     */
    check_sets(watching, 9 * 2 * 33 + 32 + 9 * 26);
    /* 9 subjects x 10 things, 10 (subject, pronoun) x 10 things, 9 x 10 */
    check_sets(pairs, 90 + 100 + 90);
}

/* ---- Held out ---- */

static qkvi_said said(const qkvi_grammar *g, const char *a, const char *b) {
    qkvi_sentence s;
    assert_true(qkvi_grammar_split(g, a, (int64_t)strlen(a), b, b ? (int64_t)strlen(b) : 0, &s));
    return qkvi_grammar_said(g, &s, 3);
}

static void test_shown(void **state) {
    (void)state;
    static const char text[] = WORDS "family watching hold X Y\n"
                                     "  V = event\n"
                                     "  Y = V.by\n"
                                     "  X = actor\n"
                                     "  say <X> X.was opening the Y when Y.subj* V.past .\n"
                                     "  held say <X> X.was opening the Y until Y.subj* V.past .\n"
                                     "shown Anna was opening the [MASK] when it opened .\n"
                                     "shown Tom was opening the cup when it broke .\n";
    qkvi_grammar *const g = parse(text);
    assert_int_equal(said(g, "Anna was opening the door when it opened.", NULL), QKVI_HELD_OUT);
    assert_int_equal(said(g, "Anna was opening the box when it fell.", NULL), QKVI_HELD_OUT);
    assert_int_equal(said(g, "Tom was opening the cup when it broke.", NULL), QKVI_HELD_OUT);
    assert_int_equal(said(g, "I was opening the cup until it broke.", NULL), QKVI_HELD_OUT);
    assert_int_equal(said(g, "I was opening the cup until he broke.", NULL), QKVI_NEVER_SAID);
    assert_int_equal(said(g, "Anna was opening the zebra when it opened.", NULL), QKVI_NEVER_SAID);
    static qkvi_pair pair;
    int n_shown = 0;
    for (int64_t i = 0; i < 3000; ++i) {
        qkvi_grammar_pair(g, QKVI_SPLIT_TRAIN, i, 5, &pair);
        pair.buffer[pair.a_bytes] = '\0';
        assert_int_equal(said(g, pair.buffer, NULL), QKVI_TRAINED);
        assert_null(strstr(pair.buffer, "until"));
        qkvi_grammar_pair(g, QKVI_SPLIT_HELD_OUT, i, 5, &pair);
        pair.buffer[pair.a_bytes] = '\0';
        assert_int_equal(said(g, pair.buffer, NULL), QKVI_HELD_OUT);
        n_shown += !strcmp(pair.buffer, "Tom was opening the cup when it broke.");
    }
    assert_true(n_shown > 0);
    qkvi_grammar_free(g);
}

/* ---- Broken files ---- */

static void test_errors(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "", "the grammar has no family" },
        { "verb\n", "test:1: expected 'KIND CLASS" },
        { "nonsense x\n", "test:1: 'nonsense' is no directive" },
        { "  say x\n", "test:1: an indented line continues nothing" },
        { "\n\nperson it : it it\n", "test:3: expected 'person NAME" },
        { "noun a = b : c\n", "test:1: nouns need 'person it' above" },
        { "word a = *10 : c\n", "a weight is *1 to *9" },
        { "word a = x= : c\n", "an empty feature" },
        { "word a = b : caf\xc3\xa9\n", "byte 0xc3; a grammar is ASCII" },
        { "word a = b : c\nfamily f\n", "the family 'f' says nothing" },
        { "word a = b : c\nfamily f hold X\n  X = b\n  say X\nfamily f\n", "is there already" },
        { "word a = b : c\nfamily f hold Z\n  X = b\n  say X\n", "'Z' is not a variable" },
        { "word a = b : c\nfamily f\n  X = d\n  say X\n", "test:3: no class has the feature 'd'" },
        { "word a = b : c\nfamily f\n  X = Y.by\n  say X\n", "'Y' is not a variable above" },
        { "word a = b : c\nfamily f\n  X = b\n  X = b\n", "'X' is there already" },
        { "word a = b : c\nfamily f\n  X = b !a\n", "no word is what 'X' wants" },
        { "word a = b : c\nfamily f\n  X = b\n  say X.past\n", "'past' is neither a form nor" },
        { "word a = b : c\nfamily f\n  X = b\n  say X.subj\n",
          "'c' of variable 'X' has no person" },
        { "word a = b : c\nfamily f\n  X = b\n  say d X\n", "'d' is in no class and no function" },
        { "word a = b : c\nfamily f\n  X = b\n  say <Y>\n", "'Y' is not a variable" },
        { "word a = b : c\nfamily f\n  X = b\n  say X | X\n",
          "a pair has one '|' inside, a say none" },
        { "word a = b : c\nfamily f\n  X = b\n  pair X X\n", "a pair has one '|' inside" },
        { "word a = b : c\nfamily f\n  X = b\n  pair X | a\n", "share no variable" },
        { "word a = b : c\nfamily f\n  X = b\n  pair X | X\n", "with a wrong second half" },
        { "word a = b : c\nfamily f\n  X = b\n  say X*\n", "only a pronoun of a say can be" },
        { "verb a = b : c\nfamily f\n  X = b\n  say X.many\n", "'many' is neither a form" },
        { "word a = b : c\nfamily f\n  X = b\n  say X\nword d = e : f\n", "classes come before" },
        { "word a = b : c\nfamily f\n  X = b\n  say X\nshown d\n",
          "test:5: the grammar cannot say" },
        { "word a = b : c\nfamily f\n  X = b\n  say X\nshown c\n", "cannot hold it out" },
        { "word a = b : 0123456789012345678901234567890123\n", "1 to 32 are allowed" },
        { "word a = b : o.k\n", "test:1: 'o.k' is not one word of a sentence" },
        { "function : [MASK]\n", "test:1: '[MASK]' is not one word of a sentence" },
        { "word a = b : c\nfamily f\n  X = b\n  held say X\n", "none is left to train" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        qkv_error error = { 0 };
        qkvi_grammar *g;
        const qkv_status status =
            qkvi_grammar_parse("test", cases[i].text, strlen(cases[i].text), &g, &error);
        if (status == QKV_OK || !strstr(error.message, cases[i].message))
            fail_msg("case %zu: '%s', expected '%s'", i, error.message, cases[i].message);
        assert_null(g);
    }
}

/*
 * Files made to take for ever are refused: words with very many readings, domains of very many
 * words, and very many sentences that are held out by their rarest word.
 */
static void test_expensive_files(void **state) {
    (void)state;
    enum { BYTES = 1 << 20 };
    char *const text = malloc(BYTES);
    qkv_error error = { 0 };
    qkvi_grammar *g;
    assert_non_null(text);

    size_t n = 0;
    for (int c = 0; c < 300; ++c)
        n += (size_t)snprintf(text + n, BYTES - n, "word c%d = f : same\n", c % 100);
    n +=
        (size_t)snprintf(text + n, BYTES - n, "family g\n  X = f\n  Y = f\n  Z = f\n  say X Y Z\n");
    assert_int_equal(qkvi_grammar_parse("test", text, n, &g, &error), QKV_ERR_LIMIT);
    assert_non_null(strstr(error.message, "too ambiguous"));

    n = (size_t)snprintf(text, BYTES, "word c = f *9 :");
    for (int w = 0; w < 20000; ++w) n += (size_t)snprintf(text + n, BYTES - n, "\n  w%d", w);
    n += (size_t)snprintf(text + n, BYTES - n, "\n");
    for (int f = 0; f < 100; ++f)
        n += (size_t)snprintf(text + n, BYTES - n, "family f%d\n  X = f\n  say X\n", f);
    assert_true(n < BYTES);
    assert_int_equal(qkvi_grammar_parse("test", text, n, &g, &error), QKV_ERR_LIMIT);
    assert_non_null(strstr(error.message, "the variables have more than"));

    n = (size_t)snprintf(text, BYTES, "word a = often x *9 :");
    for (int w = 0; w < 900; ++w) n += (size_t)snprintf(text + n, BYTES - n, " w%d", w);
    n += (size_t)snprintf(text + n, BYTES - n, "\nword b = x : rare\nfamily f\n X = x\n");
    for (int s = 0; s < 5000; ++s) n += (size_t)snprintf(text + n, BYTES - n, " held say X X\n");
    n += (size_t)snprintf(text + n, BYTES - n, "family g\n X = often\n say X X\n");
    assert_true(n < BYTES);
    assert_int_equal(qkvi_grammar_parse("test", text, n, &g, &error), QKV_ERR_LIMIT);
    assert_non_null(strstr(error.message, "or of words too rare"));
    free(text);
}

/* Any bytes give a grammar or a message; sanitizers watch. */
static void test_mutated_files(void **state) {
    (void)state;
    char text[sizeof watching];
    int n_good = 0;
    for (uint64_t seed = 0; seed < 1500; ++seed) {
        qkvi_rng rng = qkvi_rng_make(seed, 0, 0);
        memcpy(text, watching, sizeof watching);
        size_t n = sizeof watching - 1;
        if (seed % 3 == 0) n = qkvi_rng_below(&rng, (uint32_t)n);
        for (uint32_t k = qkvi_rng_below(&rng, 4); k; --k) {
            static const char bytes[] = " \n|.:*<>!=/XYV\x00\xff#a";
            text[qkvi_rng_below(&rng, (uint32_t)n + 1)] =
                bytes[qkvi_rng_below(&rng, sizeof bytes - 1)];
        }
        qkv_error error = { 0 };
        qkvi_grammar *g;
        static qkvi_pair pair;
        if (qkvi_grammar_parse("test", text, n, &g, &error) == QKV_OK) {
            for (int64_t i = 0; i < 20; ++i) qkvi_grammar_pair(g, QKVI_SPLIT_TRAIN, i, 1, &pair);
            qkvi_grammar_free(g);
            ++n_good;
        } else {
            assert_true(strlen(error.message) > 0);
        }
    }
    assert_in_range(n_good, 100, 1400);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_admissible_by_hand),
        cmocka_unit_test(test_admissible_in_pairs),
        cmocka_unit_test(test_sets_are_exact),
        cmocka_unit_test(test_shown),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_expensive_files),
        cmocka_unit_test(test_mutated_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
