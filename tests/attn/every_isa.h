/* Runs properties that hold on every instruction set, once on each. */
#ifndef QKV_TESTS_EVERY_ISA_H
#define QKV_TESTS_EVERY_ISA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "attn/attention_problem.h"
#include "check/check.h"

static const char *isa; /* under test */
static int isa_at;

static inline void on_every_isa(void **state) {
    void (*const property)(void) = *(void (**)(void)) * state;
    for (isa_at = 0; (isa = qkv_isa_name(isa_at)); isa_at++) property();
}

#define PROPERTY(name)                                                                             \
    {                                                                                              \
#name, on_every_isa, NULL, NULL, &(void (*[1])(void)) { name }                             \
    }

static inline void run_with(problem *p, int n_threads) {
    qkv_ctx *ctx = context_on(isa, n_threads);
    problem_run(ctx, p);
    qkv_ctx_free(ctx);
}

static inline void same_bits(const char *name, const float *x, const float *y, int64_t n) {
    const int64_t at = first_difference(x, y, (size_t)n);
    if (at >= 0)
        fail_msg("%s, %s[%lld]: %.9g and %.9g", isa, name, (long long)at, (double)x[at],
                 (double)y[at]);
}

#endif
