/*
 * The vector layer on WebAssembly (simd128): 16 lanes are four v128. vec_scalar.h defines every
 * operation.
 *
 * simd128 has no FMA. f32x4.relaxed_madd of relaxed SIMD is one where the engine and its processor
 * have one, and elsewhere rounds the product first. Which of the two it is, qkvi_cpu_features finds
 * out, and this table is left out where it is not an FMA. Compiled without relaxed SIMD, FMA is
 * computed in double as core/fma.h says, which has the proof.
 */
#ifndef QKVI_VEC_WASM_H
#define QKVI_VEC_WASM_H

#if !defined(__wasm_simd128__)
#error "vec_wasm.h needs -msimd128"
#endif

#include <stdbool.h>
#include <stdint.h>
#include <wasm_simd128.h>

#include "core/half.h"
#include "kernels/vec/unroll.h"

#define V_INLINE static inline __attribute__((always_inline, unused))
#define V_NAME   wasm
/*
 * Register tile 6 x 16: 24 v128 accumulate, 4 hold a row of B, 1 an element of A. An engine has 32
 * registers for them on AArch64 and 16 on x86-64, where it moves some to the stack.
 */
#define V_MR 6
#define V_NV 1

typedef struct {
    v128_t a, b, c, d;
} vf;
typedef vf vi; /* v128_t has no type of lanes */
typedef struct {
    v128_t a, b, c, d; /* lanes of all ones or all zeros */
} vm;

#include "kernels/vec/quarters.h"

/* ---- load and store ---- */

V_INLINE vf vf_set1(float x) {
    const v128_t q = wasm_f32x4_splat(x);
    return (vf){ q, q, q, q };
}
V_INLINE vf vf_loadu(const float *p) {
    return (vf){ wasm_v128_load(p), wasm_v128_load(p + 4), wasm_v128_load(p + 8),
                 wasm_v128_load(p + 12) };
}
V_INLINE vf vf_load(const float *p) { return vf_loadu(p); }
V_INLINE v128_t v_load_n(const float *p, int n) { /* the first n of 4, n of any sign */
    if (n >= 4) return wasm_v128_load(p);
    if (n <= 0) return wasm_f32x4_splat(0);
    if (n == 1) return wasm_v128_load32_zero(p);
    const v128_t two = wasm_v128_load64_zero(p);
    return n == 3 ? wasm_v128_load32_lane(p + 2, two, 2) : two;
}
V_INLINE vf vf_load_n(const float *p, int n) {
    return (vf){ v_load_n(p, n), v_load_n(p + 4, n - 4), v_load_n(p + 8, n - 8),
                 v_load_n(p + 12, n - 12) };
}
V_INLINE vf vf_loadu_i8(const int8_t *p) {
    const v128_t x = wasm_v128_load(p);
    const v128_t low = wasm_i16x8_extend_low_i8x16(x), high = wasm_i16x8_extend_high_i8x16(x);
    return (vf){ wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(low)),
                 wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(low)),
                 wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(high)),
                 wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(high)) };
}
V_INLINE void vf_storeu(float *p, vf x) {
    wasm_v128_store(p, x.a);
    wasm_v128_store(p + 4, x.b);
    wasm_v128_store(p + 8, x.c);
    wasm_v128_store(p + 12, x.d);
}
V_INLINE void vf_store(float *p, vf x) { vf_storeu(p, x); }
V_INLINE void v_store_n(float *p, v128_t q, int n) {
    if (n >= 4)
        wasm_v128_store(p, q);
    else if (n == 1)
        wasm_v128_store32_lane(p, q, 0);
    else if (n > 1) {
        wasm_v128_store64_lane(p, q, 0);
        if (n == 3) wasm_v128_store32_lane(p + 2, q, 2);
    }
}
V_INLINE void vf_store_n(float *p, vf x, int n) {
    v_store_n(p, x.a, n);
    v_store_n(p + 4, x.b, n - 4);
    v_store_n(p + 8, x.c, n - 8);
    v_store_n(p + 12, x.d, n - 12);
}

/* ---- 16-bit types ---- */

