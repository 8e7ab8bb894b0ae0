/** Kinds of tokens, for statistics and labels of heads. */
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

/** The kind by the name of a token: [CLS], [SEP], [PAD], or <s>, </s>, <pad>. */
qkvi_token_kind qkvi_token_kind_of_name(const char *name);

/** 1 if the word (any bytes, compared in lower-case ASCII) is in function_words.h. */
int qkvi_is_function_word(const char *word, size_t n_bytes);

#endif
