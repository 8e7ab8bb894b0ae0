/*
 * A problem of which this process has a piece: some of the queries, and some of the keys. The rules
 * are those of the whole sequence, so that a query sees the keys that it sees in one process.
 *
 *     q, o, lse    [first_q, first_q + len_q) of all_q queries; so do explicit mask and seg_q
 *     k, v         [first_k, first_k + len_k) of all_k keys
 *     all other arrays of the descriptor are those of the whole sequence
 */
#ifndef QKVI_ATTN_PIECE_H
#define QKVI_ATTN_PIECE_H

#include <string.h>

#include "attn/ctx.h"
#include "attn/kv_view.h"
#include "attn/problem.h"

typedef struct qkvi_piece {
    int64_t first_q, len_q, all_q;
    int64_t first_k, len_k, all_k;
} qkvi_piece;

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/*
 * Checks desc, whose len_q and len_k are those of the piece, and the arrays of a forward call.
 * len_q, first_q and first_k of the problem become those of the piece; its len_k is all_k.
 */
QKV_NODISCARD qkv_status qkvi_problem_piece(const qkv_attention_desc *desc, const qkvi_piece *piece,
                                            const void *q, const void *k, const void *v, void *o,
                                            float *lse, qkvi_problem *problem, qkv_error *error);

/*
 * The same of a decode call, whose queries are all there, on every rank. The view is that of the
 * piece; kv->place.first and kv->end become its place in the sequence.
 */
QKV_NODISCARD qkv_status qkvi_problem_decode_piece(const qkv_attention_desc *desc,
                                                   const qkvi_piece *piece, const void *q,
                                                   const qkv_kv_view *view, void *o, float *lse,
                                                   qkvi_problem *problem, qkvi_kv *kv,
                                                   qkv_error *error);

/* The same of a backward call. d_mask is refused. */
QKV_NODISCARD qkv_status qkvi_problem_backward_piece(const qkv_attention_desc *desc,
                                                     const qkvi_piece *piece,
                                                     qkvi_backward_call *call,
                                                     qkvi_problem *problem, qkvi_grads *grads,
                                                     qkv_error *error);

/* The problem of a piece without its arrays, which are not looked at. */
QKV_NODISCARD qkv_status qkvi_problem_piece_shape(const qkv_attention_desc *desc,
                                                  const qkvi_piece *piece, qkvi_problem *problem,
                                                  qkv_error *error);

/* Keys and values of `from`, with their strides and first_k. */
static inline void qkvi_problem_take_keys(qkvi_problem *p, const qkvi_problem *from) {
    p->k = from->k;
    p->v = from->v;
    memcpy(p->k_stride, from->k_stride, sizeof p->k_stride);
    memcpy(p->v_stride, from->v_stride, sizeof p->v_stride);
    p->first_k = from->first_k;
}

/* The class that computes it in this context. */
qkv_class qkvi_problem_class(const qkvi_problem *problem, const qkv_ctx *ctx);

/* Sets grads_dp, before anything of a backward pass is laid out or computed. */
void qkvi_problem_choose_gradients(qkvi_problem *problem, const qkv_ctx *ctx);

/* The same problem with rows [begin, end) of its queries alone. */
qkvi_problem qkvi_problem_rows(const qkvi_problem *problem, int64_t begin, int64_t end);

#pragma GCC visibility pop

/* The descriptor of the whole sequence, of the piece's; arrays are not looked at. */
QKV_NODISCARD qkv_status qkvi_piece_read(const qkv_attention_desc *desc, const qkvi_piece *piece,
                                         qkvi_problem *problem, qkv_error *error);

#endif
