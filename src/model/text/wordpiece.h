/** WordPiece: a normalised word as the longest tokens of a vocabulary, from the left. */
#ifndef QKVI_TEXT_WORDPIECE_H
#define QKVI_TEXT_WORDPIECE_H

#include "model/text/normalize.h"
#include "model/text/tokenizer.h"

enum {
    QKVI_WORDPIECE_MAX_CHARS = 100, /* of a word, unless a file says otherwise */
    QKVI_WORDPIECE_LIMIT_CHARS = 65536
};

/** The model of a tokenizer of this kind. */
typedef struct qkvi_wordpiece {
    qkvi_bert_rules rules;
    qkvi_prefix continuing; /* the tokens that begin with "##" */
    char mark[16];          /* "##" */
    int32_t unk;
    int cleanup; /* the decoder closes spaces before punctuation */
    uint32_t max_chars;
} qkvi_wordpiece;

/** A token of a word and the bytes of the raw text that it stands for. */
typedef struct qkvi_word_piece {
    int32_t id;
    uint32_t begin, end;
} qkvi_word_piece;

/**
 * Splits a word into out, which has room for max_chars pieces (at least 1); returns how many.
 *
 * A word with more than max_chars code points, or with a place where no token fits, is one [UNK].
 * Ranges follow one another without overlap: where several tokens come from one character of the
 * raw text (the jamo of a Hangul syllable), the first has its bytes and the others an empty range
 * behind it.
 */
size_t qkvi_wordpiece_split(const qkvi_pieces *pieces, const qkvi_wordpiece *model,
                            const qkvi_word *word, qkvi_word_piece *out);

extern const qkvi_tokenizer_kind qkvi_wordpiece_kind;

/** BERT's own: all switches on, "##", 100 characters, no tokens. NULL without memory. */
qkv_tokenizer *qkvi_wordpiece_new(void);

/** Decoding, in wordpiece_decode.c. */
qkv_status qkvi_wordpiece_decode(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                                 qkvi_growing *text);

/** The model of a tokenizer, which must be of this kind. */
qkvi_wordpiece *qkvi_wordpiece_of(const qkv_tokenizer *tokenizer);

#endif
