/**
 * All of Unicode: what the normaliser and the split make of every scalar value, alone and between
 * two letters, under 24 settings, and its place in canonical order, against PyPI tokenizers. There
 * are no exceptions.
 *
 * tokenizer/unicode.z (tools/tokenizer_table.py describes it) holds runs of code points that the
 * reference treats alike. Settings are read by the reader of tokenizer.json; those that give the
 * same rules (strip_accents null, which means as lowercase) need the same outcomes, and are run
 * once.
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

#include "files/utf8.h"
#include "golden/inflated.h"
#include "text/tokenizer_json.h"
#include "text/wordpiece.h"

#define FOLDER QKV_TEST_DATA "/golden/tokenizer"

enum {
    N_SETTINGS = 24,
    ORDER = N_SETTINGS,
    MAX_OUTCOMES = 10,
    MAX_DIFFERENCES = 20,
    LAST_CODE = 0x10FFFF
};

struct run {
    int32_t first, last;
    const char *which; /* a digit for each setting, and that of the order */
    const char *outcomes[MAX_OUTCOMES];
};

struct table {
    char *text;
    qkvi_bert_rules rules[N_SETTINGS];
    struct run *runs;
    size_t n_runs;
};

/* ---- The table ------------------------------------------------------------------------------- */

/* The rules that the reader of tokenizer.json makes of a normalizer object. */
static qkvi_bert_rules read_rules(const char *setting) {
    json_t *root = json_load_file(FOLDER "/tokenizer.json", 0, NULL);
    json_t *normalizer = json_loads(setting, 0, NULL);
    assert_non_null(root);
    assert_non_null(normalizer);
    json_object_set_new(root, "normalizer", normalizer);
    char *text = json_dumps(root, 0);
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error;
    const qkvi_text_files files = { .tokenizer = { "table", text, strlen(text) } };
    if (qkvi_tokenizer_read_json(&files, &tokenizer, &error)) fail_msg("%s", error.message);
    const qkvi_bert_rules rules = qkvi_wordpiece_of(tokenizer)->rules;
    qkv_tokenizer_free(tokenizer);
    free(text);
    json_decref(root);
    return rules;
}

/* "FIRST[-LAST] WHICH A|B|…"; the line is cut into strings. */
static struct run parse_run(char *line) {
    struct run run = { 0 };
    char *at = line;
    run.first = run.last = (int32_t)strtol(at, &at, 16);
    if (*at == '-') run.last = (int32_t)strtol(at + 1, &at, 16);
    assert_int_equal(*at, ' ');
    run.which = ++at;
    at += strspn(at, "0123456789");
    assert_int_equal(at - run.which, N_SETTINGS + 1);
    for (size_t i = 0; *at; i++) {
        assert_true(i < MAX_OUTCOMES);
        *at++ = '\0';
        run.outcomes[i] = at;
        at += strcspn(at, "|");
    }
    for (size_t s = 0; s <= ORDER; s++) assert_non_null(run.outcomes[run.which[s] - '0']);
    return run;
}

static char *next_line(char **at) {
    char *line = *at, *end = strchr(line, '\n');
    assert_non_null(end);
    *end = '\0';
    *at = end + 1;
    return line;
}

static struct table load_table(void) {
    struct table table = { 0 };
    size_t n_bytes, room = 0;
    table.text = inflated(FOLDER "/unicode.z", &n_bytes);
    char *at = table.text;
    print_message("the reference is PyPI %s\n", next_line(&at));
    for (size_t s = 0; s < N_SETTINGS; s++) table.rules[s] = read_rules(next_line(&at));
    assert_string_equal(next_line(&at), "");
    while (*at) {
        if (table.n_runs == room) {
            table.runs = realloc(table.runs, (room = room ? 2 * room : 1024) * sizeof(struct run));
            assert_non_null(table.runs);
        }
        table.runs[table.n_runs++] = parse_run(next_line(&at));
    }
    return table;
}

static void free_table(struct table *table) {
    free(table->runs);
    free(table->text);
}

/* ---- One code point -------------------------------------------------------------------------- */

/* Words joined by spaces. */
struct words {
    char text[64];
    size_t n;
};

static void put(struct words *words, const char *bytes, size_t n) {
    assert_true(words->n + n <= sizeof words->text);
    memcpy(words->text + words->n, bytes, n);
    words->n += n;
}

static void put_code(struct words *words, int32_t code) {
    char bytes[4];
    put(words, bytes, qkvi_utf8_put(code, bytes));
}

static qkv_status take_word(void *user, const qkvi_word *word) {
    struct words *words = user;
    if (words->n > 0) put(words, " ", 1);
    put(words, word->bytes, word->n_bytes);
    return QKV_OK;
}

/* The parts of Hangul syllable number s (Unicode 3.12). */
static void put_jamo(struct words *words, int32_t s) {
    put_code(words, 0x1100 + s / 588);
    put_code(words, 0x1161 + s % 588 / 28);
    if (s % 28) put_code(words, 0x11A7 + s % 28);
}

static void spell_outcome(struct words *words, const char *outcome, int32_t code) {
    while (*outcome) {
        char *end = (char *)(uintptr_t)outcome + 1;
        if (*outcome == '=')
            put_code(words, code);
        else if (*outcome == '_')
            put(words, " ", 1);
        else if (*outcome == '%')
            put_jamo(words, code - 0xAC00);
        else
            put_code(words, (int32_t)strtol(outcome, &end, 16));
        outcome = end + (*end == ' ');
    }
}

