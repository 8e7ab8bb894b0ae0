/**
 * Added tokens: those that are cut out of a text before a tokenizer sees the rest.
 *
 * Found as PyPI tokenizers does it (added_vocabulary.rs): in two passes, first the tokens that are
 * not normalised, in the raw text, then the others in each stretch between those; in each pass the
 * leftmost, and of those that begin there the longest. The second pass looks for what the
 * tokenizer's normaliser makes of its tokens, the patterns, in what it makes of the stretch.
 */
#ifndef QKVI_TEXT_ADDED_H
#define QKVI_TEXT_ADDED_H

#include "files/base.h"
#include "text/pieces.h"

enum {
    QKVI_ADDED_SPECIAL = 1,      /* skipped when ids become text */
    QKVI_ADDED_NORMALIZED = 2,   /* of the second pass */
    QKVI_ADDED_LSTRIP = 4,       /* takes the white space on its left */
    QKVI_ADDED_RSTRIP = 8,       /* takes the white space on its right */
    QKVI_ADDED_SINGLE_WORD = 16, /* only between characters that are not \w */
    QKVI_ADDED_NAMED = 32,       /* a file, or the class, gives it a name: "mask_token" */
    QKVI_ADDED_ALL = 0xFF        /* for skips */
};

enum { QKVI_ADDED_PASSES = 2, QKVI_ADDED_MAX_BYTES = 256 }; /* bounds the walk at each byte */

typedef struct qkvi_added {
    qkvi_pieces tokens; /* as they are written */
    struct qkvi_added_pass {
        qkvi_pieces patterns; /* as they are looked for */
        uint8_t first[256];   /* 1: some of them begins with this byte */
    } passes[QKVI_ADDED_PASSES];
    uint8_t *flags; /* by id */
    int32_t n_ids;  /* one more than the largest */
    unsigned skips; /* tokens with one of these flags are not taken, or none at all */
} qkvi_added;

/** MEMORY; LIMIT for a long token or a large id. An id that is there gets the new token. */
qkv_status qkvi_added_add(qkvi_added *added, int32_t id, const char *token, size_t n_bytes,
                          unsigned flags);

/** Appends to pattern what a normaliser makes of a token. MEMORY. */
typedef qkv_status qkvi_added_normalize(void *user, const char *token, size_t n_bytes,
                                        qkvi_growing *pattern);

/**
 * Call once after the last add, before everything below. normalize NULL: there is no normaliser.
 * MEMORY; UNSUPPORTED where the reference has no answer, or has bytes in two tokens: two patterns
 * are equal or one is empty; a pattern begins with white space while a token of its pass takes that
 * on its right. file is for messages.
 */
qkv_status qkvi_added_seal(qkvi_added *added, const char *file, qkvi_added_normalize *normalize,
                           void *user, qkv_error *error);
void qkvi_added_free(qkvi_added *added);

/** The bytes of an added token, NULL if the id is of none. Also before seal. */
const char *qkvi_added_token(const qkvi_added *added, int32_t id, size_t *n_bytes);
/** The id of an added token, -1 if there is none. */
int32_t qkvi_added_find(const qkvi_added *added, const char *token, size_t n_bytes);

/** A walk of one pass over text[from … end): begin is where the text of the pass starts. */
typedef struct qkvi_added_walk {
    const char *text;
    uint32_t begin, end;
    uint32_t at;   /* set to begin */
    uint32_t from; /* set to begin; then behind the last token */
} qkvi_added_walk;

typedef struct qkvi_added_match {
    int32_t id;
    uint32_t begin, end;
} qkvi_added_match;

/** The next token of a pass; what is between walk->from, as it was, and its begin is not one. 0: no
 * more. */
int qkvi_added_next(const qkvi_added *added, int pass, qkvi_added_walk *walk,
                    qkvi_added_match *match);

/** Cuts white space off both ends of a range; keep_first: not a single character at byte 0. */
void qkvi_added_trim(const char *text, int keep_first, qkvi_added_match *match);

#endif
