/**
 * Byte-level BPE against PyPI tokenizers and transformers (tools/bpe_cases.py): every code point in
 * the pattern of GPT-2, random strings and some picked by hand under ten settings, pairs, cutting.
 *
 * Eight settings are a tokenizer.json each, two are folders with vocab.json and merges.txt. Of a
 * string are compared ids, ranges and the text that its ids make: all, without special tokens, and
 * backwards, which is seldom UTF-8. `bpe_cases.py FOLDER --show I` prints what the reference says
 * of string I; `--strings` writes a file of others, which may be named as argument.
 *
 * The reference gives a token the range of whole characters, here it has its own bytes: ranges are
 * widened before they are compared. Where it counts a space that it put beside an added token,
 * they are not compared: bit 0 of the hash says so.
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
#include "golden/random_text.h"
#include "text/byte_level.h"
#include "text/tokenizer_json.h"
#include "text/unicode.h"
#include "text/words.h"

#define FOLDER QKV_TEST_DATA "/golden/bpe"

enum { N_JSON = 8, N_SETTINGS = N_JSON + 2 };

static const char own_path[] = FOLDER "/strings.z";
static const char *path = own_path;

static const char ascii_text[] = "abcdestXYZ 019  .,!'-\n\t";

struct golden {
    json_t *cases;
    qkv_tokenizer *tokenizers[N_SETTINGS];
    int drops[N_SETTINGS];    /* bytes are dropped, which shifts the reference's ranges */
    int prefixes[N_SETTINGS]; /* a space is put into the text */
};

/* ---- Opening --------------------------------------------------------------------------------- */

static json_t *load_json(const char *name) {
    char file[512];
    json_error_t cause;
    snprintf(file, sizeof file, "%s/%s", FOLDER, name);
    json_t *root = json_load_file(file, JSON_ALLOW_NUL, &cause);
    if (!root) fail_msg("%s: line %d: %s", file, cause.line, cause.text);
    return root;
}

/* 1 if a token has one of the characters of missing. */
static int lacks(const char *token, const char *missing) {
    for (size_t at = 0, n = strlen(token); at < n;) {
        int32_t code;
        char character[5] = "";
        const size_t length = qkvi_utf8_next(token + at, n - at, &code);
        memcpy(character, token + at, length);
        if (strstr(missing, character)) return 1;
        at += length;
    }
    return 0;
}

static json_t *make_vocab(const char *folder, const char *missing) {
    char name[64];
    const char *key;
    json_t *value;
    void *next;
    snprintf(name, sizeof name, "%s/vocab.json", folder);
    json_t *vocab = load_json(name);
    json_object_foreach_safe(vocab, next, key, value) {
        if (lacks(key, missing)) json_object_del(vocab, key);
    }
    return vocab;
}

static json_t *make_merges(const char *folder, const char *missing, size_t most) {
    char name[512], *bytes = NULL, *rest = NULL;
    size_t n = 0;
    qkv_error error;
    json_t *merges = json_array();
    snprintf(name, sizeof name, "%s/%s/merges.txt", FOLDER, folder);
    assert_int_equal(qkvi_file_load(name, 1 << 20, &bytes, &n, &error), QKV_OK);
    strtok_r(bytes, "\n", &rest); /* #version */
    for (char *line; (line = strtok_r(NULL, "\n", &rest)) && json_array_size(merges) < most;) {
        char *space = strchr(line, ' ');
        *space = '\0';
        if (lacks(line, missing) || lacks(space + 1, missing)) continue;
        if (json_array_size(merges) % 2) { /* both forms */
            json_array_append_new(merges, json_pack("[ss]", line, space + 1));
        } else {
            *space = ' ';
            json_array_append_new(merges, json_string(line));
        }
    }
    free(bytes);
    return merges;
}

/* The tokenizer.json of a setting: see tools/bpe_cases.py. */
static qkv_tokenizer *open_setting(const json_t *setting) {
    json_t *root = json_deep_copy(setting), *model = json_object_get(root, "model");
    const char *folder, *missing;
    json_int_t most;
    assert_int_equal(
        json_unpack(model, "{s:[s,s],s:I}", "vocab", &folder, &missing, "merges", &most), 0);
    json_t *vocab = make_vocab(folder, missing),
           *merges = make_merges(folder, missing, (size_t)most);
    json_object_set_new(model, "vocab", vocab);
    json_object_set_new(model, "merges", merges);
    char *text = json_dumps(root, 0);
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error;
    const qkvi_text_files files = { .tokenizer = { "setting", text, strlen(text) } };
    if (qkvi_tokenizer_read_json(&files, &tokenizer, &error)) fail_msg("%s", error.message);
    free(text);
    json_decref(root);
    return tokenizer;
}