static int is_same(const struct words *a, const struct words *b) {
    return a->n == b->n && memcmp(a->text, b->text, a->n) == 0;
}

static void normalize(qkvi_normalizer *normalizer, struct words *got, const struct words *text) {
    got->n = 0;
    assert_int_equal(qkvi_normalize(normalizer, text->text, 0, (uint32_t)text->n), QKV_OK);
}

/* The words of before, code point, after are a, outcome, b. */
static int matches_between(qkvi_normalizer *normalizer, struct words *got, const char *before,
                           const char *after, const char *outcome, int32_t code) {
    struct words text = { .n = 0 }, wanted = { .n = 0 };
    put(&text, before, strlen(before));
    put_code(&text, code);
    put(&text, after, strlen(after));
    put(&wanted, "a", 1);
    spell_outcome(&wanted, outcome, code);
    put(&wanted, "b", 1);
    normalize(normalizer, got, &text);
    return is_same(got, &wanted);
}

/* The words of the code point are the outcome without the spaces around it. */
static int matches_alone(qkvi_normalizer *normalizer, struct words *got, const char *outcome,
                         int32_t code) {
    struct words text = { .n = 0 }, wanted = { .n = 0 }, alone = { .n = 0 };
    put_code(&text, code);
    spell_outcome(&wanted, outcome, code);
    size_t begin = 0, end = wanted.n;
    if (begin < end && wanted.text[begin] == ' ') begin++;
    if (begin < end && wanted.text[end - 1] == ' ') end--;
    put(&alone, wanted.text + begin, end - begin);
    normalize(normalizer, got, &text);
    return is_same(got, &alone);
}

static int matches(qkvi_normalizer *normalizer, struct words *got, size_t setting,
                   const char *outcome, int32_t code) {
    if (setting == ORDER)
        return matches_between(normalizer, got, "a\u302e",
                               "\u1b44"
                               "b",
                               outcome, code);
    return matches_between(normalizer, got, "a", "b", outcome, code) &&
           matches_alone(normalizer, got, outcome, code);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void test_covers_unicode(void **state) {
    const struct table *table = *state;
    int32_t next = 0;
    for (size_t r = 0; r < table->n_runs; r++) {
        assert_int_equal(table->runs[r].first, next);
        assert_true(table->runs[r].last >= next);
        next = table->runs[r].last + 1;
        if (next == 0xD800) next = 0xE000;
    }
    assert_int_equal(next, LAST_CODE + 1);
}

/* The index of the first setting with the same rules. */
static size_t first_like(const struct table *table, size_t setting) {
    size_t s = 0;
    while (memcmp(&table->rules[s], &table->rules[setting], sizeof table->rules[s]) != 0) s++;
    return s;
}

static size_t compare(const struct table *table, const qkvi_bert_rules *rules, size_t setting,
                      size_t *n_compared) {
    struct words got;
    size_t n_different = 0;
    qkvi_normalizer *normalizer = qkvi_normalizer_create(rules, 100, take_word, &got);
    assert_non_null(normalizer);
    for (size_t r = 0; r < table->n_runs; r++) {
        const struct run *run = &table->runs[r];
        const char *outcome = run->outcomes[run->which[setting] - '0'];
        for (int32_t code = run->first; code <= run->last; code++, ++*n_compared) {
            if (matches(normalizer, &got, setting, outcome, code)) continue;
            if (n_different++ < MAX_DIFFERENCES)
                print_message("U+%04X, setting %zu: \"%.*s\", not \"%s\"\n", (unsigned)code,
                              setting, (int)got.n, got.text, outcome);
        }
    }
    qkvi_normalizer_free(normalizer);
    return n_different;
}

static size_t compare_rows(const struct table *table, size_t a, size_t b, size_t *n_compared) {
    size_t n_different = 0;
    for (size_t r = 0; r < table->n_runs; r++) {
        const struct run *run = &table->runs[r];
        const size_t n = (size_t)(run->last - run->first + 1);
        *n_compared += n;
        if (run->which[a] != run->which[b]) n_different += n;
    }
    return n_different;
}

static void test_every_code_point(void **state) {
    const struct table *table = *state;
    size_t n_compared = 0, n_different = 0;
    for (size_t s = 0; s < N_SETTINGS; s++) {
        const size_t like = first_like(table, s);
        n_different += like == s ? compare(table, &table->rules[s], s, &n_compared)
                                 : compare_rows(table, s, like, &n_compared);
    }
    print_message("%zu code points x settings, %zu differences\n", n_compared, n_different);
    assert_int_equal(n_compared, 1112064u * N_SETTINGS);
    assert_int_equal(n_different, 0);
}

/* Canonical order, among two marks that are kept: see tools/tokenizer_table.py. */
static void test_order(void **state) {
    const qkvi_bert_rules rules = { .strip_accents = 1 };
    size_t n_compared = 0;
    assert_int_equal(compare(*state, &rules, ORDER, &n_compared), 0);
    assert_int_equal(n_compared, 1112064);
}

static int set_up(void **state) {
    static struct table table;
    *state = &table;
    table = load_table();
    return 0;
}

static int tear_down(void **state) {
    free_table(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_covers_unicode),
        cmocka_unit_test(test_every_code_point),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
