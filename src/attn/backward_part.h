/*
 * A backward pass of which this process has some of the queries and some of the keys: what these
 * add to d_q of its queries, or to d_k and d_v of its keys. Parts come in the order of
 * docs/numerics.md, whose seams are at multiples of 128 queries and of 256 keys, so the bits are
 * those of one call.
 *
 *     d_q        the keys of the part begin at a multiple of 256, and end at one or at the last
 *     d_k, d_v   the queries do so at a multiple of 128; of each group of heads there is one
 */
#ifndef QKVI_ATTN_BACKWARD_PART_H
#define QKVI_ATTN_BACKWARD_PART_H

#include "attn/ctx.h"
#include "attn/desc.h"
#include "core/arena.h"

/*
 * Sums of d_k and d_v: of each batch and key/value head its blocks of 256 keys, as channel panels.
 */
typedef struct qkvi_key_sums {
    float *d_k, *d_v;
    int64_t k_elems, v_elems;  /* of a block */
    int64_t first, end;        /* keys */
    int64_t n_heads, n_blocks; /* of all batches; of a head */
} qkvi_key_sums;

typedef struct qkvi_backward_part {
    const qkvi_problem *p; /* keys of its arrays: from first_k on */
    const qkvi_grads *g;   /* with delta; d_q, d_k and d_v are not used */
    int64_t begin, end;    /* keys */
    float *d_q;            /* [n_batch][n_heads][len_q][head_dim]; NULL: d_k and d_v are summed */
    const qkvi_key_sums *sums;
} qkvi_backward_part;

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/* Keys [first, end) of p. */
void qkvi_key_sums_lay_out(const qkvi_problem *p, int64_t first, int64_t end, qkvi_cutter *cutter,
                           qkvi_key_sums *sums);
void qkvi_key_sums_begin(const qkvi_key_sums *sums);

/* delta of all rows, [n_batch][n_heads][len_q], of o, d_o and d_lse. */
void qkvi_backward_part_deltas(const qkv_ctx *ctx, const qkvi_problem *p, const qkvi_grads *g,
                               float *delta);

/* Workspace of any part of such a problem. */
QKV_NODISCARD qkv_status qkvi_backward_part_workspace(qkv_ctx *ctx, const qkvi_problem *p,
                                                      size_t *bytes);

/* Between qkvi_ctx_begin and _end. call is not NULL, and has the workspace. */
QKV_NODISCARD qkv_status qkvi_backward_run_part(qkv_ctx *ctx, const qkvi_backward_part *part,
                                                const qkv_call_options *call);

/* A sum over each block of 128 queries of -exp(sink - lse) delta: [n_batch][n_heads][blocks]. */
void qkvi_backward_part_sinks(const qkv_ctx *ctx, const qkvi_problem *p, const qkvi_grads *g,
                              const float *sinks, float *blocks, int64_t row);

/* The gradients, of the type of q: sums that are complete. */
void qkvi_backward_store_d_q(const qkv_ctx *ctx, const qkvi_problem *p, const qkvi_grads *g,
                             const float *d_q);
void qkvi_backward_store_keys(const qkv_ctx *ctx, const qkvi_problem *p, const qkvi_grads *g,
                              const qkvi_key_sums *sums);

#pragma GCC visibility pop

#endif
