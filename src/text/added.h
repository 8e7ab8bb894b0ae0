/**
 * Added tokens: those that are cut out of a text before the tokenizer's model sees the rest.
 *
 * They are found as in PyPI tokenizers (added_vocabulary.rs), in two passes. The first looks for
 * tokens without `normalized` in the raw text, the second for the others in each stretch between
 * those. In a pass the leftmost match wins, of several that begin there the longest. The second
 * pass normalises the stretch, and its patterns are the tokens after the same normaliser.
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
    QKVI_ADDED_NAMED = 32,       /* a file, or the class, gives it a role: "mask_token" */
    QKVI_ADDED_ALL = 0xFF        /* in skips: no added token is looked for */
};

/* MAX_BYTES, of a token, bounds the time of a search at each byte of a text. */
enum { QKVI_ADDED_PASSES = 2, QKVI_ADDED_MAX_BYTES = 256 };

typedef struct qkvi_added {
    qkvi_pieces tokens; /* as they are written */
    struct qkvi_added_pass {
        qkvi_pieces patterns; /* as they are looked for */
        uint8_t first[256];   /* 1: some pattern begins with this byte */
    } passes[QKVI_ADDED_PASSES];
    uint8_t *flags; /* by id */
    int32_t n_ids;  /* the largest id + 1 */
    unsigned skips; /* tokens with one of these flags are not looked for in texts */
} qkvi_added;

/** Adds a token, in place of one with the same id. LIMIT for long tokens and large ids; MEMORY. */
qkv_status qkvi_added_add(qkvi_added *added, int32_t id, const char *token, size_t n_bytes,
                          unsigned flags);

/** Appends a token, normalised, to pattern. MEMORY. */
typedef qkv_status qkvi_added_normalize(void *user, const char *token, size_t n_bytes,
                                        qkvi_growing *pattern);

/**
 * Call once after the last add, before everything below. normalize NULL: there is no normaliser.
 * UNSUPPORTED where the result of the reference is undefined, or has bytes in two tokens: two
 * patterns are equal, or one is empty, or one begins with white space while another one of its pass
 * takes white space on its right. file is for messages. MEMORY.
 */
qkv_status qkvi_added_seal(qkvi_added *added, const char *file, qkvi_added_normalize *normalize,
                           void *user, qkv_error *error);
void qkvi_added_free(qkvi_added *added);

/** The bytes of an added token, NULL if there is none with this id. May be called before seal. */
const char *qkvi_added_token(const qkvi_added *added, int32_t id, size_t *n_bytes);
/** The id of an added token, -1 if there is none. */
int32_t qkvi_added_find(const qkvi_added *added, const char *token, size_t n_bytes);

/** The state of a search for the tokens of one pass in text[begin … end). */
typedef struct qkvi_added_walk {
    const char *text;
    uint32_t begin, end;
    uint32_t at;   /* where the search goes on; begin at first */
    uint32_t from; /* the end of the last token; begin at first */
} qkvi_added_walk;

typedef struct qkvi_added_match {
    int32_t id;
    uint32_t begin, end;
} qkvi_added_match;

/**
 * Finds the next token of a pass; 0: there is none. What is between the end of the last token,
 * walk->from before the call, and match->begin is no added token.
 */
int qkvi_added_next(const qkvi_added *added, int pass, qkvi_added_walk *walk,
                    qkvi_added_match *match);

/**
 * Cuts white space off both ends of a range. keep_first: at byte 0 a single space is not cut off.
 */
void qkvi_added_trim(const char *text, int keep_first, qkvi_added_match *match);

#endif
