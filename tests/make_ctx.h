/*
 * Makes a context for an instruction set (NULL: the best) and a number of threads, or fails the
 * test. To be included after cmocka.
 */
#ifndef MAKE_CTX_H
#define MAKE_CTX_H

#include "qkv/qkv.h"

static inline qkv_ctx *make_ctx(const char *isa, int n_threads) {
    qkv_ctx_options options = qkv_ctx_options_init();
    qkv_ctx *ctx;
    qkv_error error;
    options.isa = isa;
    options.n_threads = n_threads;
    if (qkv_ctx_create(&options, &ctx, &error) != QKV_OK) fail_msg("%s", error.message);
    return ctx;
}

#endif
