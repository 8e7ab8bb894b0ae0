/**
 * Heads of arrays whose rows lie in pieces on ranks. Before a pass, each rank gets the rows of one
 * head that its part of the pass reads, and gives the others what they read of its own. They stand
 * where they stand in the whole array, in room for all rows of the head, which is zero elsewhere.
 * Of that room the system gives memory to the pages alone that are written. So descriptors, places
 * and bits are those of whole arrays.
 */
#ifndef QKVI_INSPECT_HEAD_PIECES_H
#define QKVI_INSPECT_HEAD_PIECES_H

#include "attn/mask.h"
#include "core/peers.h"
#include "qkv/heads.h"

/** Index 0: queries; 1: keys. */
typedef struct qkvi_head_pieces {
    qkvi_peers *peers;  /* NULL: every rank has all rows */
    int64_t width;      /* head_dim */
    int64_t *first[2];  /* [size + 1]: the first row of each rank */
    qkvi_range *wanted; /* [size][2] */
    float *rows[2];     /* what the last call brought */
} qkvi_head_pieces;

/**
 * All ranks call it, with this rank's rows of all n. status: as below. SHAPE if those of all ranks
 * are not n.
 */
qkv_status qkvi_head_pieces_make(qkvi_head_pieces *pieces, qkvi_peers *peers, qkv_status status,
                                 const int64_t own[2], const int64_t n[2], int64_t width,
                                 qkv_error *error);
void qkvi_head_pieces_free(qkvi_head_pieces *pieces);

/** How many rows this rank has. */
static inline int64_t qkvi_head_pieces_own(const qkvi_head_pieces *pieces, int side) {
    const int64_t *const first = pieces->first[side] + pieces->peers->rank;
    return first[1] - first[0];
}

/**
 * Brings the wanted rows of a head to rows[], which has room for room[] of them, by a call of all
 * ranks. status: of what came before on this rank; a failure of one rank becomes that of all.
 *
 * @param own     this rank's rows of the head's queries and keys.
 * @param wanted  ranges of rows, which may be empty.
 */
qkv_status qkvi_head_pieces_bring(qkvi_head_pieces *pieces, qkv_status status,
                                  const float *const own[2], const qkvi_range wanted[2],
                                  const int64_t room[2], qkv_error *error);
/** Frees what was brought. */
void qkvi_head_pieces_drop(qkvi_head_pieces *pieces);

#endif
