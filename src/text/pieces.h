/**
 * The tokens of a vocabulary: id → bytes, bytes → id, and the longest token that a text begins
 * with.
 *
 * Ids are sorted by the bytes of their tokens, so the tokens with a prefix are an interval, which
 * binary search narrows with each further byte; the longest match takes one such walk. There is no
 * hash table, so a hostile file cannot cause collisions.
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
    int32_t n_hidden;     /* ids whose token has a larger id, too */
    int32_t first_hidden; /* the lowest of them, or -1 */
} qkvi_pieces;

/** The tokens sorted[low … high), which begin with the same `depth` bytes. */
typedef struct qkvi_prefix {
    int32_t low, high, depth;
} qkvi_prefix;

/**
 * Gives an id to a token, replacing what the id had. LIMIT for a long token or a large id; MEMORY.
 */
qkv_status qkvi_pieces_add(qkvi_pieces *pieces, int32_t id, const char *bytes, size_t n_bytes);
/** Sorts the tokens. Call once after the last add, before everything below. */
qkv_status qkvi_pieces_seal(qkvi_pieces *pieces);
void qkvi_pieces_free(qkvi_pieces *pieces);

/** The bytes of a token, NULL if no token has the id. May be called before seal. */
const char *qkvi_pieces_token(const qkvi_pieces *pieces, int32_t id, size_t *n_bytes);

/** The id of a token, -1 if there is none. */
int32_t qkvi_pieces_find(const qkvi_pieces *pieces, const char *bytes, size_t n_bytes);

/** The interval of tokens that begin with bytes. */
qkvi_prefix qkvi_pieces_prefix(const qkvi_pieces *pieces, const char *bytes, size_t n_bytes);

/**
 * The longest token that is `prefix` followed by the first *length > 0 bytes of bytes. Returns its
 * id, or -1.
 */
int32_t qkvi_pieces_longest(const qkvi_pieces *pieces, qkvi_prefix prefix, const char *bytes,
                            size_t n_bytes, size_t *length);

#endif
