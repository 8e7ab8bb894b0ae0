/**
 * 20,000 random strings against PyPI tokenizers: ids and ranges under twelve settings.
 *
 * The strings are drawn here as tools/tokenizer_cases.py draws them; tokenizer/strings.z has the
 * alphabet and one hash for each. `tokenizer_cases.py FOLDER --show I` prints what the reference
 * says of string I; and `--strings` writes a file of others, which may be named as argument.
 *
 * The reference leaves a dropped accent out of every range, or in the middle of one; here it
 * belongs to the letter before it. So accents are cut off the end of a range before it is compared,
 * where they are dropped. Where marks change places the reference's ranges are those of other
 * characters, and only ids are compared: bit 0 of the hash says so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden/inflated.h"
#include "golden/random_text.h"
#include "text/unicode.h"
#include "text/wordpiece.h"

#define FOLDER QKV_TEST_DATA "/golden/tokenizer"

enum { N_SETTINGS = 12 };

static const char own_path[] = FOLDER "/strings.z";
static const char *path = own_path;

static const char ascii_text[] = "abcdeXYZ 019 .,!'-";

struct golden {
    uint32_t *numbers; /* the file: seed, n, the alphabet, n, the hashes */
    const uint32_t *alphabet, *hashes;
    uint32_t n_alphabet, n_strings;
    qkv_tokenizer *tokenizers[N_SETTINGS + 1]; /* the last one from tokenizer.json */
};

/* ---- The strings ----------------------------------------------------------------------------- */

static void put_token(struct text *text, const qkv_tokenizer *tokenizer, int32_t id) {
    size_t n = 0;
    const char *token = qkv_tokenizer_token(tokenizer, id, &n);
    assert_non_null(token);
    const size_t mark = n >= 2 && token[0] == '#' && token[1] == '#' ? 2 : 0;
    put(text, token + mark, n - mark);
}

static void draw_part(const struct golden *golden, uint64_t *state, struct text *text) {
    const qkv_tokenizer *tokenizer = golden->tokenizers[0];
    const uint32_t what = below(state, 100);
    if (what < 25) {
        put(text, &ascii_text[below(state, sizeof ascii_text - 1)], 1);
    } else if (what < 30) {
        put_token(text, tokenizer, (int32_t)below(state, 5)); /* the special ones come first */
    } else if (what < 60) {
        const uint32_t size = (uint32_t)qkv_tokenizer_size(tokenizer);
        put_token(text, tokenizer, (int32_t)below(state, size));
    } else if (what < 95) {
        put_code(text, golden->alphabet[below(state, golden->n_alphabet)]);
    } else {
        put_any(text, state);
    }
}

static void draw_text(const struct golden *golden, uint64_t *state, struct text *text) {
    text->n = 0;
    for (uint32_t n = 1 + below(state, 12); n > 0; n--) draw_part(golden, state, text);
}

/* ---- What we make of them -------------------------------------------------------------------- */

/* 1 if nothing is left of a character under strip_accents. */
static int is_accent(int32_t code) {
    int32_t parts[QKVI_MAX_DECOMPOSITION];
    const int n = qkvi_char_decompose(code, parts);
    for (int i = 0; i < n; i++)
        if (!(qkvi_char_class(parts[i]) & QKVI_CHAR_ACCENT)) return 0;
    return 1;
}

/* The end of [begin, end) without the accents there. */
static int64_t without_accents(const struct text *text, int64_t begin, int64_t end) {
    while (end > begin) {
        int64_t last = end - 1;
        while (last > begin && (text->bytes[last] & 0xC0) == 0x80) last--;
        int32_t code = 0;
        qkvi_utf8_next(text->bytes + last, (size_t)(end - last), &code);
        if (!is_accent(code)) break;
        end = last;
    }
    return end;
}

static int64_t range_end(const qkv_tokenizer *tokenizer, const struct text *text,
                         const qkv_encoding *encoding, int64_t i) {
    if (!qkvi_wordpiece_of(tokenizer)->rules.strip_accents || encoding->special[i])
        return encoding->end[i];
    return without_accents(text, encoding->begin[i], encoding->end[i]);
}

/* Ranges lie in the text, follow one another, and begin and end at characters. */
static void assert_ranges(const qkv_encoding *encoding, const struct text *text) {
    int64_t last = 0;
    for (int64_t i = 0; i < encoding->n; i++) {
        const int64_t begin = encoding->begin[i], end = encoding->end[i];
        assert_true(last <= begin && begin <= end && end <= (int64_t)text->n);
        assert_true(begin == (int64_t)text->n || (text->bytes[begin] & 0xC0) != 0x80);
        assert_true(end == (int64_t)text->n || (text->bytes[end] & 0xC0) != 0x80);
        last = end;
    }
}

