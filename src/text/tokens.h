/** The list of tokens from which an encoding is made. */
#ifndef QKVI_TEXT_TOKENS_H
#define QKVI_TEXT_TOKENS_H

#include "qkv/tokenizer.h"

typedef struct qkvi_token {
    int32_t id;
    uint8_t type, special;
    uint32_t begin, end;
} qkvi_token;

typedef struct qkvi_tokens {
    qkvi_token *tokens;
    int64_t n;
    size_t capacity;
    uint8_t type; /* of the tokens that are pushed: the type of their text */
} qkvi_tokens;

/** Appends a token. MEMORY. */
qkv_status qkvi_tokens_push(qkvi_tokens *list, int32_t id, uint32_t begin, uint32_t end);
/** The same for a special token. */
qkv_status qkvi_tokens_push_special(qkvi_tokens *list, int32_t id, uint32_t begin, uint32_t end);

/**
 * The index of the first token of the second of two texts; the number of tokens if there is one
 * text. It is not found by types, which are all 0 for many models. In encode.c.
 */
int64_t qkvi_encoding_second(const qkv_encoding *encoding);

/** Makes an encoding of the list. MEMORY. */
qkv_status qkvi_tokens_encoding(const qkvi_tokens *list, qkv_encoding **encoding);

#endif
