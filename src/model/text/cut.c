/*
 * Cutting an encoding: see qkv/tokenizer.h. Time is linear in the tokens, so that a line of a megabyte
 * is cut as easily as a word.
 *
 * Of texts that have become as long, the one that was the shorter loses the next token, the first if
 * they were as long from the beginning (PyPI tokenizers, utils/truncation.rs, LongestFirst).
 *
 * The tokens of a text stand together. They end at an inserted token (special, of no bytes), where
 * the type changes, or where the bytes begin anew: two texts may have nothing between them.
 */

#include "model/text/tokenizer.h"

static void remove_tokens(qkv_encoding *encoding, int64_t at, int64_t count) {
    const size_t tail = (size_t)(encoding->n - at - count);
    memmove(encoding->ids + at, encoding->ids + at + count, tail * sizeof *encoding->ids);
    memmove(encoding->types + at, encoding->types + at + count, tail * sizeof *encoding->types);
    memmove(encoding->special + at, encoding->special + at + count,
            tail * sizeof *encoding->special);
    memmove(encoding->begin + at, encoding->begin + at + count, tail * sizeof *encoding->begin);
    memmove(encoding->end + at, encoding->end + at + count, tail * sizeof *encoding->end);
    encoding->n -= count;
}

static int is_inserted(const qkv_encoding *encoding, int64_t i) {
    return encoding->special[i] && encoding->begin[i] == encoding->end[i];
}

struct span {
    int64_t begin, length;
};

/* The next text at or behind a token; of length 0 if there is none. */
static struct span next_text(const qkv_encoding *encoding, int64_t at) {
    while (at < encoding->n && is_inserted(encoding, at)) at++;
    int64_t end = at < encoding->n ? at + 1 : at;
    while (end < encoding->n && !is_inserted(encoding, end) &&
           encoding->types[end] == encoding->types[at] &&
           encoding->begin[end] >= encoding->end[end - 1])
        end++;
    return (struct span){ at, end - at };
}

int64_t qkvi_encoding_second(const qkv_encoding *encoding) {
    const struct span first = next_text(encoding, 0);
    const struct span second = next_text(encoding, first.begin + first.length);
    return second.length > 0 ? second.begin : encoding->n;
}

/* Keeps `kept` tokens of a text. */
static void cut_span(qkv_encoding *encoding, struct span span, int64_t kept, int from_left) {
    const int64_t at = span.begin + (from_left ? 0 : kept);
    if (kept < span.length) remove_tokens(encoding, at, span.length - kept);
}

static void cut(qkv_encoding *encoding, int64_t max_len, int from_left) {
    if (!encoding || !encoding->ids || !encoding->types || !encoding->special || !encoding->begin ||
        !encoding->end)
        return;
    const int64_t excess = encoding->n - max_len;
    const struct span first = next_text(encoding, 0);
    const struct span second = next_text(encoding, first.begin + first.length);
    const int tie_takes_a = first.length <= second.length;
    int64_t a = first.length, b = second.length;
    for (int64_t i = 0; i < excess && a + b > 0; i++) {
        if (a > b || (a == b && tie_takes_a))
            a--;
        else
            b--;
    }
    cut_span(encoding, second, b, from_left);
    cut_span(encoding, first, a, from_left);
}

void qkv_tokenizer_cut(const qkv_tokenizer *tokenizer, qkv_encoding *encoding, int64_t max_len) {
    cut(encoding, max_len, tokenizer && tokenizer->cuts_left);
}
