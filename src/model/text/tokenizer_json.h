/** What the readers of the kinds of tokenizer.json share. */
#ifndef QKVI_TEXT_TOKENIZER_JSON_H
#define QKVI_TEXT_TOKENIZER_JSON_H

#include "model/store/json.h"
#include "model/text/tokenizer.h"

/** For tokenizer.json, and vocab.json beside other files: half a million tokens fit. What is refused
 * costs less than a second and 100 MB. */
extern const qkvi_json_limits qkvi_json_limits_tokenizer;

/** The file being read. */
typedef struct qkvi_tokenizer_reader {
    const char *name;
    const json_t *root;
    qkv_tokenizer *tokenizer; /* made by the reader of its kind */
    qkv_error *error;
} qkvi_tokenizer_reader;

/** Makes the tokenizer and reads model, normalizer and pre_tokenizer; ends with
 * qkvi_tokenizer_seal_model. Registered in tokenizer_json.c. */
typedef qkv_status qkvi_tokenizer_read_kind(qkvi_tokenizer_reader *r);
qkvi_tokenizer_read_kind qkvi_wordpiece_read_json;
qkvi_tokenizer_read_kind qkvi_bpe_read_json;

/** The fields of an object, for qkvi_json_need_… and _take_…. */
qkvi_json_reader qkvi_tokenizer_fields(const qkvi_tokenizer_reader *r, const char *path,
                                       const json_t *object);

/** UNSUPPORTED: PART "TYPE" is not supported. */
qkv_status qkvi_tokenizer_refuse(const qkvi_tokenizer_reader *r, const char *part,
                                 const char *type);

/** A part of the file with its type; absent or null parts are refused as "null". */
qkv_status qkvi_tokenizer_part(const qkvi_tokenizer_reader *r, const char *part,
                               const json_t **object, const char **type);

/** A token of pieces: checks id and length; FORMAT if the id is taken. path is for messages. */
qkv_status qkvi_tokenizer_add(const qkvi_tokenizer_reader *r, qkvi_pieces *pieces, const char *path,
                              const char *token, size_t n_bytes, int64_t id);

/** The switches of an added token, those that are there: special, normalized, lstrip, …. */
qkv_status qkvi_tokenizer_take_flags(const qkvi_json_reader *token, unsigned *flags);

/** An added token, after the vocabulary was sealed: FORMAT where they disagree. */
qkv_status qkvi_tokenizer_add_added(const qkvi_tokenizer_reader *r, const char *path,
                                    const char *content, int64_t id, unsigned flags);

/** The object {"token": id, …} as the vocabulary of the tokenizer. path is for messages. */
qkv_status qkvi_tokenizer_read_ids(const qkvi_tokenizer_reader *r, const char *path,
                                   const json_t *vocab);

#endif
