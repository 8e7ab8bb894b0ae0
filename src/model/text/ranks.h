/**
 * The merges of byte-pair encoding: which two neighbouring tokens become which one, and in which
 * order.
 *
 * Sorted by their two ids and found by binary search among those with the same left one. No hash:
 * no collisions that hostile files could aim at.
 */
#ifndef QKVI_TEXT_RANKS_H
#define QKVI_TEXT_RANKS_H

#include "model/text/pieces.h"

/** A merge; rank: lower ones are done first. */
typedef struct qkvi_rank {
    int32_t left, right;
    uint32_t rank;
    int32_t id;
} qkvi_rank;

typedef struct qkvi_ranks {
    qkvi_rank *list;
    size_t n, capacity;
    uint32_t *first; /* by left id: its part of the list; n_ids + 1 */
    int32_t n_ids;
    uint32_t n_ranks; /* as many as were added */
} qkvi_ranks;

enum { QKVI_RANKS_MAX = 1 << 21 };

/** Adds a merge with the next rank. MEMORY; LIMIT above QKVI_RANKS_MAX. */
qkv_status qkvi_ranks_add(qkvi_ranks *ranks, int32_t left, int32_t right, int32_t id);
/** Sorts; of equal pairs the last one counts. Ids are below n_ids. Call once after the last add. */
qkv_status qkvi_ranks_seal(qkvi_ranks *ranks, int32_t n_ids);
/** The merge of two tokens, or NULL. */
const qkvi_rank *qkvi_ranks_find(const qkvi_ranks *ranks, int32_t left, int32_t right);
void qkvi_ranks_free(qkvi_ranks *ranks);

#endif