V_INLINE vf vf_loadu_bf16(const uint16_t *p) {
    return (vf){ wasm_i32x4_shl(wasm_u32x4_load16x4(p), 16),
                 wasm_i32x4_shl(wasm_u32x4_load16x4(p + 4), 16),
                 wasm_i32x4_shl(wasm_u32x4_load16x4(p + 8), 16),
                 wasm_i32x4_shl(wasm_u32x4_load16x4(p + 12), 16) };
}
V_INLINE v128_t v_round_bf16(v128_t bits) { /* in the lower half of each lane */
    const v128_t upper = wasm_u32x4_shr(bits, 16);
    const v128_t odd = wasm_v128_and(upper, wasm_i32x4_splat(1));
    const v128_t up = wasm_i32x4_add(bits, wasm_i32x4_add(odd, wasm_i32x4_splat(0x7FFF)));
    const v128_t quiet = wasm_v128_or(upper, wasm_i32x4_splat(0x40));
    return wasm_v128_bitselect(wasm_u32x4_shr(up, 16), quiet, wasm_f32x4_eq(bits, bits));
}
V_INLINE void vf_storeu_bf16(uint16_t *p, vf x) {
    wasm_v128_store(p, wasm_u16x8_narrow_i32x4(v_round_bf16(x.a), v_round_bf16(x.b)));
    wasm_v128_store(p + 8, wasm_u16x8_narrow_i32x4(v_round_bf16(x.c), v_round_bf16(x.d)));
}
V_INLINE vf vf_loadu_f16(const uint16_t *p) {
    float x[16];
    for (int e = 0; e < 16; e++) x[e] = qkvi_f32_of_f16(p[e]);
    return vf_loadu(x);
}
V_INLINE void vf_storeu_f16(uint16_t *p, vf y) {
    float x[16];
    vf_storeu(x, y);
    for (int e = 0; e < 16; e++) p[e] = qkvi_f16_of_f32(x[e]);
}
V_HALF_N(bf16)
V_HALF_N(f16)

/* ---- arithmetic ---- */

V_INLINE v128_t v_max(v128_t x, v128_t y) { return wasm_f32x4_pmax(y, x); } /* x > y ? x : y */
V_INLINE v128_t v_min(v128_t x, v128_t y) { return wasm_f32x4_pmin(y, x); }

#if defined(__wasm_relaxed_simd__)
V_INLINE v128_t v_fma(v128_t x, v128_t y, v128_t z) { return wasm_f32x4_relaxed_madd(x, y, z); }
V_INLINE v128_t v_fnma(v128_t x, v128_t y, v128_t z) { return wasm_f32x4_relaxed_nmadd(x, y, z); }
#else
/* Two lanes in double: the sum, whether its rounding is in doubt, and the sum rounded to odd. */
V_INLINE v128_t v_lower(v128_t x) { return wasm_f64x2_promote_low_f32x4(x); }
V_INLINE v128_t v_upper(v128_t x) { return v_lower(wasm_i64x2_shuffle(x, x, 1, 1)); }
V_INLINE v128_t v_sum(v128_t x, v128_t y, v128_t z) {
    return wasm_f64x2_add(wasm_f64x2_mul(x, y), z);
}
V_INLINE v128_t v_in_doubt(v128_t s) {
    return wasm_i64x2_eq(wasm_v128_and(s, wasm_i64x2_splat(0x0FFFFFFF)), wasm_i64x2_splat(0));
}
V_INLINE v128_t v_to_odd(v128_t x, v128_t y, v128_t z) {
    const v128_t product = wasm_f64x2_mul(x, y), s = wasm_f64x2_add(product, z);
    const v128_t added = wasm_f64x2_sub(s, product);
    const v128_t e =
        wasm_f64x2_add(wasm_f64x2_sub(product, wasm_f64x2_sub(s, added)), wasm_f64x2_sub(z, added));
    const v128_t outward = wasm_f64x2_mul(e, s), zero = wasm_f64x2_splat(0);
    const v128_t below = wasm_f64x2_lt(outward, zero), above = wasm_f64x2_gt(outward, zero);
    const v128_t inexact = wasm_u64x2_shr(wasm_v128_or(below, above), 63);
    return wasm_v128_or(wasm_i64x2_add(s, below), inexact); /* below is -1 in its lanes */
}
V_INLINE v128_t v_pack(v128_t low, v128_t high) {
    return wasm_i64x2_shuffle(wasm_f32x4_demote_f64x2_zero(low), wasm_f32x4_demote_f64x2_zero(high),
                              0, 2);
}
/* Called: inlined everywhere, the objects of this table are 20 times as large. */
static __attribute__((noinline, unused)) v128_t v_fma(v128_t x, v128_t y, v128_t z) {
    v128_t low = v_sum(v_lower(x), v_lower(y), v_lower(z));
    v128_t high = v_sum(v_upper(x), v_upper(y), v_upper(z));
    if (wasm_v128_any_true(wasm_v128_or(v_in_doubt(low), v_in_doubt(high)))) {
        low = v_to_odd(v_lower(x), v_lower(y), v_lower(z));
        high = v_to_odd(v_upper(x), v_upper(y), v_upper(z));
    }
    return v_pack(low, high);
}
V_INLINE v128_t v_fnma(v128_t x, v128_t y, v128_t z) { return v_fma(wasm_f32x4_neg(x), y, z); }

