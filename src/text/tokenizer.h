/**
 * The insides of a qkv_tokenizer, which a reader of files fills, and which is read-only then.
 *
 * All kinds of tokenizers share this header, tokenizer.c and encode.c: ids and bytes of tokens,
 * added tokens, templates around a text, the arrays of an encoding. What differs is a table of
 * functions, the kind, and data that only these functions know, the model.
 */
#ifndef QKVI_TEXT_TOKENIZER_H
#define QKVI_TEXT_TOKENIZER_H

#include "files/base.h"
#include "qkv/tokenizer.h"
#include "text/added.h"
#include "text/chat.h"
#include "text/normalize.h"
#include "text/pieces.h"
#include "text/tokens.h"

enum { QKVI_NO_LIMIT = INT32_MAX, QKVI_TEMPLATE_MAX = 16, QKVI_N_ROLES = QKV_TOKEN_MASK + 1 };

/** An item of a template: a special token, or the place of a text. */
typedef struct qkvi_template_item {
    int32_t id; /* or QKVI_TEMPLATE_TEXT, QKVI_TEMPLATE_PAIR */
    uint8_t type;
} qkvi_template_item;

enum { QKVI_TEMPLATE_TEXT = -1, QKVI_TEMPLATE_PAIR = -2 };

typedef struct qkvi_template {
    int n;
    qkvi_template_item items[QKVI_TEMPLATE_MAX];
} qkvi_template;

/**
 * A kind of tokenizer: how a stretch of text without added tokens becomes tokens of the vocabulary.
 * One const table each: wordpiece.c.
 */
typedef struct qkvi_tokenizer_kind {
    const char *name;    /* model.type of a tokenizer.json */
    const char *decoder; /* decoder.type of a tokenizer.json */

    int may_be_bare;       /* a template may be the text alone, without special tokens */
    int encode_normalizes; /* encode does the same as normalize followed by encode_normal */

    /** Makes what depends on the sealed vocabulary. Nullable. */
    qkv_status (*seal)(qkv_tokenizer *tokenizer, qkv_error *error);

    /**
     * Makes the buffers for encoding one text, which finish frees; NULL without memory. Tokens are
     * pushed to list.
     */
    void *(*start)(const qkv_tokenizer *tokenizer, qkvi_tokens *list);
    /**
     * Pushes the tokens of the stretch text[begin … end), valid UTF-8, with ranges that count from
     * text, ascend and do not overlap. Bytes before begin and after end may be read. MEMORY.
     */
    qkv_status (*encode)(void *work, const char *text, uint32_t begin, uint32_t end);
    /**
     * The same in two steps, for added tokens that are looked for in between: normalises a stretch,
     * and pushes the tokens of its characters [first … last). Only for tokenizers that normalize.
     * MEMORY.
     */
    qkv_status (*normalize)(void *work, const char *text, uint32_t begin, uint32_t end,
                            qkvi_normal_text *normal);
    qkv_status (*encode_normal)(void *work, const qkvi_normal_text *normal, size_t first,
                                size_t last);
    /** 1 if a quick check shows that the normaliser does not change a stretch. Nullable. */
    int (*is_normal)(const qkv_tokenizer *tokenizer, const char *text, uint32_t begin,
                     uint32_t end);
    void (*finish)(void *work); /* NULL is allowed */

    /**
     * The text of a token of the vocabulary without marks such as ##, at most QKVI_PIECE_MAX_BYTES.
     * Returns 1 if the token continues the word of the token before it: "##ing".
     */
    int (*piece)(const qkv_tokenizer *tokenizer, int32_t id, char *text, size_t *n_bytes);

    /** Appends the decoded text of ids, each of which has a token. */
    qkv_status (*decode)(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                         qkvi_growing *text);
    /**
     * The same for ids that follow others: nothing is removed at the beginning, such as the space
     * of the first word. NULL: there is no difference.
     */
    qkv_status (*decode_on)(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                            qkvi_growing *text);
    /**
     * Appends a token of the vocabulary in readable form, valid UTF-8. NULL: it is readable as it
     * is.
     */
    qkv_status (*show)(const qkv_tokenizer *tokenizer, int32_t id, qkvi_growing *text);

    void (*free)(void *model); /* NULL is allowed */
} qkvi_tokenizer_kind;

/** How tokens become text. */
typedef enum qkvi_decoding {
    QKVI_DECODER_KIND,  /* by the functions of the kind */
    QKVI_DECODER_PLAIN, /* a tokenizer.json without decoder: tokens joined by spaces */
    QKVI_DECODER_OTHER  /* an unsupported decoder: decoding is refused, encoding is not */
} qkvi_decoding;

