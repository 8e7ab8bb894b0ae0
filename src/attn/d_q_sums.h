/*
 * Backward with gradients of 16 bits: the d_q of a head is summed in floats, from its first block
 * of keys to its last, and rounded once at the end. Here are the sums of the key/value heads that
 * are under way.
 *
 * Pieces of work, a block of keys each, are drawn head by head, or in turns from as many heads as
 * there are threads, and every thread finishes one before it draws the next. So a head of which all
 * is drawn and not all is done has a thread of its own; the others that have begun are the one, or
 * those, of which pieces are drawn now. As many places as there are threads, or twice as many, are
 * enough: who needs one need not wait for others.
 */
#ifndef QKVI_ATTN_D_Q_SUMS_H
#define QKVI_ATTN_D_Q_SUMS_H

#include <stdatomic.h>

#include "attn/desc.h"
#include "core/arena.h"

typedef struct qkvi_d_q_place {
    atomic_llong head; /* the key/value head of a batch that it belongs to, or one of the below */
    atomic_llong left; /* pieces of the head that are not done */
    float *rows;       /* [heads_per_kv][len_q][head_dim] */
} qkvi_d_q_place;

typedef struct qkvi_d_q_sums {
    int n_places; /* 0: gradients are floats, and are summed where they are wanted */
    qkvi_d_q_place *places;
} qkvi_d_q_sums;

/* Sums of so many heads at once. */
void qkvi_d_q_lay_out(qkvi_cutter *cutter, const qkvi_problem *problem, int64_t n_places,
                      qkvi_d_q_sums *sums);
void qkvi_d_q_begin(qkvi_d_q_sums *sums);

/*
 * The place of a head, for its piece number `block` of n_blocks. The first one takes a free one;
 * the others wait until it has. Every piece that entered leaves.
 */
qkvi_d_q_place *qkvi_d_q_enter(const qkvi_d_q_sums *sums, int64_t head, int64_t block,
                               int64_t n_blocks);
void qkvi_d_q_leave(qkvi_d_q_place *place);

#endif
