/** What kind of token each place of an input holds, as statistics and labels see it. */
#ifndef QKVI_INSPECT_TOKENS_H
#define QKVI_INSPECT_TOKENS_H

#include "qkv/tokenizer.h"

typedef enum qkvi_token_kind {
    QKVI_TOKEN_TEXT, /* words and pieces of words; [MASK] and [UNK] too, which stand for words */
    QKVI_TOKEN_PUNCTUATION,
    QKVI_TOKEN_CLS,
    QKVI_TOKEN_SEP,
    QKVI_TOKEN_PAD,
    QKVI_N_TOKEN_KINDS
} qkvi_token_kind;

qkvi_token_kind qkvi_token_kind_of(const qkv_tokenizer *tokenizer, int32_t id);

/** The same of a token's name, of any model: [CLS], [SEP], [PAD], or <s>, </s>, <pad>. */
qkvi_token_kind qkvi_token_kind_of_name(const char *name);

/** 1 if the word (any bytes, compared in lower-case ASCII) is in our list of function words. */
int qkvi_is_function_word(const char *word, size_t n_bytes);

#endif
