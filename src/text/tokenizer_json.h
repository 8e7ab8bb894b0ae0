/** What the readers of the kinds of tokenizer.json share. */
#ifndef QKVI_TEXT_TOKENIZER_JSON_H
#define QKVI_TEXT_TOKENIZER_JSON_H

#include "text/tokenizer_fields.h"

/** Reads a tokenizer.json, with the small files beside it. *tokenizer is NULL on error. */
qkv_status qkvi_tokenizer_read_json(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                                    qkv_error *error);
/** The same of a vocab.txt: WordPiece; of a vocab.json and a merges.txt: byte-level BPE. */
qkv_status qkvi_tokenizer_read_vocab(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                                     qkv_error *error);
qkv_status qkvi_tokenizer_read_bpe(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                                   qkv_error *error);

/*
 * The tokenizers that a class makes anew, of the vocabulary of a tokenizer.json (root) or, where
 * root is NULL, of the files for it. *tokenizer is NULL on error.
 */
qkv_status qkvi_bert_make(const qkvi_settings *settings, const json_t *root,
                          qkv_tokenizer **tokenizer);
qkv_status qkvi_bpe_make(const qkvi_settings *settings, const json_t *root,
                         qkv_tokenizer **tokenizer);
qkv_status qkvi_unigram_make(const qkvi_settings *settings, const json_t *root,
                             qkv_tokenizer **tokenizer);

/** Makes the tokenizer and reads model, normalizer and pre_tokenizer; ends with
 * qkvi_tokenizer_seal_model. Registered in tokenizer_json.c. */
typedef qkv_status qkvi_tokenizer_read_kind(qkvi_tokenizer_reader *r);
qkvi_tokenizer_read_kind qkvi_wordpiece_read_json;
qkvi_tokenizer_read_kind qkvi_bpe_read_json;
qkvi_tokenizer_read_kind qkvi_unigram_read_json;

/** Gives a token of a vocabulary its id; path is for messages. FORMAT, LIMIT, MEMORY. */
qkv_status qkvi_tokenizer_add_word(const qkvi_tokenizer_reader *r, const char *path,
                                   const char *token, size_t n_bytes, int64_t id);
/** The object {"token": id, …} as the vocabulary of the tokenizer. path is for messages. */
qkv_status qkvi_tokenizer_read_ids(const qkvi_tokenizer_reader *r, const char *path,
                                   const json_t *vocab);

/** The vocabulary of a model of tokenizer.json, which is sealed. */
qkv_status qkvi_tokenizer_read_words(const qkvi_tokenizer_reader *r, const json_t *model);
/** FORMAT: a sealed vocabulary has a token twice. */
qkv_status qkvi_tokenizer_check_twice(const qkvi_tokenizer_reader *r);
/** model.unk_token becomes *id and the unknown token. FORMAT: the vocabulary lacks it. */
qkv_status qkvi_tokenizer_set_unk(const qkvi_tokenizer_reader *r, const char *unk, int32_t *id);
/**
 * What the file puts around a text, after the tokens were added: fills the templates of a tokenizer
 * whose vocabularies are sealed. UNSUPPORTED for a type that is not implemented; FORMAT; LIMIT. In
 * post_processor.c.
 */
qkv_status qkvi_tokenizer_read_post_processor(const qkvi_tokenizer_reader *r);
/** The vocabulary and the merges of vocab.json and merges.txt; in bpe_words.c. */
qkv_status qkvi_bpe_read_files(const qkvi_text_files *files, qkv_tokenizer *tokenizer,
                               qkv_error *error);
/** The merges of a BPE model, and their end; in bpe_words.c. */
qkv_status qkvi_bpe_read_merges(const qkvi_tokenizer_reader *r, const json_t *model);

/** added_tokens of tokenizer.json. NULL without memory. */
json_t *qkvi_added_tokens_json(const qkv_tokenizer *tokenizer);

#endif
