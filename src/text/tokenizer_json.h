/** Readers of tokenizer.json and of other files with vocabularies, and the parts they share. */
#ifndef QKVI_TEXT_TOKENIZER_JSON_H
#define QKVI_TEXT_TOKENIZER_JSON_H

#include "text/tokenizer_fields.h"

/** Reads a tokenizer.json, with the small files beside it. *tokenizer is NULL on error. */
qkv_status qkvi_tokenizer_read_json(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                                    qkv_error *error);
/** The same for a vocab.txt (WordPiece), and for vocab.json and merges.txt (byte-level BPE). */
qkv_status qkvi_tokenizer_read_vocab(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                                     qkv_error *error);
qkv_status qkvi_tokenizer_read_bpe(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                                   qkv_error *error);

/*
 * Make a tokenizer as its class in transformers makes it anew (settings.h), from the vocabulary of
 * a tokenizer.json (root) or, if root is NULL, of vocab.txt or vocab.json. *tokenizer is NULL on
 * error.
 */
qkv_status qkvi_bert_make(const qkvi_settings *settings, const json_t *root,
                          qkv_tokenizer **tokenizer);
qkv_status qkvi_bpe_make(const qkvi_settings *settings, const json_t *root,
                         qkv_tokenizer **tokenizer);
qkv_status qkvi_unigram_make(const qkvi_settings *settings, const json_t *root,
                             qkv_tokenizer **tokenizer);

/**
 * Makes the tokenizer of a tokenizer.json that is taken as it is: reads model, normalizer and
 * pre_tokenizer, and ends with qkvi_tokenizer_seal_model. tokenizer_json.c has the table of these.
 */
typedef qkv_status qkvi_tokenizer_read_kind(qkvi_tokenizer_reader *r);
qkvi_tokenizer_read_kind qkvi_wordpiece_read_json;
qkvi_tokenizer_read_kind qkvi_bpe_read_json;
qkvi_tokenizer_read_kind qkvi_unigram_read_json;

/** Adds a token to the vocabulary; path is for messages. FORMAT, LIMIT, MEMORY. */
qkv_status qkvi_tokenizer_add_word(const qkvi_tokenizer_reader *r, const char *path,
                                   const char *token, size_t n_bytes, int64_t id);
/** Adds the tokens of an object {"token": id, …}. path is for messages. */
qkv_status qkvi_tokenizer_read_ids(const qkvi_tokenizer_reader *r, const char *path,
                                   const json_t *vocab);

/** Reads the vocabulary of the model of a tokenizer.json, and seals it. */
qkv_status qkvi_tokenizer_read_words(const qkvi_tokenizer_reader *r, const json_t *model);
/** FORMAT if a sealed vocabulary has a token twice. */
qkv_status qkvi_tokenizer_check_twice(const qkvi_tokenizer_reader *r);
/** Sets *id and the role of unk, model.unk_token. FORMAT if it is not in the vocabulary. */
qkv_status qkvi_tokenizer_set_unk(const qkvi_tokenizer_reader *r, const char *unk, int32_t *id);
/**
 * Reads post_processor into the templates of a tokenizer, after qkvi_tokenizer_seal. UNSUPPORTED
 * for a type that is not implemented; FORMAT; LIMIT. In post_processor.c.
 */
qkv_status qkvi_tokenizer_read_post_processor(const qkvi_tokenizer_reader *r);
/** Reads vocabulary and merges from vocab.json and merges.txt; in bpe_words.c. */
qkv_status qkvi_bpe_read_files(const qkvi_text_files *files, qkv_tokenizer *tokenizer,
                               qkv_error *error);
/** Reads the merges of a BPE model, and ends them (qkvi_bpe_end_merges); in bpe_words.c. */
qkv_status qkvi_bpe_read_merges(const qkvi_tokenizer_reader *r, const json_t *model);

/** Makes added_tokens of a tokenizer.json to be written. NULL without memory. */
json_t *qkvi_added_tokens_json(const qkv_tokenizer *tokenizer);

#endif
