/** Byte-level BPE from the files that its authors publish: vocab.json and merges.txt. */
#ifndef QKVI_TEXT_BPE_FILES_H
#define QKVI_TEXT_BPE_FILES_H

#include "qkv/model.h"

/** A file: its name for messages and its bytes; bytes NULL: there is none. */
typedef struct qkvi_bpe_file {
    const char *name, *bytes;
    size_t n_bytes;
} qkvi_bpe_file;

/** The files of a folder. vocab and merges are there; the others say what stands around texts. */
typedef struct qkvi_bpe_files {
    qkvi_bpe_file vocab, merges;
    qkvi_bpe_file tokenizer_config, special_tokens_map, added_tokens, config;
} qkvi_bpe_files;

/** *tokenizer is NULL on error. FORMAT, LIMIT, UNSUPPORTED, MEMORY. */
qkv_status qkvi_tokenizer_read_bpe(const qkvi_bpe_files *files, qkv_tokenizer **tokenizer,
                                   qkv_error *error);

#endif