/*
 * The tile (V_TILE of gemm_tile.h), three rows and four columns at a time: six sums, and what a
 * step needs, fit into 16 registers. What is added up are floats that are kept as doubles: each
 * step rounds to a float and back, which is cheaper than an FMA of floats.
 *
 * Whether a rounding was in doubt is asked once for V_STEPS steps: of the last 28 bits of all their
 * sums the least number is kept. If it is 0 the steps are made again, and each asks. Where a factor
 * is 0 the sum stays a float, which always is in doubt: such steps ask at once.
 */
#define V_TILE v_tile
enum { V_STEPS = 16 };
typedef struct v_sums {
    v128_t of[3][2];
} v_sums;

/* In between clang must not see that it is a float: it would convert lane by lane. */
V_INLINE v128_t v_rounded(v128_t s) {
    v128_t f = wasm_f32x4_demote_f64x2_zero(s);
    __asm__("" : "+r"(f));
    return wasm_f64x2_promote_low_f32x4(f);
}
/* The last 28 bits of four sums, and 0000 behind them. */
V_INLINE v128_t v_last_bits(v128_t low, v128_t high) {
    return wasm_i32x4_shl(wasm_i32x4_shuffle(low, high, 0, 2, 4, 6), 4);
}
V_INLINE v_sums v_tile_load(const int R, const float *c) {
    v_sums s;
    V_UNROLL(3) for (int i = 0; i < R; i++) {
        s.of[i][0] = v_lower(wasm_v128_load64_zero(c + 16 * i));
        s.of[i][1] = v_lower(wasm_v128_load64_zero(c + 16 * i + 2));
    }
    return s;
}
/* m steps on four columns of b; false: a rounding was in doubt. x: [3][V_STEPS] factors. */
V_INLINE bool v_tile_fast(const int R, int64_t m, const double *x, const float *b, v_sums *sums) {
    v_sums s = *sums;
    v128_t least = wasm_i32x4_splat(-1);
    for (int64_t k = 0; k < m; k++, b += 32) {
        const v128_t left = v_lower(wasm_v128_load64_zero(b));
        const v128_t right = v_lower(wasm_v128_load64_zero(b + 2));
        V_UNROLL(3) for (int i = 0; i < R; i++) {
            const v128_t factor = wasm_v128_load64_splat(x + V_STEPS * i + k);
            const v128_t low = v_sum(factor, left, s.of[i][0]);
            const v128_t high = v_sum(factor, right, s.of[i][1]);
            least = wasm_u32x4_min(least, v_last_bits(low, high));
            s.of[i][0] = v_rounded(low);
            s.of[i][1] = v_rounded(high);
        }
    }
    *sums = s;
    return wasm_i32x4_all_true(least);
}
/* The same, each step on its own. */
V_INLINE void v_tile_careful(const int R, int64_t m, const double *x, const float *b,
                             v_sums *sums) {
    v_sums s = *sums;
    for (int64_t k = 0; k < m; k++, b += 32) {
        const v128_t left = v_lower(wasm_v128_load64_zero(b));
        const v128_t right = v_lower(wasm_v128_load64_zero(b + 2));
        V_UNROLL(3) for (int i = 0; i < R; i++) {
            const v128_t factor = wasm_v128_load64_splat(x + V_STEPS * i + k);
            v128_t low = v_sum(factor, left, s.of[i][0]);
            v128_t high = v_sum(factor, right, s.of[i][1]);
            if (__builtin_expect(!wasm_i32x4_all_true(v_last_bits(low, high)), 0)) {
                low = v_to_odd(factor, left, s.of[i][0]);
                high = v_to_odd(factor, right, s.of[i][1]);
            }
            s.of[i][0] = v_rounded(low);
            s.of[i][1] = v_rounded(high);
        }
    }
    *sums = s;
}
/* Factors of m steps as doubles; false: one of them is 0. */
V_INLINE bool v_tile_factors(const int R, int64_t m, const float *a, int64_t a_row, int64_t a_col,
                             double *x) {
    bool all = true;
    V_UNROLL(3) for (int i = 0; i < R; i++) {
        for (int64_t k = 0; k < m; k++) {
            const float factor = a[i * a_row + k * a_col];
            all &= factor != 0;
            x[V_STEPS * i + k] = (double)factor;
        }
    }
    return all;
}
V_INLINE void v_tile_rows(const int R, int64_t n, const float *a, int64_t a_row, int64_t a_col,
                          const float *b, float *c) {
    double x[3 * V_STEPS];
    for (int64_t k = 0; k < n; k += V_STEPS) {
        const int64_t m = n - k < V_STEPS ? n - k : V_STEPS;
        const bool fast = v_tile_factors(R, m, a + k * a_col, a_row, a_col, x);
        for (int j = 0; j < 16; j += 4) {
            v_sums s = v_tile_load(R, c + j);
            if (!fast || __builtin_expect(!v_tile_fast(R, m, x, b + 32 * k + j, &s), 0)) {
                s = v_tile_load(R, c + j);
                v_tile_careful(R, m, x, b + 32 * k + j, &s);
            }
            V_UNROLL(3)
            for (int i = 0; i < R; i++)
                wasm_v128_store(c + 16 * i + j, v_pack(s.of[i][0], s.of[i][1]));
        }
    }
}
#define V_TILE_ROWS(R)                                                                             \
    static __attribute__((noinline, unused)) void v_tile_##R(                                      \
        int64_t n, const float *a, int64_t a_row, int64_t a_col, const float *b, float *c) {       \
        v_tile_rows(R, n, a, a_row, a_col, b, c);                                                  \
    }
