/**
 * What a qkv_tokenizer is. Filled by a reader of files, then read-only.
 *
 * What all kinds share is here and in tokenizer.c, encode.c: ids and bytes of tokens, tokens that
 * are cut out of the raw text, what stands around a text, the arrays of an encoding. What differs
 * is a table of functions, the kind, and data that only they know, the model.
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

/** One place in the sequence around a text: a special token, or the tokens of a text. */
typedef struct qkvi_template_item {
    int32_t id; /* or one of the two below */
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

    int may_be_bare;       /* nothing need stand around a text */
    int encode_normalizes; /* encode does what normalize and encode_normal do one after the other */

    /** Prepares what depends on the sealed vocabulary. Nullable. */
    qkv_status (*seal)(qkv_tokenizer *tokenizer, qkv_error *error);

    /** What one call of encode needs between stretches, to be freed by finish. NULL without memory.
     * Tokens go to list by qkvi_tokens_push. */
    void *(*start)(const qkv_tokenizer *tokenizer, qkvi_tokens *list);
    /** Pushes the tokens of text[begin … end), valid UTF-8; ranges count from text, follow one
     * another and do not overlap. MEMORY. Text before begin and behind end may be looked at. */
    qkv_status (*encode)(void *work, const char *text, uint32_t begin, uint32_t end);
    /** The same in two steps, for added tokens that are looked for in between: a stretch as the
     * kind's normaliser makes it, and the tokens of its characters [first … last). Only for
     * tokenizers that normalize. MEMORY. */
    qkv_status (*normalize)(void *work, const char *text, uint32_t begin, uint32_t end,
                            qkvi_normal_text *normal);
    qkv_status (*encode_normal)(void *work, const qkvi_normal_text *normal, size_t first,
                                size_t last);
    /**
     * 1 if it is plain that the normaliser leaves a stretch as it is, ranges included. Nullable.
     */
    int (*is_normal)(const qkv_tokenizer *tokenizer, const char *text, uint32_t begin,
                     uint32_t end);
    void (*finish)(void *work); /* NULL is allowed */

    /** The text of a token without the marks of its vocabulary, at most QKVI_PIECE_MAX_BYTES; the
     * id is one of the vocabulary. Returns 1 if the token continues the word before it: "##ing". */
    int (*piece)(const qkv_tokenizer *tokenizer, int32_t id, char *text, size_t *n_bytes);

    /** Appends the text of ids, each of which has a token: what its decoder makes of the tokens. */
    qkv_status (*decode)(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                         qkvi_growing *text);
    /**
     * The same of ids that go on after others: nothing at the front is left out. NULL: no
     * different.
     */
    qkv_status (*decode_on)(const qkv_tokenizer *tokenizer, const int32_t *ids, size_t n,
                            qkvi_growing *text);
    /** Appends a token of the vocabulary as it is shown to people: valid UTF-8. NULL: as it is
     * written. */
    qkv_status (*show)(const qkv_tokenizer *tokenizer, int32_t id, qkvi_growing *text);

    void (*free)(void *model); /* NULL is allowed */
} qkvi_tokenizer_kind;

/** How tokens become text. */
typedef enum qkvi_decoding {
    QKVI_DECODER_KIND,  /* as the kind does it */
    QKVI_DECODER_PLAIN, /* a tokenizer.json without decoder: tokens with spaces between them */
    QKVI_DECODER_OTHER  /* a type that is not supported: only decoding is refused */
} qkvi_decoding;

struct qkv_tokenizer {
    const qkvi_tokenizer_kind *kind;
    void *model;        /* the kind's own, made by its reader */
    qkvi_pieces pieces; /* the vocabulary */
    qkvi_added added;   /* tokens cut out of the raw text */
    qkvi_decoding decoder;
    int normalizes;           /* the kind's normaliser changes text */
    int has_types;            /* 0: all types are 0, whatever the templates say */
    int cuts_left;            /* long texts lose their first tokens */
    int other_words;          /* tokenizer.json cuts words in a way that its class does not take */
    int lacks_bos, lacks_eos; /* tokenizer_config.json wants it around a text, where none has it */
    int64_t max_len;          /* the longest text, by the tokenizer's own files */
    int trim_offsets;         /* ranges are without the white space at their ends … */
    int trim_keeps_first;     /* … but for a single space at the start of the text */
    int32_t special[QKVI_N_ROLES];
    qkvi_template single, pair;
    qkvi_chat chat;
};

extern const char *const qkvi_role_names[QKVI_N_ROLES]; /* "[UNK]", … by qkv_token_role */

/** Where nothing stands around a text: A, or A B with types 0 and 1. */
extern const qkvi_template qkvi_bare_single, qkvi_bare_pair;

/** A tokenizer without tokens. Takes the model, also when it fails; NULL without memory, or if
 * model is NULL. */
qkv_tokenizer *qkvi_tokenizer_new(const qkvi_tokenizer_kind *kind, void *model);

/**
 * The two steps that end opening, each after the tokens it sorts were added. The first makes the
 * vocabulary usable, so that added tokens can be compared with it; the second the added tokens, and
 * finds the tokens of the roles not set yet.
 */
qkv_status qkvi_tokenizer_seal_model(qkv_tokenizer *tokenizer, qkv_error *error);
qkv_status qkvi_tokenizer_seal(qkv_tokenizer *tokenizer, const char *file, qkv_error *error);

/** qkv_tokenizer_open of a tokenizer that puts texts in lower case before anything else happens to
 * them: what do_lower_case of sentence-transformers is. Not Marian's, which knows no such thing. */
qkv_status qkvi_tokenizer_open_lower(const char *directory, qkv_tokenizer **tokenizer,
                                     qkv_error *error);

/** [CLS] A [SEP] and [CLS] A [SEP] B [SEP] with types 0 and 1, from the ids of cls and sep. */
void qkvi_tokenizer_bert_templates(qkv_tokenizer *tokenizer, int32_t cls, int32_t sep);

/** <s> A </s> and <s> A </s></s> B </s>, types all 0. */
void qkvi_tokenizer_roberta_templates(qkv_tokenizer *tokenizer, int32_t cls, int32_t sep);

/**
 * The token that an id becomes when it is decoded: of added tokens what the normaliser made of
 * them.
 */
const char *qkvi_tokenizer_decoded(const qkv_tokenizer *tokenizer, int32_t id, size_t *n_bytes);

/** qkv_tokenizer_encode of a text with nothing around it. */
qkv_status qkvi_tokenizer_encode_bare(const qkv_tokenizer *tokenizer, const char *text,
                                      size_t text_bytes, qkv_encoding **encoding, qkv_error *error);

/**
 * qkv_tokenizer_decode of ids that go on after others, without special tokens: a space at the front
 * stays.
 */
qkv_status qkvi_tokenizer_decode_on(const qkv_tokenizer *tokenizer, const int32_t *ids, int64_t n,
                                    qkv_text **text, qkv_error *error);

/** As the kind's piece, for any id: 0 and no text for those without a token, added tokens as they
 * are written. */
int qkvi_tokenizer_piece(const qkv_tokenizer *tokenizer, int32_t id,
                         char text[QKVI_PIECE_MAX_BYTES], size_t *n_bytes);

#endif
