/*
 * The gradient of an additive mask, and that of a distance bias: for each a pass of its own after
 * the others, only when it is asked for, which computes scores and weights once more
 * (docs/numerics.md has the order of its sums). No memory but the scratch of the threads.
 */
#ifndef QKVI_ATTN_BACKWARD_MASK_H
#define QKVI_ATTN_BACKWARD_MASK_H

#include "attn/backward_block.h"
#include "attn/watch.h"

/* How many pieces the watch is told of; 0 without d_mask. */
int64_t qkvi_backward_mask_pieces(const qkvi_grads *grads);

/* n_slots >= 1 threads, one slot each. */
void qkvi_backward_mask(qkvi_pool *pool, const qkvi_problem *problem, const qkvi_grads *grads,
                        const qkvi_kernels *kernels, int n_slots, const qkvi_bwd_slot *slots,
                        qkvi_watch *watch);

/* The same of the distance bias: backward_distance.c. */
int64_t qkvi_backward_distance_pieces(const qkvi_grads *grads);
void qkvi_backward_distance(qkvi_pool *pool, const qkvi_problem *problem, const qkvi_grads *grads,
                            const qkvi_kernels *kernels, int n_slots, const qkvi_bwd_slot *slots,
                            qkvi_watch *watch);

#endif
