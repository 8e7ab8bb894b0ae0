/*
 * Cutting an encoding: see qkv/model.h. Time is linear in the tokens, so that a line of a megabyte
 * is cut as easily as a word.
 */
#include <string.h>

#include "qkv/model.h"

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

/* [CLS] a [SEP] or [CLS] a [SEP] b [SEP]: the place of the first inserted [SEP]. */
static int64_t first_separator(const qkv_encoding *encoding) {
    int64_t i = 0;
    while (i < encoding->n && encoding->types[i] == 0) i++;
    return i - 1;
}

void qkv_encoding_cut(qkv_encoding *encoding, int64_t max_len) {
    const int64_t excess = encoding->n - max_len, middle = first_separator(encoding);
    const int64_t len_a = middle > 1 ? middle - 1 : 0;
    const int64_t len_b = encoding->n - middle > 2 ? encoding->n - middle - 2 : 0;
    int64_t a = len_a, b = len_b;
    for (int64_t i = 0; i < excess && a + b > 0; i++) {
        if (a > b)
            a--;
        else
            b--;
    }
    if (b < len_b) remove_tokens(encoding, middle + 1 + b, len_b - b);
    if (a < len_a) remove_tokens(encoding, 1 + a, len_a - a);
}
