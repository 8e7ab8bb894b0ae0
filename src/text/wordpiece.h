/** WordPiece: a normalised word as the longest tokens of a vocabulary, from the left. */
#ifndef QKVI_TEXT_WORDPIECE_H
#define QKVI_TEXT_WORDPIECE_H

#include "text/normalize.h"
#include "text/tokenizer.h"

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

extern const qkvi_tokenizer_kind qkvi_wordpiece_kind;

/** BERT's own: all switches on, "##", 100 characters, no tokens. NULL without memory. */
qkv_tokenizer *qkvi_wordpiece_new(void);

/** The model of a tokenizer, which must be of this kind. */
qkvi_wordpiece *qkvi_wordpiece_of(const qkv_tokenizer *tokenizer);

#endif