/** A file that a tokenizer was made from. */
typedef struct qkvi_tokenizer_file {
    char name[32];
    uint64_t digest;
} qkvi_tokenizer_file;

enum { QKVI_TOKENIZER_FILES = 9 };

struct qkv_tokenizer {
    const qkvi_tokenizer_kind *kind;
    void *model;        /* the kind's own data, made by its reader */
    qkvi_pieces pieces; /* the vocabulary */
    qkvi_added added;
    qkvi_decoding decoder;
    int normalizes;           /* the kind's normaliser changes text */
    int has_types;            /* 0: all types are 0, whatever the templates say */
    int ends_once;            /* what ends a text is not inserted behind one that ends so */
    int cuts_left;            /* truncation removes the first tokens of a text, not the last */
    int other_words;          /* tokenizer.json splits words in a way that the class ignores */
    int lacks_bos, lacks_eos; /* tokenizer_config.json asks for it, but templates do not have it */
    int64_t max_len;          /* most tokens, by the tokenizer's own files */
    int trim_offsets;         /* ranges do not include white space at their ends, */
    int trim_keeps_first;     /* except a single space at the beginning of the text */
    int32_t special[QKVI_N_ROLES];
    qkvi_template single, pair;
    qkvi_chat chat;
    int n_files;
    qkvi_tokenizer_file files[QKVI_TOKENIZER_FILES];
};

extern const char *const qkvi_role_names[QKVI_N_ROLES]; /* "[UNK]", …, by qkv_token_role */

/** Fills up an encoding to n tokens with the token `pad`; a longer one stays as it is. MEMORY. */
qkv_status qkvi_encoding_pad(qkv_encoding *encoding, int64_t n, int32_t pad, qkv_error *error);

/** Templates without special tokens: A, and A B with types 0 and 1. */
extern const qkvi_template qkvi_bare_single, qkvi_bare_pair;

/**
 * Makes a tokenizer without tokens. It owns the model, and frees it even if this call fails. NULL
 * without memory, or if model is NULL.
 */
qkv_tokenizer *qkvi_tokenizer_new(const qkvi_tokenizer_kind *kind, void *model);

/**
 * The two last steps of opening: qkvi_tokenizer_seal_model after all tokens of the vocabulary,
 * since added tokens are then looked up in it; qkvi_tokenizer_seal after the added tokens, which
 * also finds the tokens of roles that are not set yet.
 */
qkv_status qkvi_tokenizer_seal_model(qkv_tokenizer *tokenizer, qkv_error *error);
qkv_status qkvi_tokenizer_seal(qkv_tokenizer *tokenizer, const char *file, qkv_error *error);

/**
 * qkv_tokenizer_open of a tokenizer that converts texts to lower case before anything else, as
 * do_lower_case of sentence-transformers does. Marian's tokenizer is refused.
 */
qkv_status qkvi_tokenizer_open_lower(const char *directory, qkv_tokenizer **tokenizer,
                                     qkv_error *error);

/** [CLS] A [SEP] and [CLS] A [SEP] B [SEP] with types 0 and 1, from the ids of cls and sep. */
void qkvi_tokenizer_bert_templates(qkv_tokenizer *tokenizer, int32_t cls, int32_t sep);

/** <s> A </s> and <s> A </s></s> B </s>, types all 0. */
void qkvi_tokenizer_roberta_templates(qkv_tokenizer *tokenizer, int32_t cls, int32_t sep);

/** The token of an id for decoding: an added token is normalised. */
const char *qkvi_tokenizer_decoded(const qkv_tokenizer *tokenizer, int32_t id, size_t *n_bytes);

/** qkv_tokenizer_encode of a text without a template around it. */
qkv_status qkvi_tokenizer_encode_bare(const qkv_tokenizer *tokenizer, const char *text,
                                      size_t text_bytes, qkv_encoding **encoding, qkv_error *error);

/**
 * qkv_tokenizer_decode of ids that follow others, without special tokens: a space at the beginning
 * stays.
 */
qkv_status qkvi_tokenizer_decode_on(const qkv_tokenizer *tokenizer, const int32_t *ids, int64_t n,
                                    qkv_text **text, qkv_error *error);

/**
 * `piece` of the kind for any id: of an added token all its bytes; of an id without a token no
 * text, and 0.
 */
int qkvi_tokenizer_piece(const qkv_tokenizer *tokenizer, int32_t id,
                         char text[QKVI_PIECE_MAX_BYTES], size_t *n_bytes);

#endif
