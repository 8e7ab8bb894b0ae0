/*
 * Scheme "ordered": every rank visits the keys of the whole sequence in their order, in the blocks
 * of 256 that the order of sums fixes (docs/numerics.md). So its rows have the bits of one process.
 */
#ifndef QKVI_DIST_ORDERED_H
#define QKVI_DIST_ORDERED_H

#include "dist/call.h"

/* include/qkv/mpi.h; the message is group->error's. ctx and desc may be NULL. */
QKV_NODISCARD qkv_status qkvi_ordered_forward(qkvi_group *group, qkv_ctx *ctx,
                                              const qkv_attention_desc *desc,
                                              const qkvi_dist_arrays *arrays);

/* Between qkvi_call_begin and _end; status: of what came before, on this rank. */
QKV_NODISCARD qkv_status qkvi_ordered_pass(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                           const qkv_attention_desc *desc,
                                           const qkvi_dist_arrays *arrays);

/* The same of backward; call has no options. */
QKV_NODISCARD qkv_status qkvi_ordered_backward(qkvi_group *group, qkv_ctx *ctx,
                                               const qkv_attention_desc *desc,
                                               qkvi_backward_call *call);

/* The same of a pass over columns: qkvi_call_open_columns says which arrays it has. */
QKV_NODISCARD qkv_status qkvi_ordered_columns(qkvi_group *group, qkv_ctx *ctx,
                                              const qkv_attention_desc *desc,
                                              const qkvi_dist_arrays *arrays,
                                              const qkv_attention_columns *columns);

#endif
