/*
 * A dense attention problem with all its arrays, filled with normal values, and one run of forward
 * and backward on it.
 */
#ifndef QKV_TESTS_ATTENTION_PROBLEM_H
#define QKV_TESTS_ATTENTION_PROBLEM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "check/cases.h"
#include "sanitizers.h"

/*
 * Does this instruction set run iteration `turn` of a test? Every set runs all of them; under
 * sanitizers, sets alternate, in an order that is not in step with any option of the test.
 */
static inline bool takes_turn(int isa_at, int turn) {
    int n = 0;
    while (qkv_isa_name(n)) n++;
    return !UNDER_SANITIZER || (turn + turn / n) % n == isa_at;
}

typedef struct problem {
    qkv_attention_desc d;
    float *q, *k, *v, *d_o, *o, *lse, *d_q, *d_k, *d_v;
} problem;

static inline int64_t rows_q(const problem *p) { return p->d.n_batch * p->d.n_heads * p->d.len_q; }
static inline int64_t rows_k(const problem *p) {
    return p->d.n_batch * p->d.n_kv_heads * p->d.len_k;
}
static inline int64_t n_q(const problem *p) { return rows_q(p) * p->d.head_dim; }
static inline int64_t n_k(const problem *p) { return rows_k(p) * p->d.head_dim; }
static inline int64_t n_v(const problem *p) { return rows_k(p) * p->d.head_dim_v; }
static inline int64_t n_o(const problem *p) { return rows_q(p) * p->d.head_dim_v; }

static inline float *floats(int64_t n) {
    float *x = calloc((size_t)n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

static inline float *normals(rng *r, int64_t n) {
    float *x = floats(n);
    for (int64_t i = 0; i < n; i++) x[i] = rng_normal(r);
    return x;
}

static inline problem problem_new(rng *r, int64_t n_batch, int64_t n_heads, int64_t n_kv_heads,
                                  int64_t len_q, int64_t len_k, int64_t dim, int64_t dim_v) {
    problem p;
    qkv_attention_desc_contiguous(&p.d, n_batch, n_heads, n_kv_heads, len_q, len_k, dim, dim_v);
    p.q = normals(r, n_q(&p));
    p.k = normals(r, n_k(&p));
    p.v = normals(r, n_v(&p));
    p.d_o = normals(r, n_o(&p));
    p.o = floats(n_o(&p));
    p.lse = floats(rows_q(&p));
    p.d_q = floats(n_q(&p));
    p.d_k = floats(n_k(&p));
    p.d_v = floats(n_v(&p));
    return p;
}

static inline void problem_free(problem *p) {
    float *const all[] = { p->q, p->k, p->v, p->d_o, p->o, p->lse, p->d_q, p->d_k, p->d_v };
    for (size_t n = 0; n < sizeof all / sizeof *all; n++) free(all[n]);
}

/* isa NULL: the best. n_threads 0: the default. */
static inline qkv_ctx *context_on(const char *isa, int n_threads) {
    qkv_ctx *ctx = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.isa = isa;
    options.n_threads = n_threads;
    assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
    return ctx;
}

static inline qkv_attention_grads grads_of(const problem *p) {
    qkv_attention_grads g;
    qkv_attention_grads_contiguous(&g, &p->d);
    g.d_o = p->d_o;
    g.d_q = p->d_q;
    g.d_k = p->d_k;
    g.d_v = p->d_v;
    return g;
}

/* Forward, then backward. */
static inline qkv_status problem_call(qkv_ctx *ctx, problem *p) {
    const qkv_attention_grads g = grads_of(p);
    const qkv_status status =
        qkv_attention_forward(ctx, &p->d, p->q, p->k, p->v, p->o, p->lse, NULL);
    if (status != QKV_OK) return status;
    return qkv_attention_backward(ctx, &p->d, p->q, p->k, p->v, p->o, p->lse, &g, NULL);
}

static inline void problem_run(qkv_ctx *ctx, problem *p) {
    if (problem_call(ctx, p) != QKV_OK) fail_msg("%s", qkv_ctx_message(ctx));
}

#endif
