/*
 * The beginning of a call: what each rank was given becomes one problem that all agree on.
 *
 * desc describes the piece of its rank: len_q and len_k are the rows of its arrays. Pieces lie in
 * the order of ranks, so those of rank r begin where those of rank r - 1 end.
 */
#ifndef QKVI_DIST_CALL_H
#define QKVI_DIST_CALL_H

#include "attn/columns_part.h"
#include "attn/problem.h"
#include "dist/group.h"

/* The arrays of a forward call; a decode call has no k and v, but a view. */
typedef struct qkvi_dist_arrays {
    const void *q, *k, *v;
    void *o;
    float *lse;
} qkvi_dist_arrays;

/* Takes the context, which may be NULL. The result is this rank's alone. */
QKV_NODISCARD qkv_status qkvi_call_begin(qkvi_group *group, qkv_ctx *ctx);
/* What the call goes on with; refused: NULL, or why this rank refuses what it was asked for. */
QKV_NODISCARD qkv_status qkvi_call_refuse(qkvi_group *group, qkv_status begun,
                                          const qkv_error *refused);
/* Gives it back if begun is QKV_OK, with the group's message, and returns status. */
qkv_status qkvi_call_end(qkvi_group *group, qkv_ctx *ctx, qkv_status begun, qkv_status status);

/* What a call needs memory for. It is called twice, as qkvi_cut is. */
typedef void qkvi_lay_out(void *user, qkvi_cutter *cutter);
/*
 * All memory of a call, in the workspace of ctx, so that nothing fails for lack of it once the call
 * communicates.
 */
QKV_NODISCARD qkv_status qkvi_call_reserve(qkv_ctx *ctx, qkvi_lay_out *lay_out, void *user);

/* A failure's message moves from the context to the group; returns status. */
qkv_status qkvi_group_from_ctx(qkvi_group *group, const qkv_ctx *ctx, qkv_status status);

/*
 * Exchanges the descriptors, and fills group->first_q, group->first_k and the problem of this rank.
 * status: of what came before, on this rank. The same result on all ranks.
 */
QKV_NODISCARD qkv_status qkvi_call_open(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                        const qkv_attention_desc *desc,
                                        const qkvi_dist_arrays *arrays, qkvi_problem *problem);

/* The same of a call that computes nothing, without arrays. */
QKV_NODISCARD qkv_status qkvi_call_open_shape(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                              const qkv_attention_desc *desc,
                                              qkvi_problem *problem);

/*
 * Of all ranks' masks, after a call has been opened. Bit 0: some rank's mask differs between
 * batches; bit 1: between heads.
 */
int qkvi_call_mask_dims(const qkvi_group *group);

/*
 * The same of a decode call: all ranks have all queries, keys lie in pieces. Fills group->first_k,
 * the problem, and the keys that this rank has.
 */
QKV_NODISCARD qkv_status qkvi_call_open_decode(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                               const qkv_attention_desc *desc,
                                               const qkv_kv_view *view,
                                               const qkvi_dist_arrays *arrays,
                                               qkvi_problem *problem, qkvi_kv *kv);

/*
 * The same of a backward call, whose queries and keys lie in pieces. mask_dims:
 * qkvi_call_mask_dims.
 */
QKV_NODISCARD qkv_status qkvi_call_open_backward(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                                 const qkv_attention_desc *desc,
                                                 qkvi_backward_call *call, qkvi_problem *problem,
                                                 qkvi_grads *grads, int *mask_dims);

/* The same of a pass over columns; of the arrays q, k and lse are given, which is read only. */
QKV_NODISCARD qkv_status qkvi_call_open_columns(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                                const qkv_attention_desc *desc,
                                                const qkvi_dist_arrays *arrays,
                                                const qkv_attention_columns *columns,
                                                qkvi_columns_problem *problem, int *mask_dims);

#endif
