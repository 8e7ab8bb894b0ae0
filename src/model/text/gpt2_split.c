/**
 * The first of these that matches (GPT-2, encoder.py), written out:
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * Every character is a letter, a number, white space or something else, so after the contractions a
 * word is a run of one group with at most one space before it; and a run of white space leaves its
 * last character to what follows, unless it is the only one. A run is read once and given back by
 * at most one character, so that time is linear.
 */
#include "model/text/gpt2_split.h"

#include "model/text/unicode.h"

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
