/* The calls of a property of columns on a case: forward, for lse, and the pass over columns. */
#ifndef QKV_TESTS_COLUMNS_CALLS_H
#define QKV_TESTS_COLUMNS_CALLS_H

#include "attn/columns_arrays.h"
#include "attn/every_isa.h"
#include "check/outputs.h"

static inline void forward(const char *on, const check_case *c, const outputs *x) {
    qkv_ctx *ctx = context_on(on, 2);
    if (qkv_attention_forward(ctx, &c->d, c->q.data, c->k.data, c->v.data, x->o.data, x->lse.data,
                              NULL) != QKV_OK)
        fail_msg("%s\n%s", qkv_ctx_message(ctx), c->text);
    qkv_ctx_free(ctx);
}

static inline void columns(const char *on, int n_threads, const check_case *c, const outputs *x,
                           const qkv_attention_columns *want) {
    qkv_ctx *ctx = context_on(on, n_threads);
    if (qkv_attention_columns_pass(ctx, &c->d, c->q.data, c->k.data, x->lse.data, want, NULL) !=
        QKV_OK)
        fail_msg("%s\n%s", qkv_ctx_message(ctx), c->text);
    qkv_ctx_free(ctx);
}

#endif
