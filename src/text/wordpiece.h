/** WordPiece: splits a normalised word, from the left, into the longest tokens of a vocabulary. */
#ifndef QKVI_TEXT_WORDPIECE_H
#define QKVI_TEXT_WORDPIECE_H

#include "text/normalize.h"
#include "text/tokenizer.h"

enum {
    QKVI_WORDPIECE_MAX_CHARS = 100,    /* the default of max_chars */
    QKVI_WORDPIECE_LIMIT_CHARS = 65536 /* the most that a file may give */
};

/** The model of a tokenizer of this kind. */
typedef struct qkvi_wordpiece {
    qkvi_bert_rules rules;
    qkvi_prefix continuing; /* the tokens that begin with the mark */
    char mark[16];          /* of tokens that continue a word, "##" */
    int32_t unk;
    int cleanup;        /* the decoder removes spaces before punctuation */
    uint32_t max_chars; /* longer words are unk */
} qkvi_wordpiece;

/** A token of a word, and its range of the raw text. */
typedef struct qkvi_word_piece {
    int32_t id;
    uint32_t begin, end;
} qkvi_word_piece;

extern const qkvi_tokenizer_kind qkvi_wordpiece_kind;

/** Makes BERT's: all switches on, "##", 100 characters, no tokens. NULL without memory. */
qkv_tokenizer *qkvi_wordpiece_new(void);

/** The model of a tokenizer, which must be of this kind. */
qkvi_wordpiece *qkvi_wordpiece_of(const qkv_tokenizer *tokenizer);

#endif
