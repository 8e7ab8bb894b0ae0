/*
 * The arrays of a case of `qkv bench`, in one block of memory, all pages of which are written: so a
 * call adds only its workspace to the memory of the process.
 */
#include <stdlib.h>
#include <string.h>

#include "core/os.h"
#include "suite/suite.h"

uint32_t bench_random(uint32_t *state) {
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

static size_t type_bytes(qkv_dtype type) { return type == QKV_F32 ? 4 : type == QKV_I8 ? 1 : 2; }

/*
 * Numbers between -1 and 1 in every type: random bits, with an exponent of one of the eight binades
 * below 1. n: of 4 bytes.
 */
static void fill(uint32_t *words, int64_t n, qkv_dtype type) {
    if (type == QKV_I8) type = QKV_F32; /* any bytes do, and scales are floats */
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
static size_t padded_bytes(int64_t n, size_t element) {
    return ((size_t)n * element + 63) / 64 * 64;
}

static bool has_gradients(enum bench_call call) {
    return call == BENCH_BACKWARD || call == BENCH_BOTH;
}

enum bench_array {
    A_Q,
    A_K,
    A_V,
    A_O,
    A_D_O,
    A_D_Q,
    A_D_K,
    A_D_V,
    A_LSE,
    A_K_SCALE,
    A_V_SCALE,
    N_ARRAYS
};

/* Bytes of array number i of n elements; 0 if this case has none. */
static size_t array_bytes(const struct bench_case *c, int i, int64_t n) {
    const bool gradient = i >= A_D_O && i <= A_D_V, kv = i == A_K || i == A_V;
    if (gradient && !has_gradients(c->call)) return 0;
    if (i >= A_K_SCALE && c->dtype != QKV_I8) return 0;
    if (i >= A_LSE || (c->dtype == QKV_I8 && !kv)) return padded_bytes(n, sizeof(float));
    return padded_bytes(n, type_bytes(c->dtype));
}

/* Inputs are read once, outputs written once; a backward call reads o and lse too. */
static double traffic(enum bench_call call, const size_t bytes[N_ARRAYS]) {
    double inputs = 0, gradients = 0;
    for (int i = A_Q; i <= A_V; i++) inputs += (double)bytes[i];
    for (int i = A_K_SCALE; i < N_ARRAYS; i++) inputs += (double)bytes[i];
    for (int i = A_D_O; i <= A_D_V; i++) gradients += (double)bytes[i];
    if (call == BENCH_COLUMNS) return (double)(bytes[A_Q] + bytes[A_K] + bytes[A_LSE]);
    const double forward = inputs + (double)bytes[A_O] + (double)bytes[A_LSE];
    if (!has_gradients(call)) return forward;
    return forward + gradients + (call == BENCH_BOTH ? forward : 0);
}

/* Descriptor, view and gradients, dense, and where everything lies. */
static void describe(struct bench *bench, const struct bench_case *c,
                     const size_t bytes[N_ARRAYS]) {
    const int64_t *s = c->sizes;
    char *at[N_ARRAYS], *next = bench->memory;
    for (int i = 0; i < N_ARRAYS; next += bytes[i++]) at[i] = next;
    qkv_attention_desc_contiguous(&bench->desc, s[0], s[1], s[2], s[3], s[4], s[5], s[6]);
    bench->desc.dtype = c->dtype == QKV_I8 ? QKV_F32 : c->dtype;
    qkv_kv_view_contiguous(&bench->view, &bench->desc, c->dtype);
    qkv_attention_grads_contiguous(&bench->grads, &bench->desc);
    bench->q = at[A_Q];
    bench->view.k = bench->k = at[A_K];
    bench->view.v = bench->v = at[A_V];
    bench->o = at[A_O];
    bench->lse = (float *)(void *)at[A_LSE];
    bench->grads.d_o = at[A_D_O];
    bench->grads.d_q = at[A_D_Q];
    bench->grads.d_k = at[A_D_K];
    bench->grads.d_v = at[A_D_V];
    if (c->dtype != QKV_I8) return;
    bench->view.k_scale = (float *)(void *)at[A_K_SCALE];
    bench->view.v_scale = (float *)(void *)at[A_V_SCALE];
}

enum { CACHE = 16 << 20, COPIES = 256 << 20 }; /* bytes: of what a cache may hold; of all copies */

static int count_copies(const struct bench_case *c, double kv_bytes) {
    return c->call == BENCH_DECODE && kv_bytes > CACHE ? (int)(COPIES / kv_bytes) + 1 : 1;
}

bool bench_make(struct bench *bench, qkv_ctx *ctx, const struct bench_case *c) {
    const int64_t *s = c->sizes;
    const int64_t rows_q = s[0] * s[1] * s[3], rows_k = s[0] * s[2] * s[4];
    const int64_t n[N_ARRAYS] = { rows_q * s[5], rows_k * s[5], rows_k * s[6], rows_q * s[6],
                                  rows_q * s[6], rows_q * s[5], rows_k * s[5], rows_k * s[6],
                                  rows_q,        rows_k,        rows_k };
    size_t bytes[N_ARRAYS], all = 0;
    for (int i = 0; i < N_ARRAYS; i++) all += bytes[i] = array_bytes(c, i, n[i]);
    const double kv_bytes = (double)(bytes[A_K] + bytes[A_V] + bytes[A_K_SCALE] + bytes[A_V_SCALE]);
    const int n_copies = count_copies(c, kv_bytes);
    *bench = (struct bench){ .ctx = ctx,
                             .call = c->call,
                             .memory = qkvi_os_aligned(64, all * (size_t)n_copies),
                             .n_copies = n_copies,
                             .copy_bytes = all,
                             .pairs = (double)s[3] * (double)s[4],
                             .bytes = traffic(c->call, bytes),
                             .kv_bytes = kv_bytes };
    if (!bench->memory) return false;
    fill(bench->memory, (int64_t)(all / sizeof(uint32_t)), c->dtype);
    for (size_t copy = 1; copy < (size_t)n_copies; copy++)
        memcpy((char *)bench->memory + copy * all, bench->memory, all);
    describe(bench, c, bytes);
    if (!c->rule || c->rule(bench)) return true;
    bench_free(bench);
    return false;
}

void bench_free(struct bench *bench) {
    qkvi_os_aligned_free(bench->memory);
    qkvi_os_aligned_free(bench->rule);
    *bench = (struct bench){ 0 };
}