V_TILE_ROWS(1)
V_TILE_ROWS(2)
V_TILE_ROWS(3)
V_INLINE void v_tile(const int R, int64_t n, const float *a, int64_t a_row, int64_t a_col,
                     const float *b, vf c[V_MR][V_NV]) {
    int i = 0;
    for (; i + 3 <= R; i += 3) v_tile_3(n, a + i * a_row, a_row, a_col, b, (float *)c[i]);
    if (R - i == 2) v_tile_2(n, a + i * a_row, a_row, a_col, b, (float *)c[i]);
    if (R - i == 1) v_tile_1(n, a + i * a_row, a_row, a_col, b, (float *)c[i]);
}
#undef V_TILE_ROWS
#endif
V_INLINE v128_t v_fms(v128_t x, v128_t y, v128_t z) { return v_fma(x, y, wasm_f32x4_neg(z)); }
V_BINARY(vf, vf_add, vf, wasm_f32x4_add)
V_BINARY(vf, vf_sub, vf, wasm_f32x4_sub)
V_BINARY(vf, vf_mul, vf, wasm_f32x4_mul)
V_BINARY(vf, vf_div, vf, wasm_f32x4_div)
V_BINARY(vf, vf_max, vf, v_max)
V_BINARY(vf, vf_min, vf, v_min)
V_TERNARY(vf_fma, v_fma)
V_TERNARY(vf_fms, v_fms)
V_TERNARY(vf_fnma, v_fnma)
V_UNARY(vf, vf_sqrt, vf, wasm_f32x4_sqrt)
V_UNARY(vf, vf_round, vf, wasm_f32x4_nearest)

