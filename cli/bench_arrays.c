/*
 * The arrays of a case of `qkv bench`, in one piece of memory, all of it touched: what a call adds to
 * the process is its workspace.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

uint32_t bench_random(uint32_t *state) {
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

/* Uniform in [-1, 1). */
static void fill(float *values, int64_t n) {
    uint32_t state = 1;
    for (int64_t i = 0; i < n; i++) values[i] = (float)bench_random(&state) / 8388608.0F - 1;
}

/* Bytes of n elements, rounded up so that the next array begins at a cache line. */
static size_t room(int64_t n, size_t element) { return ((size_t)n * element + 63) / 64 * 64; }

/* q, k, v, o, d_o, d_q, d_k, d_v, lse */
enum { N_ARRAYS = 9 };

static void set_pointers(struct bench *bench, const size_t bytes[N_ARRAYS]) {
    char *at[N_ARRAYS], *next = bench->memory;
    for (int i = 0; i < N_ARRAYS; next += bytes[i++]) at[i] = next;
    bench->q = at[0];
    bench->k = at[1];
    bench->v = at[2];
    bench->o = at[3];
    bench->grads.d_o = at[4];
    bench->grads.d_q = at[5];
    bench->grads.d_k = at[6];
    bench->grads.d_v = at[7];
    bench->lse = (float *)(void *)at[8];
}

/* Inputs are read once, outputs written once; a backward call reads o and lse too. */
static double traffic(enum bench_call call, const size_t bytes[N_ARRAYS]) {
    double inputs = 0, gradients = 0;
    for (int i = 0; i < 3; i++) inputs += (double)bytes[i];
    for (int i = 4; i < 8; i++) gradients += (double)bytes[i];
    const double forward = inputs + (double)bytes[3] + (double)bytes[8];
    if (call == BENCH_FORWARD) return forward;
    return forward + gradients + (call == BENCH_BOTH ? forward : 0);
}

bool bench_make(struct bench *bench, qkv_ctx *ctx, const struct bench_case *c) {
    const int64_t *s = c->sizes;
    const int64_t rows_q = s[0] * s[1] * s[3], rows_k = s[0] * s[2] * s[4];
    const int64_t n[N_ARRAYS] = { rows_q * s[5], rows_k * s[5], rows_k * s[6],
                                  rows_q * s[6], rows_q * s[6], rows_q * s[5],
                                  rows_k * s[5], rows_k * s[6], rows_q };
    size_t bytes[N_ARRAYS], all = 0;
    for (int i = 0; i < N_ARRAYS; i++) {
        bytes[i] = c->call == BENCH_FORWARD && i >= 4 && i < 8 ? 0 : room(n[i], sizeof(float));
        all += bytes[i];
    }
    *bench = (struct bench){ .ctx = ctx,
                             .call = c->call,
                             .memory = aligned_alloc(64, all),
                             .pairs = (double)s[3] * (double)s[4],
                             .bytes = traffic(c->call, bytes) };
    if (!bench->memory) return false;
    fill(bench->memory, (int64_t)(all / sizeof(float)));
    set_pointers(bench, bytes);
    qkv_attention_desc_contiguous(&bench->desc, s[0], s[1], s[2], s[3], s[4], s[5], s[6]);
    qkv_attention_grads strides;
    qkv_attention_grads_contiguous(&strides, &bench->desc);
    strides.d_o = bench->grads.d_o;
    strides.d_q = bench->grads.d_q;
    strides.d_k = bench->grads.d_k;
    strides.d_v = bench->grads.d_v;
    bench->grads = strides;
    if (!c->rule || c->rule(bench)) return true;
    bench_free(bench);
    return false;
}

void bench_free(struct bench *bench) {
    free(bench->memory);
    free(bench->rule);
    *bench = (struct bench){ 0 };
}
