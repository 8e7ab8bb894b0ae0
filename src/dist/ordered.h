/*
 * Scheme "ordered": each rank visits the keys of the whole sequence in their order, in the blocks
 * of 256 by which sums are defined (docs/numerics.md). So results have the bits of one process.
 */
#ifndef QKVI_DIST_ORDERED_H
#define QKVI_DIST_ORDERED_H

#include "dist/call.h"

/* See qkv/mpi.h. The message is in group->error. ctx and desc may be NULL. */
QKV_NODISCARD qkv_status qkvi_ordered_forward(qkvi_group *group, qkv_ctx *ctx,
                                              const qkv_attention_desc *desc,
                                              const qkvi_dist_arrays *arrays);

/* To be called between qkvi_call_begin and _end; status: of what this rank did before. */
QKV_NODISCARD qkv_status qkvi_ordered_pass(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                                           const qkv_attention_desc *desc,
                                           const qkvi_dist_arrays *arrays);

/* Backward; call has no options. */
QKV_NODISCARD qkv_status qkvi_ordered_backward(qkvi_group *group, qkv_ctx *ctx,
                                               const qkv_attention_desc *desc,
                                               qkvi_backward_call *call);

/* A pass over columns, with the arrays of qkvi_call_open_columns. */
QKV_NODISCARD qkv_status qkvi_ordered_columns(qkvi_group *group, qkv_ctx *ctx,
                                              const qkv_attention_desc *desc,
                                              const qkvi_dist_arrays *arrays,
                                              const qkv_attention_columns *columns);

#endif
