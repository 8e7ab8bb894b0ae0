/**
 * The tokens of a vocabulary: id → bytes, bytes → id, and the longest token that a text begins
 * with.
 *
 * Ids are kept in the byte order of their tokens. A prefix of a token is then an interval of that
 * order, and reading one more byte narrows the interval by binary search. No hash: no seed, no
 * collisions that hostile files could aim at, and the longest match falls out of one walk.
 */
#ifndef QKVI_TEXT_PIECES_H
#define QKVI_TEXT_PIECES_H

#include "files/base.h"

enum {
    QKVI_PIECE_MAX_BYTES = 1024,
    QKVI_PIECES_MAX_IDS = 1 << 22,
};

typedef struct qkvi_pieces {
    char *bytes; /* all tokens, one after the other */
    size_t n_bytes, bytes_capacity;
    struct qkvi_text_piece {
        uint32_t offset;
        int32_t length; /* -1: no token has this id */
    } * tokens;         /* by id */
    int32_t n_ids;
    size_t ids_capacity;
    int32_t *sorted; /* ids in the order of their bytes; of equal tokens only the last id */
    int32_t n_sorted;
    int32_t n_hidden, first_hidden; /* ids whose token has a later id too; the lowest, or -1 */
} qkvi_pieces;

/** The tokens that begin with some bytes: sorted[low … high), and how many bytes. */
typedef struct qkvi_prefix {
    int32_t low, high, depth;
} qkvi_prefix;

/**
 * Gives an id to a token, replacing what the id had. LIMIT for a long token or a large id; MEMORY.
 */
qkv_status qkvi_pieces_add(qkvi_pieces *pieces, int32_t id, const char *bytes, size_t n_bytes);
/** Sorts. Call once after the last add, before everything below. */
qkv_status qkvi_pieces_seal(qkvi_pieces *pieces);
void qkvi_pieces_free(qkvi_pieces *pieces);

/** The bytes of a token, NULL if no token has the id. Also before seal. */
const char *qkvi_pieces_token(const qkvi_pieces *pieces, int32_t id, size_t *n_bytes);

/** The id of a token, -1 if there is none. */
int32_t qkvi_pieces_find(const qkvi_pieces *pieces, const char *bytes, size_t n_bytes);

/** The interval of tokens that begin with bytes. */
qkvi_prefix qkvi_pieces_prefix(const qkvi_pieces *pieces, const char *bytes, size_t n_bytes);

/**
 * Of the tokens that begin with prefix, the one whose rest is the longest beginning of bytes; the
 * rest is not empty. Returns its id and the length of the rest, or -1.
 */
int32_t qkvi_pieces_longest(const qkvi_pieces *pieces, qkvi_prefix prefix, const char *bytes,
                            size_t n_bytes, size_t *length);

#endif
