/* Words of byte-level BPE: see words.h. */
#include "text/words.h"

#include "files/utf8.h"
#include "text/unicode.h"

const char qkvi_gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

#define MODERN(numbers)                                                                            \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers                          \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

const char qkvi_llama3_pattern[] = MODERN("\\p{N}{1,3}");
const char qkvi_qwen_pattern[] = MODERN("\\p{N}");

/* ---- GPT-2 ----------------------------------------------------------------------------------- */

/*
 * The first of these that matches (GPT-2, encoder.py), written out:
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * Every character is a letter, a number, white space or something else, so after the contractions a
 * word is a run of one group with at most one space before it; and a run of white space leaves its
 * last character to what follows, unless it is the only one. A run is read once and given back by
 * at most one character, so that time is linear.
 */

static size_t contraction(const char *text, size_t n) {
    static const char *const endings[] = { "s", "t", "re", "ve", "m", "ll", "d" };
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const size_t length = strlen(endings[i]);
        if (n > length && memcmp(text + 1, endings[i], length) == 0) return 1 + length;
    }
    return 0;
}

static qkvi_char_group group_at(const char *text, size_t n, size_t *length) {
    int32_t code = 0;
    *length = qkvi_utf8_next(text, n, &code);
    return qkvi_char_group_of(code);
}

/* The end of the run of a group that begins at `at`; *last is where its last character does. */
static size_t run_end(const char *text, size_t n, size_t at, qkvi_char_group group, size_t *last) {
    while (at < n) {
        size_t length;
        if (group_at(text + at, n - at, &length) != group) break;
        *last = at;
        at += length;
    }
    return at;
}

size_t qkvi_gpt2_word(const char *text, size_t n) {
    size_t length = text[0] == '\'' ? contraction(text, n) : 0, last = 0;
    if (length > 0) return length;
    const size_t begin = text[0] == ' ' && n > 1;
    const qkvi_char_group group = group_at(text + begin, n - begin, &length);
    if (group != QKVI_GROUP_SPACE) return run_end(text, n, begin + length, group, &last);
    const size_t end = run_end(text, n, 0, QKVI_GROUP_SPACE, &last);
    return end == n || last == 0 ? end : last;
}

/* ---- Llama 3, Qwen --------------------------------------------------------------------------- */

/*
 * The first of these that matches:
 *
 *     1  an apostrophe and s, t, re, ve, m, ll, d in either case
 *     2  letters, one character before them allowed that is no \r, \n, letter or number
 *     3  at most max_digits numbers
 *     4  others, one space before them allowed, and all \r and \n behind them
 *     5  of white space, what ends with its last \r or \n
 *     6  white space without its last character, but whole at the end of the text, or if it is one
 *
 * Without case, s is also U+017F, the long s: no other letter of these endings has another form.
 */

static int is_newline(char c) { return c == '\r' || c == '\n'; }

static size_t any_case_contraction(const char *text, size_t n) {
    char lower[3] = { 0 };
    for (size_t i = 1; i < n && i < 3; i++) lower[i] = (char)(text[i] | 0x20);
    if (n >= 3 && memcmp(text + 1, "\xC5\xBF", 2) == 0) return 3;
    if (n >= 2 && lower[1] && strchr("stmd", lower[1]) && text[1] >= 'A') return 2;
    const int is_pair = memcmp(lower + 1, "re", 2) == 0 || memcmp(lower + 1, "ve", 2) == 0 ||
                        memcmp(lower + 1, "ll", 2) == 0;
    return n >= 3 && is_pair ? 3 : 0;
}

/* Where the white space that begins the text gives back what follows. */
static size_t space_word(const char *text, size_t n) {
    size_t last = 0, newline = 0;
    const size_t end = run_end(text, n, 0, QKVI_GROUP_SPACE, &last);
    for (size_t i = end; i > 0 && newline == 0; i--)
        if (is_newline(text[i - 1])) newline = i;
    if (newline > 0) return newline;
    return end == n || last == 0 ? end : last;
}

static size_t numbers_word(const char *text, size_t n, int max_digits) {
    size_t at = 0, length = 0;
    for (int i = 0; i < max_digits && at < n; i++, at += length)
        if (group_at(text + at, n - at, &length) != QKVI_GROUP_NUMBER) break;
    return at;
}

