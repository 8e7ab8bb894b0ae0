/**
 * Heads of arrays whose rows are distributed over ranks. Before a pass over one head, each rank
 * receives the rows that its part of the pass reads, and sends others the rows that they read. A
 * rank keeps them at their indices in an array for all rows of the head, which is 0 elsewhere; the
 * system gives memory only to pages that are written. So descriptors, indices and bits are those of
 * whole arrays.
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
    qkvi_range *wanted; /* [size][2]: the rows that each rank reads */
    float *rows[2];     /* of qkvi_head_pieces_bring: [room][width] */
} qkvi_head_pieces;

/**
 * All ranks call it. own: how many rows this rank has; n: how many there are. SHAPE if the rows of
 * all ranks are not n. status: as below.
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
 * Brings the wanted rows of a head into rows[side], an array of room[side] rows. All ranks call it.
 * status: of what this rank did before; if it is an error, the call fails on all ranks.
 *
 * @param own     this rank's rows of the head's queries and keys.
 * @param wanted  ranges of rows, which may be empty.
 */
qkv_status qkvi_head_pieces_bring(qkvi_head_pieces *pieces, qkv_status status,
                                  const float *const own[2], const qkvi_range wanted[2],
                                  const int64_t room[2], qkv_error *error);
/** Frees rows[]. */
void qkvi_head_pieces_drop(qkvi_head_pieces *pieces);

#endif
