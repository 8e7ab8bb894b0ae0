/**
 * A piece of the backward pass: one block of 256 keys of one key/value head. It walks the query
 * blocks of all query heads that share the head, recomputes P and dS from lse, sums dK and dV of
 * its keys in scratch, and adds to the dQ of each query block, where it meets other pieces of the
 * head.
 */
#ifndef QKVI_ATTN_BACKWARD_PIECE_H
#define QKVI_ATTN_BACKWARD_PIECE_H

#include <stdatomic.h>

#include "attn/backward_block.h"
#include "attn/d_q_sums.h"
#include "attn/sequence.h"

/** What all pieces of a call share. */
typedef struct qkvi_bwd_pass {
    const qkvi_problem *p;
    const qkvi_grads *g;
    const struct qkvi_kernels *kernels;
    int64_t n_turns;    /* query blocks of a head, in all batches */
    atomic_llong *turn; /* [head][query block]: 1 + the last key block that added to its d_q; NULL:
                           no head has more than one key block */
    qkvi_d_q_sums d_q;
} qkvi_bwd_pass;

/** The number of the first query block of a batch: sequence.h. */
static inline int64_t qkvi_bwd_first_queries(const qkvi_problem *p, int64_t b) {
    return qkvi_first_block(p->cu_q, p->len_q, QKVI_BWD_QUERIES, b);
}

/**
 * All that one piece has to do. Waits for those before it, which must be under way: on threads of
 * their own, with other scratch.
 */
void qkvi_bwd_run_piece(const qkvi_bwd_pass *x, qkvi_bwd_slot *scratch, qkvi_bwd_piece w);

#endif
