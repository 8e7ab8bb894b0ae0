/**
 * The fields of a tokenizer.json, or of a vocabulary of other files, as the readers of all kinds
 * take them: what is there, of which type, and the refusals.
 */
#ifndef QKVI_TEXT_TOKENIZER_FIELDS_H
#define QKVI_TEXT_TOKENIZER_FIELDS_H

#include <jansson.h>

#include "files/json.h"
#include "files/json_cursor.h"
#include "text/settings.h"
#include "text/tokenizer.h"
#include "text/tokenizer_words.h"

/**
 * For the values of a tokenizer.json beside its long lists, and for vocab.json beside other files:
 * half a million tokens fit. What is refused costs less than a second and 100 MB.
 */
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
 * The normalizer: *last is the one that is not Lowercase, NULL if there is none; what Lowercase
 * says comes first. *lowers: 1 if there is one. Others before the last are refused.
 */
qkv_status qkvi_tokenizer_normalizer(const qkvi_tokenizer_reader *r, const json_t **last,
                                     int *lowers);

/** The switches of an added token, those that are there: special, lstrip, …. Unless the file says
 * otherwise a token is normalised if it is not special. */
qkv_status qkvi_tokenizer_take_flags(const qkvi_json_reader *token, unsigned *flags);

/** A special token as files have it: a string, or an object with its switches, which is special
 * if it says so or must be. FORMAT. */
qkv_status qkvi_settings_token(const char *file, const char *field, const json_t *value,
                               int is_special, qkvi_named_token *token, qkv_error *error);

/** The model of a tokenizer.json, which must be of a type. */
qkv_status qkvi_tokenizer_model(const qkvi_tokenizer_reader *r, const char *type,
                                const json_t **model);

#endif
