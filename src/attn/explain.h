/*
 * qkv_attention_explain: reads off the plans of forward.c and backward.c what they will do, and
 * says why. Nothing here decides anything.
 */
#ifndef QKVI_ATTN_EXPLAIN_H
#define QKVI_ATTN_EXPLAIN_H

#include "attn/ctx.h"
#include "attn/decode_plan.h"
#include "attn/plan.h"
#include "attn/small.h"

/* What a backward call plans. */
typedef struct qkvi_backward_plan {
    int n_threads;
    int64_t n_pieces; /* key blocks of all key/value heads; 0: no gradient has elements */
    bool serial;      /* too little work to wake a thread */
    size_t bytes;     /* of workspace */
} qkvi_backward_plan;

QKV_NODISCARD qkv_status qkvi_backward_plan_of(qkv_ctx *ctx, const qkvi_problem *problem,
                                               qkvi_backward_plan *plan);

/*
 * Pieces of `rows` queries and `keys` keys that positions let see everything, something, nothing.
 * Row pieces begin anew at each multiple of `block` rows. ragged: the last piece of the keys is
 * full if its queries see all keys that there are. All -1: too many.
 */
typedef struct qkvi_piece_counts {
    int64_t full, partial, hidden;
} qkvi_piece_counts;

qkvi_piece_counts qkvi_pieces_of(const qkvi_problem *problem, const qkvi_forward_plan *small,
                                 int block, int rows, int keys, bool ragged);

/* The same for the rows and splits of a decode call. */
qkvi_piece_counts qkvi_decode_pieces_of(const qkvi_problem *problem, const qkvi_decode_plan *plan);

/* Key/value heads that one thread does alone, and those of them that attend_small takes. */
int64_t qkvi_own_heads(const qkvi_problem *problem, const qkvi_forward_plan *plan);
/* Pieces of work: heads of one thread, and query blocks of the others. */
int64_t qkvi_forward_tasks(const qkvi_problem *problem, const qkvi_forward_plan *plan);
int64_t qkvi_small_heads(const qkvi_problem *problem, const qkvi_forward_plan *plan);

#endif
