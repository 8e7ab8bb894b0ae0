/**
 * Reading fields of a tokenizer.json, or of other files with a vocabulary, and refusing them: for
 * the readers of all kinds of tokenizers.
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
 * Limits for a tokenizer.json without its long lists, and for a vocab.json: half a million tokens
 * are within them. Refusing a file costs less than a second and 100 MB.
 */
extern const qkvi_json_limits qkvi_json_limits_tokenizer;

/** The file being read: a tokenizer.json, or another file with a vocabulary. */
typedef struct qkvi_tokenizer_reader {
    const char *name;
    const json_t *root;
    qkv_tokenizer *tokenizer; /* made by the reader of its kind */
    qkv_error *error;
    int lower_first;                   /* of qkvi_text_files */
    const qkvi_tokenizer_words *words; /* long lists that root lacks; NULL: it has all */
} qkvi_tokenizer_reader;

/** The reader of the tokenizer.json of settings. */
qkvi_tokenizer_reader qkvi_tokenizer_reader_of(const qkvi_settings *settings, const json_t *root,
                                               qkv_tokenizer *tokenizer);

/** Sets the message "FILE: …" as printf does; its value is the status. */
#define QKVI_TOKENIZER_FAIL(r, status, ...)                                                        \
    qkvi_file_fail((r)->error, (status), (r)->name, __VA_ARGS__)
/** The fields of an object, for qkvi_json_need_… and _take_…. */
qkvi_json_reader qkvi_tokenizer_fields(const qkvi_tokenizer_reader *r, const char *path,
                                       const json_t *object);

/** UNSUPPORTED: PART "TYPE" is not supported. */
qkv_status qkvi_tokenizer_refuse(const qkvi_tokenizer_reader *r, const char *part,
                                 const char *type);

/** FORMAT: a list that is read without jansson has a syntax error at `at`. */
qkv_status qkvi_tokenizer_broken(const qkvi_tokenizer_reader *r, const char *path,
                                 const qkvi_json_cursor *at);

/** Finds a part of the file and its type; an absent part, or null, is refused as "null". */
qkv_status qkvi_tokenizer_part(const qkvi_tokenizer_reader *r, const char *part,
                               const json_t **object, const char **type);

/**
 * Reads the normalizer: null, Lowercase, another one, or Lowercase and then another one; anything
 * else is refused. *last: the other one, or NULL. *lowers: 1 if there is Lowercase, or with
 * lower_first.
 */
qkv_status qkvi_tokenizer_normalizer(const qkvi_tokenizer_reader *r, const json_t **last,
                                     int *lowers);

/**
 * Takes the switches of an added token that are there: special, lstrip, …. The default of
 * `normalized` is that the token is not special.
 */
qkv_status qkvi_tokenizer_take_flags(const qkvi_json_reader *token, unsigned *flags);

/**
 * Reads a special token: a string, or an object with its switches. It is special if the object says
 * so, or if is_special. FORMAT.
 */
qkv_status qkvi_settings_token(const char *file, const char *field, const json_t *value,
                               int is_special, qkvi_named_token *token, qkv_error *error);

/** Finds the model of a tokenizer.json, which must have this type. */
qkv_status qkvi_tokenizer_model(const qkvi_tokenizer_reader *r, const char *type,
                                const json_t **model);

#endif
