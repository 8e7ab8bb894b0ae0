/*
 * The vector layer, plain C: 16 virtual lanes in arrays. This file is the definition of every
 * operation; vec_avx2.h and vec_avx512.h have the same names in the same order and the same results
 * for every input (a NaN's bits excepted).
 *
 *   vf  16 floats     vi  16 int32     vm  16 truth values
 *
 * Invariant: nothing here rounds twice where the definition rounds once: vf_fma is one FMA. Lane
 * numbers are array indices; lane 0 is at the lowest address.
 */
#ifndef QKVI_VEC_SCALAR_H
#define QKVI_VEC_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define V_UNROLL_HINT /* without inlining, the number of turns is no constant */
#include "core/fma.h"
#include "core/half.h"
#include "kernels/ahead.h"
#include "kernels/vec/unroll.h"

/*
 * Not always: code inlined and unrolled over 16 lanes takes the compiler 20 seconds and runs no
 * faster.
 */
#define V_INLINE static inline __attribute__((unused))
#define V_NAME   scalar
/* Register tile: rows x (16 * vectors) columns. Nothing to win here: 6 x 16, as on AVX2. */
#ifndef V_MR
#define V_MR 6
#define V_NV 1
#endif
#define V_EACH for (int e = 0; e < 16; e++)

typedef struct {
    float f[16];
} vf;
typedef struct {
    int32_t i[16];
} vi;
typedef struct {
    uint8_t t[16];
} vm;

/* ---- load and store: *_n touch the first n of 16 elements only, 0 <= n <= 16; beyond are zeros */

V_INLINE vf vf_set1(float x) {
    vf r;
    V_EACH r.f[e] = x;
    return r;
}
V_INLINE vf vf_loadu(const float *p) {
    vf r;
    memcpy(r.f, p, sizeof r.f);
    return r;
}
V_INLINE vf vf_load(const float *p) { return vf_loadu(p); } /* p aligned to 64 */
V_INLINE vf vf_load_n(const float *p, int n) {
    vf r;
    V_EACH r.f[e] = e < n ? p[e] : 0.0f;
    return r;
}
V_INLINE vf vf_loadu_i8(const int8_t *p) { /* 16 small integers */
    vf r;
    V_EACH r.f[e] = (float)p[e];
    return r;
}
V_INLINE void vf_storeu(float *p, vf a) { memcpy(p, a.f, sizeof a.f); }
V_INLINE void vf_store(float *p, vf a) { vf_storeu(p, a); } /* p aligned to 64 */
V_INLINE void vf_store_n(float *p, vf a, int n) {
    for (int e = 0; e < n; e++) p[e] = a.f[e];
}

/* ---- 16-bit types: to floats exactly, back rounded once to nearest even (core/half.h) ---- */

#define V_HALF(type)                                                                               \
    V_INLINE vf vf_load_##type##_n(const uint16_t *p, int n) {                                     \
        vf r = vf_set1(0);                                                                         \
        for (int e = 0; e < n; e++) r.f[e] = qkvi_f32_of_##type(p[e]);                             \
        return r;                                                                                  \
    }                                                                                              \
    V_INLINE void vf_store_##type##_n(uint16_t *p, vf a, int n) {                                  \
        for (int e = 0; e < n; e++) p[e] = qkvi_##type##_of_f32(a.f[e]);                           \
    }                                                                                              \
    V_INLINE vf vf_loadu_##type(const uint16_t *p) { return vf_load_##type##_n(p, 16); }           \
    V_INLINE void vf_storeu_##type(uint16_t *p, vf a) { vf_store_##type##_n(p, a, 16); }
V_HALF(bf16)
V_HALF(f16)

/* ---- arithmetic, every result rounded once to nearest even ---- */

#define V_BINARY(name, expression)                                                                 \
    V_INLINE vf name(vf a, vf b) {                                                                 \
        V_EACH a.f[e] = (expression);                                                              \
        return a;                                                                                  \
    }