static int set_up(void **state) {
    static struct golden golden;
    static const char *const folders[] = { FOLDER "/gpt2", FOLDER "/roberta" };
    qkv_error error;
    *state = &golden;
    golden.cases = load_json("cases.json");
    const json_t *settings = json_object_get(golden.cases, "settings");
    assert_int_equal(json_array_size(settings), N_JSON);
    for (size_t s = 0; s < N_JSON; s++) {
        const json_t *setting = json_array_get(settings, s),
                     *model = json_object_get(setting, "model");
        const json_t *missing = json_array_get(json_object_get(model, "vocab"), 1);
        golden.drops[s] =
            json_string_length(missing) > 0 && json_is_null(json_object_get(model, "unk_token"));
        golden.prefixes[s] = json_is_true(
            json_object_get(json_object_get(setting, "pre_tokenizer"), "add_prefix_space"));
        golden.tokenizers[s] = open_setting(setting);
    }
    for (size_t f = 0; f < 2; f++) {
        if (qkv_tokenizer_open(folders[f], QKV_SOURCE, &golden.tokenizers[N_JSON + f], &error))
            fail_msg("%s", error.message);
    }
    return 0;
}

static int tear_down(void **state) {
    struct golden *golden = *state;
    for (int s = 0; s < N_SETTINGS; s++) qkv_tokenizer_free(golden->tokenizers[s]);
    json_decref(golden->cases);
    return 0;
}

/* ---- Strings --------------------------------------------------------------------------------- */

static const char *text_field(const struct golden *golden, const char *name) {
    return json_string_value(json_object_get(golden->cases, name));
}

/* The index-th of the words of a text, which are separated by single spaces. */
static void put_word(struct text *text, const char *words, uint32_t index) {
    for (; index > 0; index--) words = strchr(words, ' ') + 1;
    put(text, words, strcspn(words, " "));
}

static uint32_t count_words(const char *words) {
    uint32_t n = 1;
    for (; *words; words++) n += *words == ' ';
    return n;
}

static void draw_part(const struct golden *golden, const uint32_t *alphabet, uint32_t n_alphabet,
                      uint64_t *state, struct text *text) {
    const json_t *special = json_object_get(golden->cases, "special");
    const char *words = text_field(golden, "text");
    const uint32_t what = below(state, 100);
    if (what < 30) {
        put(text, &ascii_text[below(state, sizeof ascii_text - 1)], 1);
    } else if (what < 40) {
        const json_t *token =
            json_array_get(special, below(state, (uint32_t)json_array_size(special)));
        put(text, json_string_value(token), json_string_length(token));
    } else if (what < 70) {
        put_word(text, words, below(state, count_words(words)));
        if (below(state, 2)) put(text, " ", 1);
    } else if (what < 95) {
        put_code(text, alphabet[below(state, n_alphabet)]);
    } else {
        put_any(text, state);
    }
}

static qkv_encoding *encode(const qkv_tokenizer *tokenizer, const char *text, size_t n) {
    qkv_encoding *encoding = NULL;
    qkv_error error;
    if (qkv_tokenizer_encode(tokenizer, text, n, NULL, 0, &encoding, &error))
        fail_msg("%s", error.message);
    return encoding;
}

/* 1 if token i was put around the text. */
static int is_inserted(const qkv_encoding *encoding, int64_t i) {
    return encoding->special[i] && encoding->begin[i] == encoding->end[i];
}

static int64_t char_begin(const char *text, int64_t at, int64_t n) {
    while (at > 0 && at < n && (text[at] & 0xC0) == 0x80) at--;
    return at;
}

static int64_t char_end(const char *text, int64_t at, int64_t n) {
    while (at < n && (text[at] & 0xC0) == 0x80) at++;
    return at;
}