/* ---- integers and bits ---- */

V_INLINE vi vf_as_vi(vf x) { return x; }
V_INLINE vf vi_as_vf(vi x) { return x; }
V_UNARY(vf, vi_to_vf, vi, wasm_f32x4_convert_i32x4)
V_INLINE vi vi_set1(int32_t x) {
    const v128_t q = wasm_i32x4_splat(x);
    return (vi){ q, q, q, q };
}
V_INLINE vi vi_loadu(const int32_t *p) { return vf_loadu((const float *)p); }
V_INLINE void vi_storeu_i8(int8_t *p, vi x) {
    wasm_v128_store(p, wasm_i8x16_narrow_i16x8(wasm_i16x8_narrow_i32x4(x.a, x.b),
                                               wasm_i16x8_narrow_i32x4(x.c, x.d)));
}
V_INLINE v128_t v_dot4_quarter(v128_t c, v128_t x, v128_t y) {
    const v128_t low =
        wasm_i32x4_dot_i16x8(wasm_u16x8_extend_low_u8x16(x), wasm_i16x8_extend_low_i8x16(y));
    const v128_t high =
        wasm_i32x4_dot_i16x8(wasm_u16x8_extend_high_u8x16(x), wasm_i16x8_extend_high_i8x16(y));
    return wasm_i32x4_add(c, wasm_i32x4_add(wasm_i32x4_shuffle(low, high, 0, 2, 4, 6),
                                            wasm_i32x4_shuffle(low, high, 1, 3, 5, 7)));
}
V_INLINE vi v_dot4(vi c, vi x, vi y) {
    return (vi){ v_dot4_quarter(c.a, x.a, y.a), v_dot4_quarter(c.b, x.b, y.b),
                 v_dot4_quarter(c.c, x.c, y.c), v_dot4_quarter(c.d, x.d, y.d) };
}
V_BINARY(vi, vi_add, vi, wasm_i32x4_add)
V_BINARY(vi, vi_sub, vi, wasm_i32x4_sub)
V_BINARY(vi, vi_and, vi, wasm_v128_and)
V_BINARY(vi, vi_or, vi, wasm_v128_or)
V_BINARY(vi, vi_xor, vi, wasm_v128_xor)
#define V_SHIFT(name, op)                                                                          \
    V_INLINE vi name(vi x, int n) {                                                                \
        const uint32_t by = (uint32_t)n;                                                           \
        return (vi){ op(x.a, by), op(x.b, by), op(x.c, by), op(x.d, by) };                         \
    }
V_SHIFT(vi_shl, wasm_i32x4_shl)
V_SHIFT(vi_shr, wasm_u32x4_shr)
V_SHIFT(vi_sar, wasm_i32x4_shr)

V_INLINE v128_t v_mul_even(v128_t x, v128_t y) {
    return wasm_u64x2_extmul_low_u32x4(wasm_i32x4_shuffle(x, x, 0, 2, 0, 2),
                                       wasm_i32x4_shuffle(y, y, 0, 2, 0, 2));
}
V_INLINE v128_t v_odd(v128_t x) { return wasm_u64x2_shr(x, 32); }
V_INLINE v128_t v_evens(v128_t x, v128_t y) { return wasm_i32x4_shuffle(x, y, 0, 4, 2, 6); }
V_INLINE v128_t v_firsts(v128_t x, v128_t y) { return wasm_i64x2_shuffle(x, y, 0, 2); }
V_INLINE v128_t v_lasts(v128_t x, v128_t y) { return wasm_i64x2_shuffle(x, y, 1, 3); }
V_BINARY(vi, vi_mul_even, vi, v_mul_even)
V_UNARY(vi, vi_odd, vi, v_odd)
V_BINARY(vi, vi_evens, vi, v_evens)
V_BINARY(vi, vi_firsts, vi, v_firsts)
V_BINARY(vi, vi_lasts, vi, v_lasts)

/* ---- truth values ---- */

