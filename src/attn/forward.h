/* The forward pass inside another call. */
#ifndef QKVI_ATTN_FORWARD_H
#define QKVI_ATTN_FORWARD_H

#include "attn/ctx.h"
#include "attn/forward_part.h"

/* A checked problem, between qkvi_ctx_begin and _end. */
QKV_NODISCARD qkv_status qkvi_forward_run(qkv_ctx *ctx, const qkvi_problem *problem,
                                          const qkv_call_options *call);

#endif
