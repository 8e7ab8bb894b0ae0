/*
 * Beginning and end of a call: ranks exchange their descriptors, check that they agree, and each
 * makes its problem.
 *
 * The descriptor of a rank is that of its piece: len_q and len_k are the rows of its arrays. The
 * sequence is the pieces in the order of ranks.
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

/* Makes the context busy; it may be NULL. The status is that of this rank only. */
QKV_NODISCARD qkv_status qkvi_call_begin(qkvi_group *group, qkv_ctx *ctx);
/*
 * The status with which this rank takes part in the exchange that follows: begun, or if that is
 * QKV_OK the error `refused` (NULL: none), such as an invalid option.
 */
QKV_NODISCARD qkv_status qkvi_call_refuse(qkvi_group *group, qkv_status begun,
                                          const qkv_error *refused);
/* If begun is QKV_OK, releases the context and gives it the group's message. Returns status. */
qkv_status qkvi_call_end(qkvi_group *group, qkv_ctx *ctx, qkv_status begun, qkv_status status);

/* Cuts the memory of a call, in two passes (core/arena.h). */
typedef void qkvi_lay_out(void *user, qkvi_cutter *cutter);
/*
 * Reserves all memory of a call in the workspace of ctx, so that no allocation can fail once the
 * call communicates.
 */
QKV_NODISCARD qkv_status qkvi_call_reserve(qkv_ctx *ctx, qkvi_lay_out *lay_out, void *user);

/* Copies the message of a failure from the context to the group; returns status. */
qkv_status qkvi_group_from_ctx(qkvi_group *group, const qkv_ctx *ctx, qkv_status status);

/*
 * Exchanges the descriptors, and fills group->first_q, group->first_k and the problem of this rank.
 * status: of what this rank did before. Returns the same status on all ranks.
 */
QKV_NODISCARD qkv_status qkvi_call_open(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                        const qkv_attention_desc *desc,
                                        const qkvi_dist_arrays *arrays, qkvi_problem *problem);

/* The same for a call without arrays, which computes no attention. */
QKV_NODISCARD qkv_status qkvi_call_open_shape(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                              const qkv_attention_desc *desc,
                                              qkvi_problem *problem);

/*
 * After a call was opened: bit 0 is set if the mask of some rank differs between batches, bit 1 if
 * between heads.
 */
int qkvi_call_mask_dims(const qkvi_group *group);

/*
 * qkvi_call_open of a decode call: each rank has all queries, and its piece of the keys. Fills
 * group->first_k, the problem, and kv with the keys of this rank.
 */
QKV_NODISCARD qkv_status qkvi_call_open_decode(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                               const qkv_attention_desc *desc,
                                               const qkv_kv_view *view,
                                               const qkvi_dist_arrays *arrays,
                                               qkvi_problem *problem, qkvi_kv *kv);

/*
 * qkvi_call_open of a backward call: each rank has its piece of queries and keys. *mask_dims
 * receives qkvi_call_mask_dims.
 */
QKV_NODISCARD qkv_status qkvi_call_open_backward(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                                 const qkv_attention_desc *desc,
                                                 qkvi_backward_call *call, qkvi_problem *problem,
                                                 qkvi_grads *grads, int *mask_dims);

/* qkvi_call_open of a pass over columns, which reads q, k and lse of arrays. */
QKV_NODISCARD qkv_status qkvi_call_open_columns(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                                const qkv_attention_desc *desc,
                                                const qkvi_dist_arrays *arrays,
                                                const qkv_attention_columns *columns,
                                                qkvi_columns_problem *problem, int *mask_dims);

#endif
