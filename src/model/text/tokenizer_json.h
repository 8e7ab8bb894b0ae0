/** What the readers of the kinds of tokenizer.json share. */
#ifndef QKVI_TEXT_TOKENIZER_JSON_H
#define QKVI_TEXT_TOKENIZER_JSON_H

#include <jansson.h>

#include "model/store/json.h"
#include "model/store/json_cursor.h"
#include "model/text/settings.h"
#include "model/text/tokenizer.h"
#include "model/text/tokenizer_words.h"

/** For the values of a tokenizer.json beside its long lists, and for vocab.json beside other files: half a
 * million tokens fit. What is refused costs less than a second and 100 MB. */
extern const qkvi_json_limits qkvi_json_limits_tokenizer;

/** The file being read: a tokenizer.json, or the vocabulary of other files. */
typedef struct qkvi_tokenizer_reader {
    const char *name;
    const json_t *root;
    qkv_tokenizer *tokenizer; /* made by the reader of its kind */
    qkv_error *error;
    int lower_first;                   /* of the files' */
    const qkvi_tokenizer_words *words; /* the long lists of root; NULL: it has all */
} qkvi_tokenizer_reader;

/** The reader of the tokenizer.json of settings. */
qkvi_tokenizer_reader qkvi_tokenizer_reader_of(const qkvi_settings *settings, const json_t *root,
                                               qkv_tokenizer *tokenizer);

/** Reads a tokenizer.json, with the small files beside it. *tokenizer is NULL on error. */
qkv_status qkvi_tokenizer_read_json(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                                    qkv_error *error);
/** The same of a vocab.txt: WordPiece; of a vocab.json and a merges.txt: byte-level BPE. */
qkv_status qkvi_tokenizer_read_vocab(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                                     qkv_error *error);
qkv_status qkvi_tokenizer_read_bpe(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                                   qkv_error *error);

/* The tokenizers that a class makes anew, of the vocabulary of a tokenizer.json (root) or, where root is
 * NULL, of the files for it. *tokenizer is NULL on error. */
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

/** "FILE: …", as printf has it; is the status. */
#define QKVI_TOKENIZER_FAIL(r, status, ...)                                                        \
    qkvi_file_fail((r)->error, (status), (r)->name, __VA_ARGS__)
/** The fields of an object, for qkvi_json_need_… and _take_…. */
qkvi_json_reader qkvi_tokenizer_fields(const qkvi_tokenizer_reader *r, const char *path,
                                       const json_t *object);

/** UNSUPPORTED: PART "TYPE" is not supported. */
qkv_status qkvi_tokenizer_refuse(const qkvi_tokenizer_reader *r, const char *part,
                                 const char *type);

/** FORMAT: a list that is read by its bytes breaks its format there. */
qkv_status qkvi_tokenizer_broken(const qkvi_tokenizer_reader *r, const char *path,
                                 const qkvi_json_cursor *at);

/** A part of the file with its type; absent or null parts are refused as "null". */
qkv_status qkvi_tokenizer_part(const qkvi_tokenizer_reader *r, const char *part,
                               const json_t **object, const char **type);

/**
 * The normalizer: *last is the one that is not Lowercase, NULL if there is none; what Lowercase says comes
 * first. *lowers: 1 if there is one. Others before the last are refused.
 */
qkv_status qkvi_tokenizer_normalizer(const qkvi_tokenizer_reader *r, const json_t **last,
                                     int *lowers);

/** The switches of an added token, those that are there: special, lstrip, …. Unless the file says
 * otherwise a token is normalised if it is not special. */
qkv_status qkvi_tokenizer_take_flags(const qkvi_json_reader *token, unsigned *flags);

/** Gives a token of a vocabulary its id; path is for messages. FORMAT, LIMIT, MEMORY. */
qkv_status qkvi_tokenizer_add_word(const qkvi_tokenizer_reader *r, const char *path,
                                   const char *token, size_t n_bytes, int64_t id);
/** The object {"token": id, …} as the vocabulary of the tokenizer. path is for messages. */
qkv_status qkvi_tokenizer_read_ids(const qkvi_tokenizer_reader *r, const char *path,
                                   const json_t *vocab);

/** The model of a tokenizer.json, which must be of a type; and its vocabulary, which is sealed. */
qkv_status qkvi_tokenizer_model(const qkvi_tokenizer_reader *r, const char *type,
                                const json_t **model);
qkv_status qkvi_tokenizer_read_words(const qkvi_tokenizer_reader *r, const json_t *model);
/** FORMAT: a sealed vocabulary has a token twice. */
qkv_status qkvi_tokenizer_check_twice(const qkvi_tokenizer_reader *r);
/** model.unk_token becomes *id and the unknown token. FORMAT: the vocabulary lacks it. */
qkv_status qkvi_tokenizer_set_unk(const qkvi_tokenizer_reader *r, const char *unk, int32_t *id);
/** What the file puts around a text, after the tokens were added. */
qkv_status qkvi_tokenizer_read_post_processor(const qkvi_tokenizer_reader *r);
/** The vocabulary and the merges of vocab.json and merges.txt; in bpe_words.c. */
qkv_status qkvi_bpe_read_files(const qkvi_text_files *files, qkv_tokenizer *tokenizer,
                               qkv_error *error);
/** The merges of a BPE model, and their end; in bpe_words.c. */
qkv_status qkvi_bpe_read_merges(const qkvi_tokenizer_reader *r, const json_t *model);

/**
 * Fills the templates of a tokenizer whose vocabularies are sealed. name is the file's, for
 * messages. UNSUPPORTED for a type that is not implemented; FORMAT;
 * LIMIT.
 */
qkv_status qkvi_post_processor_read(const char *name, const json_t *object, const char *type,
                                    qkv_tokenizer *tokenizer, qkv_error *error);

/** added_tokens of tokenizer.json. NULL without memory. */
json_t *qkvi_added_tokens_json(const qkv_tokenizer *tokenizer);

#endif