V_BINARY(vm, vm_lt, vf, wasm_f32x4_lt)
V_BINARY(vm, vm_le, vf, wasm_f32x4_le)
V_BINARY(vm, vm_eq, vf, wasm_f32x4_eq)
V_BINARY(vm, vm_ne, vf, wasm_f32x4_ne)
V_INLINE v128_t v_nlt(v128_t x, v128_t y) { return wasm_v128_not(wasm_f32x4_lt(x, y)); }
V_BINARY(vm, vm_nlt, vf, v_nlt)
V_BINARY(vm, vm_above, vi, wasm_u32x4_gt)
V_BINARY(vm, vm_and, vm, wasm_v128_and)
V_BINARY(vm, vm_or, vm, wasm_v128_or)
V_INLINE v128_t v_of_bits(uint32_t bits, int first) {
    const v128_t each = wasm_i32x4_shl(wasm_i32x4_const(1, 2, 4, 8), (uint32_t)first);
    return wasm_i32x4_eq(wasm_v128_and(wasm_i32x4_splat((int32_t)bits), each), each);
}
V_INLINE vm vm_of_bits(uint32_t bits) {
    return (vm){ v_of_bits(bits, 0), v_of_bits(bits, 4), v_of_bits(bits, 8), v_of_bits(bits, 12) };
}
V_INLINE uint32_t vm_to_bits(vm m) {
    return (uint32_t)wasm_i32x4_bitmask(m.a) | (uint32_t)wasm_i32x4_bitmask(m.b) << 4 |
           (uint32_t)wasm_i32x4_bitmask(m.c) << 8 | (uint32_t)wasm_i32x4_bitmask(m.d) << 12;
}
V_INLINE vf vf_select(vm m, vf x, vf y) {
    return (vf){ wasm_v128_bitselect(x.a, y.a, m.a), wasm_v128_bitselect(x.b, y.b, m.b),
                 wasm_v128_bitselect(x.c, y.c, m.c), wasm_v128_bitselect(x.d, y.d, m.d) };
}
V_INLINE v128_t v_scale(v128_t m, v128_t x, v128_t n) { /* NaN becomes 0 */
    const v128_t exponent = wasm_i32x4_shl(wasm_i32x4_trunc_sat_f32x4(n), 23);
    return wasm_v128_and(m, wasm_i32x4_add(x, exponent));
}
V_INLINE vf vf_scale_if(vm m, vf x, vf n) {
    return (vf){ v_scale(m.a, x.a, n.a), v_scale(m.b, x.b, n.b), v_scale(m.c, x.c, n.c),
                 v_scale(m.d, x.d, n.d) };
}
V_INLINE uint32_t v_equal(const int32_t *p, int32_t x, int n) {
    uint32_t bits = 0;
    int e = 0;
    for (; e + 4 <= n; e += 4)
        bits |=
            (uint32_t)wasm_i32x4_bitmask(wasm_i32x4_eq(wasm_v128_load(p + e), wasm_i32x4_splat(x)))
            << e;
    for (; e < n; e++) bits |= (uint32_t)(p[e] == x) << e;
    return bits;
}
V_INLINE uint32_t v_nonzero_bytes(const uint8_t *p) {
    return (uint32_t)wasm_i8x16_bitmask(wasm_i8x16_ne(wasm_v128_load(p), wasm_i8x16_splat(0)));
}

/* ---- across lanes ---- */

