/**
 * A model in GGUF files, as the files of a model folder that the other readers take: the texts of
 * config.json, generation_config.json, tokenizer.json and tokenizer_config.json, and tensors by the
 * names of transformers. Weights are computed as they are read: nothing of their size is allocated
 * here.
 */
#ifndef QKVI_GGUF_GGUF_H
#define QKVI_GGUF_GGUF_H

#include "files/safetensors.h"
#include "gguf/config.h"
#include "text/settings.h"

enum { QKVI_GGUF_WARNINGS = 3 };

typedef struct qkvi_gguf {
    qkvi_safetensors *weights;
    qkvi_text_file config, generation;
    qkvi_text_files tokenizer;
    qkvi_gguf_pooling pooling;
    char *warnings[QKVI_GGUF_WARNINGS]; /* fit to print; those that are there come first */
    struct qkvi_gguf_own *own;
} qkvi_gguf;

/** ARGUMENT, FORMAT, SHAPE, LIMIT, UNSUPPORTED, IO, MEMORY. *gguf is NULL on error. */
qkv_status qkvi_gguf_open(const char *path, qkvi_gguf **gguf, qkv_error *error);
/** The same of a whole file in memory, which must outlive it. */
qkv_status qkvi_gguf_open_memory(const char *name, const void *bytes, size_t n_bytes,
                                 qkvi_gguf **gguf, qkv_error *error);
void qkvi_gguf_close(qkvi_gguf *gguf);

/**
 * UNSUPPORTED, naming the tensor of the file, if a model did not use the tensor of that parameter.
 */
qkv_status qkvi_gguf_refuse_unused(const qkvi_gguf *gguf, const char *parameter, qkv_error *error);

#endif
