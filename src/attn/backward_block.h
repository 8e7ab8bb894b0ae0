/*
 * Backward: one block of queries against one of keys, packed for the kernels
 * (kernels/attend_bwd.h), in the scratch of a thread.
 */
#ifndef QKVI_ATTN_BACKWARD_BLOCK_H
#define QKVI_ATTN_BACKWARD_BLOCK_H

#include "attn/d_q_sums.h"
#include "attn/mask.h"
#include "kernels/table.h"

/* A thread's scratch. */
typedef struct qkvi_bwd_slot {
    float *q, *d_o, *k_t, *v_t, *k;
    float *d_k, *d_v;
    float *p, *t, *d_s, *lse, *delta;
    uint32_t *p_pairs, *d_s_pairs; /* class dp, like d_s_rows */
    uint16_t *d_s_rows;
    int32_t *begin, *end;
    uint32_t *see, *keep;
} qkvi_bwd_slot;

void qkvi_bwd_lay_out_slot(qkvi_cutter *cutter, const qkvi_problem *problem, qkvi_bwd_slot *slot);

/* Keys [key, key + n_keys) of a key/value head: at most QKVI_BWD_KEYS. */
typedef struct qkvi_bwd_piece {
    int64_t b, g, block, key, n_keys;
    qkvi_rules rules;
    int64_t first, limit; /* of a piece of the keys: only those of it are seen; limit 0: all are */
    bool finite;          /* k is */
    qkvi_d_q_place *sums; /* of the d_q of its queries; NULL: they are summed where they belong */
} qkvi_bwd_piece;

/* K and V of the piece into the slot; fills n_keys and finite. b, g, key and rules are set. */
void qkvi_bwd_pack_keys(const qkvi_problem *problem, const qkvi_kernels *kernels,
                        qkvi_bwd_piece *piece, const qkvi_bwd_slot *slot);

/*
 * Packs queries [i0, i0 + n) of head h too and returns their block against the piece, all but d_q.
 * The block refers to *dropout.
 */
struct qkvi_bwd_block qkvi_bwd_open(const qkvi_problem *problem, const qkvi_grads *grads,
                                    const qkvi_kernels *kernels, const qkvi_bwd_piece *piece,
                                    const qkvi_bwd_slot *slot, int64_t h, int64_t i0, int64_t n,
                                    qkvi_dropout *dropout);

/*
 * The derivatives of the scores as they are after the soft cap, in slot->d_s: of block
 * `query` of 128 queries of head h and block `key` of 256 keys, n rows and n_keys columns, or their
 * sums. false: they are all 0. packed: the piece whose keys the slot has; b -1 before the first
 * call.
 */
bool qkvi_bwd_scores(const qkvi_problem *problem, const qkvi_grads *grads,
                     const qkvi_kernels *kernels, const qkvi_bwd_slot *slot, qkvi_bwd_piece *packed,
                     int64_t b, int64_t h, int64_t query, int64_t key, bool sum_queries,
                     bool sum_keys, int64_t *n, int64_t *n_keys);

#endif