static uint32_t hash_tokens(uint32_t so_far, const qkv_tokenizer *tokenizer,
                            const struct text *text, int with_ranges) {
    qkv_encoding *encoding = NULL;
    qkv_error error;
    if (qkv_tokenizer_encode(tokenizer, text->bytes, text->n, NULL, 0, &encoding, &error))
        fail_msg("%s", error.message);
    assert_ranges(encoding, text);
    so_far = hash(so_far, encoding->n - 2); /* without [CLS] and [SEP] */
    for (int64_t i = 1; i < encoding->n - 1; i++) so_far = hash(so_far, encoding->ids[i]);
    for (int64_t i = 1; with_ranges && i < encoding->n - 1; i++) {
        so_far = hash(so_far, encoding->begin[i]);
        so_far = hash(so_far, range_end(tokenizer, text, encoding, i));
    }
    qkv_encoding_free(encoding);
    return so_far;
}

/* As `tokenizer_cases.py --show` does, for a difference of the two. */
static void describe(const struct golden *golden, const struct text *text, uint32_t index) {
    print_message("string %u differs; here it is\n", index);
    for (int s = 0; s < N_SETTINGS; s++) {
        const qkv_tokenizer *tokenizer = golden->tokenizers[s];
        qkv_encoding *encoding = NULL;
        qkv_error error;
        assert_int_equal(
            qkv_tokenizer_encode(tokenizer, text->bytes, text->n, NULL, 0, &encoding, &error),
            QKV_OK);
        print_message("setting %d\n", s);
        for (int64_t i = 1; i < encoding->n - 1; i++)
            print_message("    %d  %d %d\n", encoding->ids[i], (int)encoding->begin[i],
                          (int)range_end(tokenizer, text, encoding, i));
        qkv_encoding_free(encoding);
    }
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void test_strings(void **state) {
    const struct golden *golden = *state;
    struct text text;
    uint64_t draws = golden->numbers[0];
    uint32_t n_different = 0, n_ranges = 0;
    for (uint32_t i = 0; i < golden->n_strings; i++) {
        draw_text(golden, &draws, &text);
        const uint32_t wanted = golden->hashes[i], with_ranges = wanted & 1;
        uint32_t got = HASH_BEGIN;
        for (int s = 0; s < N_SETTINGS; s++)
            got = hash_tokens(got, golden->tokenizers[s], &text, (int)with_ranges);
        n_ranges += with_ranges;
        if ((got & ~1u) == (wanted & ~1u)) continue;
        if (n_different++ < 3) describe(golden, &text, i);
    }
    print_message("%u strings under %d settings, %u of them with ranges: %u differ\n",
                  golden->n_strings, N_SETTINGS, n_ranges, n_different);
    assert_true(path != own_path || golden->n_strings == 20000);
    assert_true(n_ranges >= golden->n_strings / 100 * 99);
    assert_int_equal(n_different, 0);
}

/* Both doors lead to the same tokenizer. */
static void test_tokenizer_json(void **state) {
    const struct golden *golden = *state;
    struct text text;
    uint64_t draws = golden->numbers[0];
    for (uint32_t i = 0; i < golden->n_strings; i++) {
        draw_text(golden, &draws, &text);
        assert_int_equal(hash_tokens(0, golden->tokenizers[0], &text, 1),
                         hash_tokens(0, golden->tokenizers[N_SETTINGS], &text, 1));
    }
}

/* The s-th setting of cases.json. */
static qkv_tokenizer *open_setting(int s, const char *vocab, size_t n_vocab) {
    static const char *const strips[] = { "null", "true", "false" };
    char config[160];
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error;
    snprintf(config, sizeof config,
             "{\"do_lower_case\":%s,\"strip_accents\":%s,\"tokenize_chinese_chars\":%s}",
             s < 6 ? "true" : "false", strips[s / 2 % 3], s % 2 == 0 ? "true" : "false");
    if (qkv_tokenizer_open_memory(vocab, n_vocab, config, strlen(config), &tokenizer, &error))
        fail_msg("%s", error.message);
    return tokenizer;
}

static int set_up(void **state) {
    static struct golden golden;
    char *vocab = NULL;
    size_t n_vocab = 0, n_bytes = 0;
    qkv_error error;
    *state = &golden;
    golden.numbers = (uint32_t *)(void *)inflated(path, &n_bytes);
    golden.n_alphabet = golden.numbers[1];
    golden.alphabet = golden.numbers + 2;
    golden.n_strings = golden.alphabet[golden.n_alphabet];
    golden.hashes = golden.alphabet + golden.n_alphabet + 1;
    assert_int_equal(n_bytes, 4 * (3 + (size_t)golden.n_alphabet + golden.n_strings));
    if (qkvi_file_load(FOLDER "/vocab.txt", 1 << 20, &vocab, &n_vocab, &error) ||
        qkv_tokenizer_open(FOLDER, QKV_SOURCE, &golden.tokenizers[N_SETTINGS], &error))
        fail_msg("%s", error.message);
    for (int s = 0; s < N_SETTINGS; s++) golden.tokenizers[s] = open_setting(s, vocab, n_vocab);
    free(vocab);
    return 0;
}

static int tear_down(void **state) {
    struct golden *golden = *state;
    for (int s = 0; s <= N_SETTINGS; s++) qkv_tokenizer_free(golden->tokenizers[s]);
    free(golden->numbers);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) path = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_tokenizer_json),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
