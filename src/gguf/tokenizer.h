/**
 * tokenizer.json, tokenizer_config.json and generation_config.json of a GGUF file's vocabulary, so
 * that one reader (text/) decides for both. A GGUF file does not have which normaliser and which
 * words Hugging Face's files had: they follow from the name in tokenizer.ggml.pre, and one that is
 * not known is refused.
 */
#ifndef QKVI_GGUF_TOKENIZER_H
#define QKVI_GGUF_TOKENIZER_H

#include <jansson.h>

#include "gguf/vocab.h"

/** Texts of the files, in memory; zeros at first. */
typedef struct qkvi_gguf_texts {
    qkvi_bytes tokenizer;
    json_t *settings;   /* tokenizer_config.json */
    json_t *generation; /* generation_config.json */
    bool guesses_case;  /* a BERT's texts are put in lower case because its vocabulary is */
} qkvi_gguf_texts;

/**
 * Also adds the ids of special tokens to config.json. gemma: merges are in the order of ids.
 * FORMAT, LIMIT, UNSUPPORTED, MEMORY; texts may be freed also then.
 */
qkv_status qkvi_gguf_texts_make(const qkvi_gguf_keys *keys, const char *arch, json_t *config,
                                qkvi_gguf_texts *texts);
void qkvi_gguf_texts_free(qkvi_gguf_texts *texts);

#endif
