/* The forward pass inside another call, and its plan. */
#ifndef QKVI_ATTN_FORWARD_H
#define QKVI_ATTN_FORWARD_H

#include "attn/ctx.h"
#include "attn/forward_part.h"
#include "attn/plan.h"

/* The plan of a forward call and its workspace, as the call makes them. */
QKV_NODISCARD qkv_status qkvi_forward_plan_of(qkv_ctx *ctx, const qkvi_problem *problem,
                                              qkvi_forward_plan *plan, size_t *bytes);

/* A checked problem, between qkvi_ctx_begin and _end. */
QKV_NODISCARD qkv_status qkvi_forward_run(qkv_ctx *ctx, const qkvi_problem *problem,
                                          const qkv_call_options *call);

#endif