static size_t others_word(const char *text, size_t n, size_t at) {
    size_t last = 0;
    at = run_end(text, n, at, QKVI_GROUP_OTHER, &last);
    while (at < n && is_newline(text[at])) at++;
    return at;
}

size_t qkvi_modern_word(const char *text, size_t n, int max_digits) {
    size_t length = 0, second = 0, last = 0;
    const size_t ending = text[0] == '\'' ? any_case_contraction(text, n) : 0;
    if (ending > 0) return ending;
    const qkvi_char_group first = group_at(text, n, &length);
    const qkvi_char_group next =
        length < n ? group_at(text + length, n - length, &second) : QKVI_GROUP_SPACE;
    if (first == QKVI_GROUP_NUMBER) return numbers_word(text, n, max_digits);
    if (first == QKVI_GROUP_LETTER || (next == QKVI_GROUP_LETTER && !is_newline(text[0])))
        return run_end(text, n, length, QKVI_GROUP_LETTER, &last);
    if (first == QKVI_GROUP_OTHER) return others_word(text, n, 0);
    if (text[0] == ' ' && next == QKVI_GROUP_OTHER) return others_word(text, n, 1);
    return space_word(text, n);
}

/* ---- CLIP ------------------------------------------------------------------------------------ */

/*
 * The first of these that matches:
 *
 *     <\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+
 */
size_t qkvi_clip_word(const char *text, size_t n) {
    static const char *const marks[] = { "<|startoftext|>", "<|endoftext|>" };
    for (int m = 0; m < 2; m++) {
        const size_t n_mark = strlen(marks[m]);
        if (n >= n_mark && memcmp(text, marks[m], n_mark) == 0) return n_mark;
    }
    size_t length = text[0] == '\'' ? contraction(text, n) : 0, last = 0;
    if (length > 0) return length;
    const qkvi_char_group group = group_at(text, n, &length);
    return group == QKVI_GROUP_NUMBER ? length : run_end(text, n, length, group, &last);
}

size_t qkvi_spaces(const char *text, size_t n) {
    size_t last = 0;
    return run_end(text, n, 0, QKVI_GROUP_SPACE, &last);
}

/* ---- BLOOM ----------------------------------------------------------------------------------- */

/* In this class, which is of characters that are none of these, ( | and ) are characters, too. */
const char qkvi_bloom_pattern[] = " ?[^(\\s|[.,!?\xE2\x80\xA6\xE3\x80\x82\xEF\xBC\x8C\xE3\x80\x81"
                                  "\xE0\xA5\xA4\xDB\x94\xD8\x8C])]+";

static bool is_bloom_mark(int32_t code) {
    static const int32_t marks[] = { '(',    ')',    '|',    '.',    ',',    '!',    '?',
                                     0x2026, 0x3002, 0xFF0C, 0x3001, 0x0964, 0x06D4, 0x060C };
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (code == marks[i]) return true;
    return false;
}

static bool is_in_bloom_word(const char *text, size_t n, size_t *length) {
    int32_t code = 0;
    *length = qkvi_utf8_next(text, n, &code);
    return qkvi_char_group_of(code) != QKVI_GROUP_SPACE && !is_bloom_mark(code);
}

/*
 * A run of characters that the pattern has, with at most one space before it; or what is before the
 * next such word, whole.
 */
size_t qkvi_bloom_word(const char *text, size_t n) {
    size_t at = 0, length = 0;
    while (at < n && !is_in_bloom_word(text + at, n - at, &length)) at += length;
    if (at == n) return n;
    const size_t gap = at > 0 && text[at - 1] == ' ' ? at - 1 : at;
    if (gap > 0) return gap;
    while (at < n && is_in_bloom_word(text + at, n - at, &length)) at += length;
    return at;
}

/* ---- Digits ---------------------------------------------------------------------------------- */

static int is_digit_at(const char *text, size_t n, size_t *length) {
    int32_t code = 0;
    *length = qkvi_utf8_next(text, n, &code);
    return qkvi_char_is_numeric(code);
}

size_t qkvi_digits_word(const char *text, size_t n, int each) {
    size_t length = 0;
    const int is_digit = is_digit_at(text, n, &length);
    size_t at = length;
    if (is_digit && each) return at;
    while (at < n && is_digit_at(text + at, n - at, &length) == is_digit) at += length;
    return at;
}