V_BINARY(vf_add, a.f[e] + b.f[e])
V_BINARY(vf_sub, a.f[e] - b.f[e])
V_BINARY(vf_mul, a.f[e] * b.f[e])
V_BINARY(vf_div, a.f[e] / b.f[e])
V_BINARY(vf_max, a.f[e] > b.f[e] ? a.f[e] : b.f[e]) /* b if either is NaN, or both are zeros */
V_BINARY(vf_min, a.f[e] < b.f[e] ? a.f[e] : b.f[e])
/*
 * a b + c, each lane qkvi_fmaf. Where that is computed, all lanes are at once, and again one by one
 * if one is in doubt. Never inlined: inlined, it takes the compiler a minute more and is slower.
 */
static __attribute__((noinline, unused)) vf vf_fma(vf a, vf b, vf c) {
#if !QKVI_FMA_INSTRUCTION
    double sum[16];
    uint64_t in_doubt = 0;
    V_EACH sum[e] = qkvi_fmaf_sum(a.f[e], b.f[e], c.f[e]);
    V_EACH in_doubt |= qkvi_fmaf_in_doubt(sum[e]);
    if (!(in_doubt >> 63)) {
        V_EACH c.f[e] = (float)sum[e];
        return c;
    }
#endif
    V_EACH c.f[e] = qkvi_fmaf(a.f[e], b.f[e], c.f[e]);
    return c;
}
V_INLINE vf vf_fms(vf a, vf b, vf c) { /* a b - c */
    V_EACH c.f[e] = -c.f[e];
    return vf_fma(a, b, c);
}
V_INLINE vf vf_fnma(vf a, vf b, vf c) { /* c - a b */
    V_EACH a.f[e] = -a.f[e];
    return vf_fma(a, b, c);
}
V_INLINE vf vf_sqrt(vf a) {
    V_EACH a.f[e] = sqrtf(a.f[e]);
    return a;
}

V_INLINE vf
vf_round(vf a) { /* to the nearest integer, even in a tie; |a| < 2^22, an infinity or NaN */
    V_EACH a.f[e] = (a.f[e] + 12582912.0f) - 12582912.0f; /* 1.5 2^23 */
    return a;
}

/* ---- integers and bits; sums wrap ---- */

V_INLINE vi vf_as_vi(vf a) { /* the same bits */
    vi r;
    memcpy(r.i, a.f, sizeof r.i);
    return r;
}
V_INLINE vf vi_as_vf(vi a) {
    vf r;
    memcpy(r.f, a.i, sizeof r.f);
    return r;
}
V_INLINE vf vi_to_vf(vi a) { /* the same number, rounded */
    vf r;
    V_EACH r.f[e] = (float)a.i[e];
    return r;
}
V_INLINE vi vi_set1(int32_t x) {
    vi r;
    V_EACH r.i[e] = x;
    return r;
}
V_INLINE vi vi_loadu(const int32_t *p) {
    vi r;
    memcpy(r.i, p, sizeof r.i);
    return r;
}
V_INLINE void vi_storeu_i8(int8_t *p, vi a) { /* 16 small integers */
    V_EACH p[e] = (int8_t)a.i[e];
}
/* c + the products of the lane's four bytes: of a unsigned, of b signed */
V_INLINE vi v_dot4(vi c, vi a, vi b) {
    uint8_t x[64];
    int8_t y[64];
    memcpy(x, a.i, sizeof x);
    memcpy(y, b.i, sizeof y);
    for (int e = 0; e < 64; e++) c.i[e / 4] += x[e] * y[e];
    return c;
}
#define V_INTEGER(name, expression)                                                                \
    V_INLINE vi name(vi a, vi b) {                                                                 \
        V_EACH a.i[e] = (int32_t)(expression);                                                     \
        return a;                                                                                  \
    }
