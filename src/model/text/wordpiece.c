/**
 * Greedy longest match (Song et al. 2021, section 2): tokens after the first carry the continuation
 * mark, so they are looked for among the tokens that begin with it. Every match is a whole number
 * of characters, because tokens and words are both valid UTF-8. A word costs at most max_chars
 * walks, each no longer than the longest token.
 */
#include "model/text/wordpiece.h"

static size_t unknown(const qkvi_wordpiece *model, const qkvi_word *word, qkvi_word_piece *out) {
    out[0] = (qkvi_word_piece){ model->unk, word->begin, word->end };
    return 1;
}

/* The raw bytes of characters [first, last), made to follow those of the piece before. */
static void set_range(qkvi_word_piece *piece, const qkvi_word_char *chars, uint32_t first,
                      uint32_t last, uint32_t previous_end) {
    uint32_t begin = chars[first].begin, end = chars[first].end;
    for (uint32_t i = first + 1; i < last; i++) { /* marks may have been reordered */
        if (chars[i].begin < begin) begin = chars[i].begin;
        if (chars[i].end > end) end = chars[i].end;
    }
    piece->begin = begin > previous_end ? begin : previous_end;
    piece->end = end > piece->begin ? end : piece->begin;
}

size_t qkvi_wordpiece_split(const qkvi_wordpiece *model, const qkvi_word *word,
                            qkvi_word_piece *out) {
    if (word->n_chars > model->max_chars) return unknown(model, word, out);
    const qkvi_prefix whole = { 0, model->pieces.n_sorted, 0 };
    size_t n = 0;
    uint32_t character = 0, previous_end = word->begin;
    for (uint32_t at = 0; at < word->n_bytes;) {
        size_t length = 0;
        const int32_t id = qkvi_pieces_longest(&model->pieces, n == 0 ? whole : model->continuing,
                                               word->bytes + at, word->n_bytes - at, &length);
        if (id < 0) return unknown(model, word, out);
        const uint32_t first = character;
        at += (uint32_t)length;
        while (character < word->n_chars && word->chars[character].offset < at) character++;
        out[n].id = id;
        set_range(&out[n], word->chars, first, character, previous_end);
        previous_end = out[n++].end;
    }
    return n;
}