V_INLINE float vf_sum(vf x) {
    const v128_t y = wasm_f32x4_add(wasm_f32x4_add(x.a, x.c), wasm_f32x4_add(x.b, x.d));
    const v128_t z = wasm_f32x4_add(y, wasm_i64x2_shuffle(y, y, 1, 1));
    return wasm_f32x4_extract_lane(z, 0) + wasm_f32x4_extract_lane(z, 1);
}
/* Four rows of [4][16] to four lanes: levels 8 and 4 within a row, 2 for pairs, 1 for all. */
#define V_ROWS(name, op)                                                                           \
    V_INLINE v128_t name##_4(const float *p) {                                                     \
        v128_t y[4], z[2];                                                                         \
        V_UNROLL(4) for (int i = 0; i < 4; i++) {                                                  \
            const vf x = vf_load(p + 16 * i);                                                      \
            y[i] = op(op(x.a, x.c), op(x.b, x.d));                                                 \
        }                                                                                          \
        V_UNROLL(2)                                                                                \
        for (int i = 0; i < 2; i++)                                                                \
            z[i] = op(wasm_i64x2_shuffle(y[2 * i], y[2 * i + 1], 0, 2),                            \
                      wasm_i64x2_shuffle(y[2 * i], y[2 * i + 1], 1, 3));                           \
        return op(wasm_i32x4_shuffle(z[0], z[1], 0, 2, 4, 6),                                      \
                  wasm_i32x4_shuffle(z[0], z[1], 1, 3, 5, 7));                                     \
    }                                                                                              \
    V_INLINE vf name(const float *p) {                                                             \
        return (vf){ name##_4(p), name##_4(p + 64), name##_4(p + 128), name##_4(p + 192) };        \
    }
V_ROWS(vf_sum_rows, wasm_f32x4_add)
V_ROWS(vf_max_rows, v_max)

V_INLINE void v_transpose4(const float *src, int64_t ss, float *dst, int64_t ds) {
    const v128_t r0 = wasm_v128_load(src), r1 = wasm_v128_load(src + ss);
    const v128_t r2 = wasm_v128_load(src + 2 * ss), r3 = wasm_v128_load(src + 3 * ss);
    const v128_t t0 = wasm_i32x4_shuffle(r0, r1, 0, 4, 1, 5); /* 00 10 01 11 */
    const v128_t t1 = wasm_i32x4_shuffle(r0, r1, 2, 6, 3, 7);
    const v128_t t2 = wasm_i32x4_shuffle(r2, r3, 0, 4, 1, 5);
    const v128_t t3 = wasm_i32x4_shuffle(r2, r3, 2, 6, 3, 7);
    wasm_v128_store(dst, wasm_i64x2_shuffle(t0, t2, 0, 2));
    wasm_v128_store(dst + ds, wasm_i64x2_shuffle(t0, t2, 1, 3));
    wasm_v128_store(dst + 2 * ds, wasm_i64x2_shuffle(t1, t3, 0, 2));
    wasm_v128_store(dst + 3 * ds, wasm_i64x2_shuffle(t1, t3, 1, 3));
}
V_INLINE void v_transpose(const float *src, int64_t src_stride, float *dst, int64_t dst_stride) {
    for (int r = 0; r < 16; r += 4)
        for (int c = 0; c < 16; c += 4)
            v_transpose4(src + r * src_stride + c, src_stride, dst + c * dst_stride + r,
                         dst_stride);
}
/* There is nothing to announce a line by. */
#define V_SILENT 1
V_INLINE void v_prefetch(const void *p) { (void)p; }
V_INLINE void v_prefetch_near(const void *p) { (void)p; }

/* ---- eight numbers of 64 bits, the greatest first ---- */

typedef struct vr {
    v128_t val[4];
} vr;

V_INLINE vr vr_load(const int64_t *p) {
    return (vr){ { wasm_v128_load(p), wasm_v128_load(p + 2), wasm_v128_load(p + 4),
                   wasm_v128_load(p + 6) } };
}
V_INLINE void vr_store(int64_t *p, vr a) {
    V_UNROLL(4) for (int n = 0; n < 4; n++) wasm_v128_store(p + 2 * n, a.val[n]);
}
V_INLINE int64_t vr_last(vr a) { return wasm_i64x2_extract_lane(a.val[3], 1); }
V_INLINE vr vr_insert(vr a, int64_t x) {
    const v128_t rank = wasm_i64x2_splat(x);
    v128_t before = wasm_i64x2_splat(INT64_MAX);
    V_UNROLL(4) for (int n = 0; n < 4; n++) {
        const v128_t own = a.val[n], next = wasm_i64x2_shuffle(before, own, 1, 2);
        const v128_t least = wasm_v128_bitselect(rank, next, wasm_i64x2_gt(next, rank));
        a.val[n] = wasm_v128_bitselect(least, own, wasm_i64x2_gt(least, own));
        before = own;
    }
    return a;
}

#undef V_HALF_N
#undef V_UNARY
#undef V_BINARY
#undef V_TERNARY
#undef V_SHIFT
#undef V_ROWS
#endif