V_INTEGER(vi_add, (uint32_t)a.i[e] + (uint32_t)b.i[e])
V_INTEGER(vi_sub, (uint32_t)a.i[e] - (uint32_t)b.i[e])
V_INTEGER(vi_and, (uint32_t)a.i[e] & (uint32_t)b.i[e])
V_INTEGER(vi_or, (uint32_t)a.i[e] | (uint32_t)b.i[e])
V_INTEGER(vi_xor, (uint32_t)a.i[e] ^ (uint32_t)b.i[e])
V_INLINE vi vi_shl(vi a, int n) { /* 0 <= n < 32 */
    V_EACH a.i[e] = (int32_t)((uint32_t)a.i[e] << n);
    return a;
}
V_INLINE vi vi_shr(vi a, int n) { /* zeros come in */
    V_EACH a.i[e] = (int32_t)((uint32_t)a.i[e] >> n);
    return a;
}
V_INLINE vi vi_sar(vi a, int n) { /* copies of the sign come in */
    V_EACH a.i[e] >>= n;
    return a;
}

/*
 * Lanes 2e and 2e + 1 as an unsigned integer of 64 bits, low half first: vi_mul_even is the product
 * of lanes 2e, vi_odd lane 2e + 1 alone, vi_evens lane 2e of a and of b.
 */
V_INLINE vi vi_mul_even(vi a, vi b) {
    for (int e = 0; e < 16; e += 2) {
        const uint64_t product = (uint64_t)(uint32_t)a.i[e] * (uint32_t)b.i[e];
        a.i[e] = (int32_t)(uint32_t)product;
        a.i[e + 1] = (int32_t)(uint32_t)(product >> 32);
    }
    return a;
}
V_INLINE vi vi_odd(vi a) {
    for (int e = 0; e < 16; e += 2) {
        a.i[e] = a.i[e + 1];
        a.i[e + 1] = 0;
    }
    return a;
}
V_INLINE vi vi_evens(vi a, vi b) {
    for (int e = 0; e < 16; e += 2) a.i[e + 1] = b.i[e];
    return a;
}
/* Of each four lanes the first two, or the last two, of a and then of b. */
V_INLINE vi vi_firsts(vi a, vi b) {
    for (int e = 0; e < 16; e += 4) {
        a.i[e + 2] = b.i[e];
        a.i[e + 3] = b.i[e + 1];
    }
    return a;
}
V_INLINE vi vi_lasts(vi a, vi b) {
    for (int e = 0; e < 16; e += 4) {
        a.i[e] = a.i[e + 2];
        a.i[e + 1] = a.i[e + 3];
        a.i[e + 2] = b.i[e + 2];
        a.i[e + 3] = b.i[e + 3];
    }
    return a;
}

/* ---- truth values; a comparison with NaN is false, but vm_nlt and vm_ne are true */

#define V_COMPARE(name, expression)                                                                \
    V_INLINE vm name(vf a, vf b) {                                                                 \
        vm r;                                                                                      \
        V_EACH r.t[e] = (uint8_t)(expression);                                                     \
        return r;                                                                                  \
    }
V_COMPARE(vm_lt, a.f[e] < b.f[e])
V_COMPARE(vm_le, a.f[e] <= b.f[e])
V_COMPARE(vm_eq, a.f[e] == b.f[e])
V_COMPARE(vm_ne, a.f[e] != b.f[e])
V_COMPARE(vm_nlt, !(a.f[e] < b.f[e]))
V_INLINE vm vm_above(vi a, vi b) { /* a > b, unsigned */
    vm r;
    V_EACH r.t[e] = (uint32_t)a.i[e] > (uint32_t)b.i[e];
    return r;
}
V_INLINE vm vm_and(vm a, vm b) {
    V_EACH a.t[e] &= b.t[e];
    return a;
}
V_INLINE vm vm_or(vm a, vm b) {
    V_EACH a.t[e] |= b.t[e];
    return a;
}
V_INLINE vm vm_of_bits(uint32_t bits) { /* lane e: bit e */
    vm r;
    V_EACH r.t[e] = (bits >> e) & 1u;
    return r;
}
V_INLINE uint32_t vm_to_bits(vm a) {
    uint32_t bits = 0;
    V_EACH bits |= (uint32_t)a.t[e] << e;
    return bits;
}
V_INLINE vf vf_select(vm m, vf a, vf b) { /* m ? a : b */
    V_EACH a.f[e] = m.t[e] ? a.f[e] : b.f[e];
    return a;
}
/*
 * m ? a 2^n : 0, where n is an integer and neither a nor the result subnormal; for n NaN, a is NaN
 * and stays so, and so it does for an infinity, which is no int32_t.
 */
