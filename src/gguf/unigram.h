/** Unigram vocabularies of GGUF files (tokenizer.ggml.model "t5"), as parts of a tokenizer.json. */
#ifndef QKVI_GGUF_UNIGRAM_H
#define QKVI_GGUF_UNIGRAM_H

#include "gguf/vocab.h"

/**
 * Appends ,"normalizer":…,"model":{…}: pieces with their scores, and the map of characters of
 * SentencePiece. FORMAT for scores that are missing or not finite, and for a map that is no array
 * of bytes; LIMIT; MEMORY.
 */
qkv_status qkvi_gguf_put_unigram(const qkvi_gguf_vocab *vocab, qkvi_bytes *out);

#endif
