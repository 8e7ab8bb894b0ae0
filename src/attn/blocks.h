/*
 * The block mask: for each block of block_len queries the ascending list of the blocks of keys that
 * they see. Lists are walked from a place found by bisection, not by going through all blocks of
 * keys. "Step" is a block of 256 keys, in which both passes go along a sequence.
 */
#ifndef QKVI_ATTN_BLOCKS_H
#define QKVI_ATTN_BLOCKS_H

#include "attn/arrays.h"
#include "attn/mask.h"
#include "kernels/attend.h"

/* What query i of head h sees. */
static inline qkvi_block_list qkvi_blocks_of(const qkvi_problem *p, int64_t b, int64_t h,
                                             int64_t i) {
    const int64_t *row = p->block_offsets + b * p->block_offsets_stride[0] +
                         h * p->block_offsets_stride[1] + (p->first_q + i) / p->block_len;
    static const int32_t none[1]; /* where all lists are empty: NULL + 0 is undefined in C */
    const int32_t *const index = p->block_index ? p->block_index : none;
    return (qkvi_block_list){ index + row[0], index + row[1] };
}

/* The first query after i of another list. */
static inline int64_t qkvi_blocks_after(const qkvi_problem *p, int64_t i) {
    return ((p->first_q + i) / p->block_len + 1) * p->block_len - p->first_q;
}

/* Panels of 32 keys of the step from key on that query i sees, a bit each. */
uint32_t qkvi_blocks_panels(const qkvi_problem *problem, int64_t b, int64_t h, int64_t i,
                            int64_t key);

/*
 * The last step before `step`, the first from it on, of which queries [i0, i1) see something; -1.
 */
int64_t qkvi_blocks_before(const qkvi_problem *problem, int64_t b, int64_t h, int64_t i0,
                           int64_t i1, int64_t step);
int64_t qkvi_blocks_from(const qkvi_problem *problem, int64_t b, int64_t h, int64_t i0, int64_t i1,
                         int64_t step);

/*
 * Checks offsets and lists, whose addresses and strides `all` has been checked for; adds the lists.
 * Reads every list once. all_q: as call_arrays.h.
 */
QKV_NODISCARD qkv_status qkvi_blocks_check(const qkvi_problem *problem, int64_t all_q,
                                           qkvi_arrays *all, qkv_error *error);

#endif
