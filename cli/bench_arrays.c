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

static size_t type_bytes(qkv_dtype type) { return type == QKV_F32 ? 4 : 2; }

/*
 * Numbers between -1 and 1 in every type: random bits, with an exponent of one of the eight binades
 * below 1. n: of 4 bytes.
 */
static void fill(uint32_t *words, int64_t n, qkv_dtype type) {
    const uint32_t keep = type == QKV_F32    ? 0x807FFFFFU
                          : type == QKV_BF16 ? 0x807F807FU
                                             : 0x83FF83FFU;
    const int shift = type == QKV_F32 ? 23 : type == QKV_BF16 ? 7 : 10;
    const uint32_t top = type == QKV_F16 ? 14 : 126, half = type == QKV_F32 ? 0 : 16;
    uint32_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t low = bench_random(&state), high = bench_random(&state);
        words[i] = (low << 8 ^ high) & keep;
        words[i] |= (top - low % 8) << shift;
        if (half) words[i] |= (top - high % 8) << (shift + 16);
    }
}

/* Bytes of n elements, rounded up so that the next array begins at a cache line. */
static size_t room(int64_t n, size_t element) { return ((size_t)n * element + 63) / 64 * 64; }

static bool has_gradients(enum bench_call call) {
    return call == BENCH_BACKWARD || call == BENCH_BOTH;
}

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
    if (!has_gradients(call)) return forward;
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
        const bool gradient = i >= 4 && i < 8;
        bytes[i] = room(n[i], i == 8 ? sizeof(float) : type_bytes(c->dtype));
        if (gradient && !has_gradients(c->call)) bytes[i] = 0;
        all += bytes[i];
    }
    *bench = (struct bench){ .ctx = ctx,
                             .call = c->call,
                             .memory = aligned_alloc(64, all),
                             .pairs = (double)s[3] * (double)s[4],
                             .bytes = traffic(c->call, bytes),
                             .kv_bytes = (double)(bytes[1] + bytes[2]) };
    if (!bench->memory) return false;
    fill(bench->memory, (int64_t)(all / sizeof(uint32_t)), c->dtype);
    set_pointers(bench, bytes);
    qkv_attention_desc_contiguous(&bench->desc, s[0], s[1], s[2], s[3], s[4], s[5], s[6]);
    bench->desc.dtype = c->dtype;
    qkv_kv_view_contiguous(&bench->view, &bench->desc, c->dtype);
    bench->view.k = bench->k;
    bench->view.v = bench->v;
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