static uint32_t hash_decoded(uint32_t so_far, const qkv_tokenizer *tokenizer, const int32_t *ids,
                             int64_t n, int flags) {
    qkv_text *text = NULL;
    qkv_error error;
    if (qkv_tokenizer_decode(tokenizer, ids, n, flags, &text, &error))
        fail_msg("%s", error.message);
    for (int64_t i = 0; i < text->n; i++) so_far = hash(so_far, (unsigned char)text->bytes[i]);
    qkv_text_free(text);
    return so_far;
}

static uint32_t hash_tokens(uint32_t so_far, const qkv_tokenizer *tokenizer, const char *text,
                            size_t n, int with_ranges) {
    qkv_encoding *encoding = encode(tokenizer, text, n);
    int32_t *ids = calloc(2 * (size_t)encoding->n + 1, sizeof *ids);
    int64_t kept = 0, last = 0;
    for (int64_t i = 0; i < encoding->n; i++) {
        assert_true(last <= encoding->begin[i] && encoding->begin[i] <= encoding->end[i]);
        last = encoding->end[i];
        if (!is_inserted(encoding, i)) ids[kept++] = encoding->ids[i];
    }
    assert_true(last <= (int64_t)n);
    so_far = hash(so_far, kept);
    for (int64_t i = 0; i < kept; i++) so_far = hash(so_far, ids[i]);
    for (int64_t i = 0; i < encoding->n && with_ranges; i++) {
        if (is_inserted(encoding, i)) continue;
        so_far = hash(so_far, char_begin(text, encoding->begin[i], (int64_t)n));
        so_far = hash(so_far, char_end(text, encoding->end[i], (int64_t)n));
    }
    for (int64_t i = 0; i < kept; i++) ids[kept + i] = ids[kept - 1 - i];
    so_far = hash_decoded(so_far, tokenizer, ids, kept, 0);
    so_far = hash_decoded(so_far, tokenizer, ids, kept, QKV_DECODE_SKIP_SPECIAL);
    so_far = hash_decoded(so_far, tokenizer, ids + kept, kept, 0);
    free(ids);
    qkv_encoding_free(encoding);
    return so_far;
}

static uint32_t hash_string(const struct golden *golden, const char *text, size_t n,
                            uint32_t wanted) {
    uint32_t got = HASH_BEGIN;
    for (int s = 0; s < N_SETTINGS; s++)
        got = hash_tokens(got, golden->tokenizers[s], text, n,
                          !golden->drops[s] && ((wanted & 1) || !golden->prefixes[s]));
    return (got & ~1u) | (wanted & 1);
}

/* As `bpe_cases.py --show` does, for a difference of the two. */
static void describe(const struct golden *golden, const char *text, size_t n, uint32_t index) {
    print_message("string %u differs; here it is\n", index);
    for (int s = 0; s < N_SETTINGS; s++) {
        qkv_encoding *encoding = encode(golden->tokenizers[s], text, n);
        print_message("setting %d\n", s);
        for (int64_t i = 0; i < encoding->n; i++) {
            if (is_inserted(encoding, i)) continue;
            print_message("    %d  %d %d\n", encoding->ids[i],
                          (int)char_begin(text, encoding->begin[i], (int64_t)n),
                          (int)char_end(text, encoding->end[i], (int64_t)n));
        }
        qkv_encoding_free(encoding);
    }
}

static void test_strings(void **state) {
    const struct golden *golden = *state;
    size_t n_bytes = 0;
    uint32_t *numbers = (uint32_t *)(void *)inflated(path, &n_bytes);
    const uint32_t n_alphabet = numbers[1], *alphabet = numbers + 2;
    const uint32_t n_strings = alphabet[n_alphabet], *hashes = alphabet + n_alphabet + 1;
    assert_int_equal(n_bytes, 4 * (3 + (size_t)n_alphabet + n_strings));
    struct text text;
    uint64_t draws = numbers[0];
    uint32_t n_different = 0, n_ranges = 0;
    for (uint32_t i = 0; i < n_strings; i++) {
        text.n = 0;
        for (uint32_t n = 1 + below(&draws, 12); n > 0; n--)
            draw_part(golden, alphabet, n_alphabet, &draws, &text);
        n_ranges += hashes[i] & 1;
        if (hash_string(golden, text.bytes, text.n, hashes[i]) == hashes[i]) continue;
        if (n_different++ < 3) describe(golden, text.bytes, text.n, i);
    }
    print_message("%u strings under %d settings, %u of them with ranges: %u differ\n", n_strings,
                  N_SETTINGS, n_ranges, n_different);
    assert_true(path != own_path || n_strings == 10000);
    assert_true(n_ranges >= n_strings / 3);
    assert_int_equal(n_different, 0);
    free(numbers);
}

