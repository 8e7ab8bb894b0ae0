/*
 * The inside of a context, and the bracket that every public call on one is written in:
 *
 *     QKV_TRY(qkvi_ctx_begin(ctx));
 *     return qkvi_ctx_end(ctx, do_the_work(ctx, …));    failures: return qkvi_ctx_fail(ctx, …)
 *
 * begin takes the context (or returns QKV_ERR_BUSY), clears its message and sets the default
 * floating-point state; end undoes it. Between them the context belongs to the caller's thread, and
 * qkvi_ctx_workspace may be used.
 */
#ifndef QKVI_ATTN_CTX_H
#define QKVI_ATTN_CTX_H

#include <stdatomic.h>

#include "core/arena.h"
#include "core/fpstate.h"
#include "core/pool.h"
#include "core/status.h"
#include "kernels/class.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

struct qkvi_kernels;

struct qkv_ctx {
    qkv_allocator allocator; /* complete: see core/alloc.h */
    const struct qkvi_kernels *kernels;
    qkvi_arithmetic class_of[QKVI_N_GIVEN]; /* how what callers ask for is computed here */
    int l1_ways;                            /* qkvi_cpu_l1_ways */
    qkvi_pool *pool;
    qkvi_arena arena;
    qkvi_arena inputs;        /* of a layer's product, for the call that makes inputs_taken true */
    atomic_bool inputs_taken; /* outside of the bracket, and so maybe by two threads */
    qkv_error error;          /* of the last call */
    qkvi_fpstate saved_fpstate;
    atomic_bool busy;
};

/*
 * QKV_ERR_ARGUMENT for NULL, QKV_ERR_BUSY inside another call: then the context is untouched, its
 * message too.
 */
QKV_NODISCARD qkv_status qkvi_ctx_begin(qkv_ctx *ctx);
/* Returns status. A failure without a text gets the name of its status. */
qkv_status qkvi_ctx_end(qkv_ctx *ctx, qkv_status status);
/* Sets the message and returns status. Only between begin and end. */
qkv_status qkvi_ctx_fail(qkv_ctx *ctx, qkv_status status, const char *format, ...)
    QKVI_PRINTF(3, 4);

/*
 * The workspace of a call: the caller's (call is nullable) if it brought one, which must be large
 * enough and aligned to 64, otherwise bytes of the context's arena.
 */
QKV_NODISCARD qkv_status qkvi_ctx_workspace(qkv_ctx *ctx, const qkv_call_options *call,
                                            size_t bytes, void **workspace);

#pragma GCC visibility pop

/*
 * Bytes that a cutter without a block has measured; QKV_ERR_MEMORY if they are too many to count.
 */
QKV_NODISCARD qkv_status qkvi_ctx_measured(qkv_ctx *ctx, const qkvi_cutter *cutter, size_t *bytes);

#endif