V_INLINE vf vf_scale_if(vm m, vf a, vf n) {
    V_EACH {
        uint32_t bits;
        memcpy(&bits, &a.f[e], sizeof bits);
        if (m.t[e] && n.f[e] < 256.0f) bits += (uint32_t)(int32_t)n.f[e] << 23;
        if (!m.t[e]) bits = 0;
        memcpy(&a.f[e], &bits, sizeof bits);
    }
    return a;
}
/* Which of n <= 32 integers equal x: a bit each. Reads no other. */
V_INLINE uint32_t v_equal(const int32_t *p, int32_t x, int n) {
    uint32_t bits = 0;
    for (int e = 0; e < n; e++) bits |= (uint32_t)(p[e] == x) << e;
    return bits;
}
V_INLINE uint32_t v_nonzero_bytes(const uint8_t *p) { /* bit e: p[e] != 0, 16 bytes */
    uint32_t bits = 0;
    V_EACH bits |= (uint32_t)(p[e] != 0) << e;
    return bits;
}

/* ---- across lanes ---- */

V_INLINE float vf_sum(vf a) { /* the tree 8, 4, 2, 1: lane e + lane e + 8, … */
    for (int w = 8; w; w >>= 1)
        for (int e = 0; e < w; e++) a.f[e] += a.f[e + w];
    return a.f[0];
}
V_INLINE vf vf_sum_rows(const float *p) { /* lane e: vf_sum of row e of [16][16], aligned to 64 */
    vf r;
    V_EACH r.f[e] = vf_sum(vf_loadu(p + 16 * e));
    return r;
}
V_INLINE vf vf_max_rows(const float *p) { /* lane e: the same tree of vf_max */
    vf r;
    for (int i = 0; i < 16; i++) {
        vf a = vf_loadu(p + 16 * i);
        for (int w = 8; w; w >>= 1)
            for (int e = 0; e < w; e++) a.f[e] = a.f[e] > a.f[e + w] ? a.f[e] : a.f[e + w];
        r.f[i] = a.f[0];
    }
    return r;
}
/* dst[c * dst_stride + r] = src[r * src_stride + c], 16 x 16; dst rows aligned to 64 */
V_INLINE void v_transpose(const float *src, int64_t src_stride, float *dst, int64_t dst_stride) {
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 16; c++) dst[c * dst_stride + r] = src[r * src_stride + c];
}
/* Announces a line (kernels/ahead.h): into L2, into L1. */
#ifdef QKVI_ANNOUNCED
V_INLINE void v_prefetch(const void *p) { qkvi_announce(p); }
V_INLINE void v_prefetch_near(const void *p) { qkvi_announce(p); }
#else
V_INLINE void v_prefetch(const void *p) { (void)p; }
V_INLINE void v_prefetch_near(const void *p) { (void)p; }
#endif

/* ---- eight numbers of 64 bits, the greatest first ---- */

typedef struct vr {
    int64_t x[8];
} vr;

V_INLINE vr vr_load(const int64_t *p) { /* aligned to 64 */
    vr a;
    for (int e = 0; e < 8; e++) a.x[e] = p[e];
    return a;
}
V_INLINE void vr_store(int64_t *p, vr a) {
    for (int e = 0; e < 8; e++) p[e] = a.x[e];
}
V_INLINE int64_t vr_last(vr a) { return a.x[7]; }
/* x in its place; the last of the nine is left out */
V_INLINE vr vr_insert(vr a, int64_t x) {
    for (int e = 7; e >= 0; e--) {
        const int64_t least = e == 0 || a.x[e - 1] > x ? x : a.x[e - 1];
        a.x[e] = least > a.x[e] ? least : a.x[e];
    }
    return a;
}

#undef V_HALF
#undef V_BINARY
#undef V_INTEGER
#undef V_COMPARE
#undef V_EACH
#endif