static void test_texts(void **state) {
    const struct golden *golden = *state;
    const json_t *texts = json_object_get(golden->cases, "texts");
    int n_different = 0;
    assert_true(json_array_size(texts) >= 30);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *row = json_array_get(texts, i), *text = json_array_get(row, 0);
        const uint32_t wanted = (uint32_t)json_integer_value(json_array_get(row, 1));
        const char *bytes = json_string_value(text);
        const size_t n = json_string_length(text);
        if (hash_string(golden, bytes, n, wanted) == wanted) continue;
        if (n_different++ < 3) describe(golden, bytes, n, (uint32_t)i);
    }
    assert_int_equal(n_different, 0);
}

/* ---- Pairs and cutting ----------------------------------------------------------------------- */

static void test_pairs(void **state) {
    const struct golden *golden = *state;
    const json_t *pairs = json_object_get(golden->cases, "pairs");
    assert_true(json_array_size(pairs) >= 60);
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *row = json_array_get(pairs, i);
        const qkv_tokenizer *tokenizer =
            golden->tokenizers[json_integer_value(json_array_get(row, 0))];
        const char *a = json_string_value(json_array_get(row, 1));
        const char *b = json_string_value(json_array_get(row, 2));
        const int64_t cut = json_integer_value(json_array_get(row, 3));
        const json_t *ids = json_array_get(row, 4), *types = json_array_get(row, 5);
        qkv_encoding *encoding = NULL;
        qkv_error error;
        assert_int_equal(
            qkv_tokenizer_encode(tokenizer, a, strlen(a), b, b ? strlen(b) : 0, &encoding, &error),
            QKV_OK);
        if (cut) qkv_tokenizer_cut(NULL, encoding, cut);
        if (encoding->n != (int64_t)json_array_size(ids))
            fail_msg("case %zu: %d tokens, not %zu", i, (int)encoding->n, json_array_size(ids));
        for (int64_t t = 0; t < encoding->n; t++) {
            const json_int_t id = json_integer_value(json_array_get(ids, (size_t)t));
            const json_int_t type = json_integer_value(json_array_get(types, (size_t)t));
            if (encoding->ids[t] != id || encoding->types[t] != type)
                fail_msg("case %zu: token %d is %d of type %d, not %d of type %d", i, (int)t,
                         encoding->ids[t], encoding->types[t], (int)id, (int)type);
        }
        qkv_encoding_free(encoding);
    }
}

/* ---- All code points ------------------------------------------------------------------------- */

static int is_one(const char *before, int32_t code) {
    char text[8];
    size_t n = strlen(before);
    memcpy(text, before, n);
    n += qkvi_utf8_put(code, text + n);
    return qkvi_gpt2_word(text, n) == n;
}

static char class_of(int32_t code) {
    if (is_one("a", code)) return 'L';
    if (is_one("1", code)) return 'N';
    return is_one("!", code) ? 'O' : 'S';
}

static void test_classes(void **state) {
    (void)state;
    size_t n_bytes = 0;
    int n_different = 0, n = 0;
    char *table = inflated(FOLDER "/classes.z", &n_bytes);
    for (char *at = table; *at;) {
        const int32_t first = (int32_t)strtol(at, &at, 16), last = (int32_t)strtol(at + 1, &at, 16);
        for (int32_t code = first; code <= last; code++, n++) {
            const char word = qkvi_char_is_word(code) ? 'w' : '-', class = class_of(code);
            if (class == at[1] && word == at[2]) continue;
            if (n_different++ < 20)
                print_message("U+%04X is %c%c, not %.2s\n", (unsigned)code, class, word, at + 1);
        }
        at += 4;
    }
    free(table);
    assert_int_equal(n, 0x110000 - 0x800);
    assert_int_equal(n_different, 0);
}

int main(int argc, char **argv) {
    if (argc > 1) path = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
