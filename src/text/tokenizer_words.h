/**
 * The long lists of a tokenizer.json, model.vocab and model.merges, are read without jansson, whose
 * values would take 600 MB for a vocabulary of 262,144 tokens. jansson parses a copy of the file in
 * which the two lists are empty.
 */
#ifndef QKVI_TEXT_TOKENIZER_WORDS_H
#define QKVI_TEXT_TOKENIZER_WORDS_H

#include "files/json.h"

/** Where the lists are in text; end 0: a list was not found, and is in the values of jansson. */
typedef struct qkvi_tokenizer_words {
    const char *text;
    qkvi_json_span vocab, merges;
} qkvi_tokenizer_words;

enum { QKVI_TOKENIZER_MAX_BYTES = 64 << 20, QKVI_VOCAB_MAX_TOKENS = 1 << 20 };

/**
 * Finds the lists, and parses the rest. A list whose key is spelled with escapes is not found, and
 * must be within the limits of values. words points to bytes. *root as of qkvi_json_load. FORMAT;
 * LIMIT; MEMORY.
 */
qkv_status qkvi_tokenizer_words_load(const char *file, const char *bytes, size_t n_bytes,
                                     qkvi_tokenizer_words *words, json_t **root, qkv_error *error);

#endif
