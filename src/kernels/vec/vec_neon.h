/*
 * The vector layer on NEON (Advanced SIMD of AArch64): 16 lanes are four q registers.
 * vec_scalar.h defines every operation.
 *
 * FMAX and FMIN answer NaN if either operand is one, so vf_max and vf_min compare and select.
 */
#ifndef QKVI_VEC_NEON_H
#define QKVI_VEC_NEON_H

#if !defined(__aarch64__) || !defined(__ARM_NEON)
#error "vec_neon.h needs AArch64 with Advanced SIMD"
#endif

#include <arm_neon.h>
#include <stdint.h>

#include "kernels/vec/unroll.h"

#define V_INLINE static inline __attribute__((always_inline, unused))
#define V_NAME   neon
/*
 * Register tile 6 x 16: 24 q accumulate, 4 hold a row of B, 1 an element of A: 29 of 32.
 */
#define V_MR 6
#define V_NV 1

typedef struct {
    float32x4_t a, b, c, d;
} vf;
typedef struct {
    int32x4_t a, b, c, d;
} vi;
typedef struct {
    uint32x4_t a, b, c, d; /* lanes of all ones or all zeros */
} vm;

#include "kernels/vec/quarters.h"

/* ---- load and store ---- */

V_INLINE vf vf_set1(float x) {
    const float32x4_t q = vdupq_n_f32(x);
    return (vf){ q, q, q, q };
}
V_INLINE vf vf_loadu(const float *p) {
    return (vf){ vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12) };
}
V_INLINE vf vf_load(const float *p) { return vf_loadu(p); }
V_INLINE float32x4_t v_load_n(const float *p, int n) { /* the first n of 4, n of any sign */
    const float32x4_t zero = vdupq_n_f32(0);
    if (n >= 4) return vld1q_f32(p);
    if (n < 2) return n == 1 ? vld1q_lane_f32(p, zero, 0) : zero;
    const float32x4_t two = vcombine_f32(vld1_f32(p), vget_low_f32(zero));
    return n == 3 ? vld1q_lane_f32(p + 2, two, 2) : two;
}
V_INLINE vf vf_load_n(const float *p, int n) {
    return (vf){ v_load_n(p, n), v_load_n(p + 4, n - 4), v_load_n(p + 8, n - 8),
                 v_load_n(p + 12, n - 12) };
}
V_INLINE vf vf_loadu_i8(const int8_t *p) {
    const int8x16_t x = vld1q_s8(p);
    const int16x8_t low = vmovl_s8(vget_low_s8(x)), high = vmovl_s8(vget_high_s8(x));
    return (vf){ vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
                 vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
                 vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
                 vcvtq_f32_s32(vmovl_s16(vget_high_s16(high))) };
}
V_INLINE void vf_storeu(float *p, vf x) {
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
    vst1q_f32(p + 8, x.c);
    vst1q_f32(p + 12, x.d);
}
V_INLINE void vf_store(float *p, vf x) { vf_storeu(p, x); }
V_INLINE void v_store_n(float *p, float32x4_t q, int n) {
    if (n >= 4)
        vst1q_f32(p, q);
    else {
        if (n >= 2) vst1_f32(p, vget_low_f32(q));
        if (n == 1) vst1q_lane_f32(p, q, 0);
        if (n == 3) vst1q_lane_f32(p + 2, q, 2);
    }
}
V_INLINE void vf_store_n(float *p, vf x, int n) {
    v_store_n(p, x.a, n);
    v_store_n(p + 4, x.b, n - 4);
    v_store_n(p + 8, x.c, n - 8);
    v_store_n(p + 12, x.d, n - 12);
}

/* ---- 16-bit types ---- */

V_INLINE float32x4_t v_widen_bf16(uint16x4_t x) {
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(x), 16));
}
V_INLINE uint16x4_t v_round_bf16(float32x4_t x) {
    const uint32x4_t bits = vreinterpretq_u32_f32(x), upper = vshrq_n_u32(bits, 16);
    const uint32x4_t odd = vandq_u32(upper, vdupq_n_u32(1));
    const uint32x4_t up = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
    const uint32x4_t quiet = vorrq_u32(upper, vdupq_n_u32(0x40));
    return vmovn_u32(vbslq_u32(vceqq_f32(x, x), vshrq_n_u32(up, 16), quiet));
}
V_INLINE float32x4_t v_widen_f16(uint16x4_t x) { return vcvt_f32_f16(vreinterpret_f16_u16(x)); }
V_INLINE uint16x4_t v_round_f16(float32x4_t x) { return vreinterpret_u16_f16(vcvt_f16_f32(x)); }
#define V_HALF(type)                                                                               \
    V_INLINE vf vf_loadu_##type(const uint16_t *p) {                                               \
        return (vf){ v_widen_##type(vld1_u16(p)), v_widen_##type(vld1_u16(p + 4)),                 \
                     v_widen_##type(vld1_u16(p + 8)), v_widen_##type(vld1_u16(p + 12)) };          \
    }                                                                                              \
    V_INLINE void vf_storeu_##type(uint16_t *p, vf x) {                                            \
        vst1_u16(p, v_round_##type(x.a));                                                          \
        vst1_u16(p + 4, v_round_##type(x.b));                                                      \
        vst1_u16(p + 8, v_round_##type(x.c));                                                      \
        vst1_u16(p + 12, v_round_##type(x.d));                                                     \
    }
V_HALF(bf16)
V_HALF(f16)
V_HALF_N(bf16)
V_HALF_N(f16)

/* ---- arithmetic ---- */

V_INLINE float32x4_t v_max(float32x4_t x, float32x4_t y) {
    return vbslq_f32(vcgtq_f32(x, y), x, y);
}
V_INLINE float32x4_t v_min(float32x4_t x, float32x4_t y) {
    return vbslq_f32(vcltq_f32(x, y), x, y);
}
/*
 * The addend comes first in NEON. -(c - a b) would not do for vf_fms: its zeros have the other
 * sign.
 */
V_INLINE float32x4_t v_fma(float32x4_t x, float32x4_t y, float32x4_t z) {
    return vfmaq_f32(z, x, y);
}
V_INLINE float32x4_t v_fms(float32x4_t x, float32x4_t y, float32x4_t z) {
    return vfmaq_f32(vnegq_f32(z), x, y);
}
V_INLINE float32x4_t v_fnma(float32x4_t x, float32x4_t y, float32x4_t z) {
    return vfmsq_f32(z, x, y);
}
V_BINARY(vf, vf_add, vf, vaddq_f32)
V_BINARY(vf, vf_sub, vf, vsubq_f32)
V_BINARY(vf, vf_mul, vf, vmulq_f32)
V_BINARY(vf, vf_div, vf, vdivq_f32)
V_BINARY(vf, vf_max, vf, v_max)
V_BINARY(vf, vf_min, vf, v_min)
V_TERNARY(vf_fma, v_fma)
V_TERNARY(vf_fms, v_fms)
V_TERNARY(vf_fnma, v_fnma)
V_UNARY(vf, vf_sqrt, vf, vsqrtq_f32)
V_UNARY(vf, vf_round, vf, vrndnq_f32)

/* ---- integers and bits ---- */

V_UNARY(vi, vf_as_vi, vf, vreinterpretq_s32_f32)
V_UNARY(vf, vi_as_vf, vi, vreinterpretq_f32_s32)
V_UNARY(vf, vi_to_vf, vi, vcvtq_f32_s32)
V_INLINE vi vi_set1(int32_t x) {
    const int32x4_t q = vdupq_n_s32(x);
    return (vi){ q, q, q, q };
}
V_INLINE vi vi_loadu(const int32_t *p) {
    return (vi){ vld1q_s32(p), vld1q_s32(p + 4), vld1q_s32(p + 8), vld1q_s32(p + 12) };
}
V_INLINE void vi_storeu_i8(int8_t *p, vi x) {
    const int16x8_t low = vcombine_s16(vmovn_s32(x.a), vmovn_s32(x.b));
    const int16x8_t high = vcombine_s16(vmovn_s32(x.c), vmovn_s32(x.d));
    vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
/* Bytes as 16-bit integers, whose products are added to neighbours twice. */
V_INLINE int32x4_t v_dot4_quarter(int32x4_t c, int32x4_t a, int32x4_t b) {
    const uint8x16_t x = vreinterpretq_u8_s32(a);
    const int8x16_t y = vreinterpretq_s8_s32(b);
    const int16x8_t x0 = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(x)));
    const int16x8_t x1 = vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(x)));
    const int16x8_t y0 = vmovl_s8(vget_low_s8(y)), y1 = vmovl_s8(vget_high_s8(y));
    const int32x4_t low = vpaddq_s32(vmull_s16(vget_low_s16(x0), vget_low_s16(y0)),
                                     vmull_s16(vget_high_s16(x0), vget_high_s16(y0)));
    const int32x4_t high = vpaddq_s32(vmull_s16(vget_low_s16(x1), vget_low_s16(y1)),
                                      vmull_s16(vget_high_s16(x1), vget_high_s16(y1)));
    return vaddq_s32(c, vpaddq_s32(low, high));
}
V_INLINE vi v_dot4(vi c, vi x, vi y) {
    return (vi){ v_dot4_quarter(c.a, x.a, y.a), v_dot4_quarter(c.b, x.b, y.b),
                 v_dot4_quarter(c.c, x.c, y.c), v_dot4_quarter(c.d, x.d, y.d) };
}
V_BINARY(vi, vi_add, vi, vaddq_s32)
V_BINARY(vi, vi_sub, vi, vsubq_s32)
V_BINARY(vi, vi_and, vi, vandq_s32)
V_BINARY(vi, vi_or, vi, vorrq_s32)
V_BINARY(vi, vi_xor, vi, veorq_s32)
/* Of the intrinsics those by a variable shift to the left only; compilers know what n is. */
V_INLINE int32x4_t v_shr(int32x4_t q, int n) {
    return vreinterpretq_s32_u32(vreinterpretq_u32_s32(q) >> vdupq_n_u32((uint32_t)n));
}
V_INLINE vi vi_shl(vi x, int n) {
    const int32x4_t by = vdupq_n_s32(n);
    return (vi){ x.a << by, x.b << by, x.c << by, x.d << by };
}
V_INLINE vi vi_shr(vi x, int n) {
    return (vi){ v_shr(x.a, n), v_shr(x.b, n), v_shr(x.c, n), v_shr(x.d, n) };
}
V_INLINE vi vi_sar(vi x, int n) {
    const int32x4_t by = vdupq_n_s32(n);
    return (vi){ x.a >> by, x.b >> by, x.c >> by, x.d >> by };
}

V_INLINE int32x4_t v_mul_even(int32x4_t x, int32x4_t y) { /* narrowing leaves the even lanes */
    const uint32x2_t a = vmovn_u64(vreinterpretq_u64_s32(x)),
                     b = vmovn_u64(vreinterpretq_u64_s32(y));
    return vreinterpretq_s32_u64(vmull_u32(a, b));
}
V_INLINE int32x4_t v_odd(int32x4_t x) {
    return vreinterpretq_s32_u64(vshrq_n_u64(vreinterpretq_u64_s32(x), 32));
}
V_INLINE int32x4_t v_firsts(int32x4_t x, int32x4_t y) {
    return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(x), vreinterpretq_s64_s32(y)));
}
V_INLINE int32x4_t v_lasts(int32x4_t x, int32x4_t y) {
    return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(x), vreinterpretq_s64_s32(y)));
}
V_BINARY(vi, vi_mul_even, vi, v_mul_even)
V_UNARY(vi, vi_odd, vi, v_odd)
V_BINARY(vi, vi_evens, vi, vtrn1q_s32)
V_BINARY(vi, vi_firsts, vi, v_firsts)
V_BINARY(vi, vi_lasts, vi, v_lasts)

/* ---- truth values ---- */

V_BINARY(vm, vm_lt, vf, vcltq_f32)
V_BINARY(vm, vm_le, vf, vcleq_f32)
V_BINARY(vm, vm_eq, vf, vceqq_f32)
V_INLINE uint32x4_t v_ne(float32x4_t x, float32x4_t y) { return vmvnq_u32(vceqq_f32(x, y)); }
V_INLINE uint32x4_t v_nlt(float32x4_t x, float32x4_t y) { return vmvnq_u32(vcltq_f32(x, y)); }
V_BINARY(vm, vm_ne, vf, v_ne)
V_BINARY(vm, vm_nlt, vf, v_nlt)
V_INLINE uint32x4_t v_above(int32x4_t x, int32x4_t y) {
    return vcgtq_u32(vreinterpretq_u32_s32(x), vreinterpretq_u32_s32(y));
}
V_BINARY(vm, vm_above, vi, v_above)
V_BINARY(vm, vm_and, vm, vandq_u32)
V_BINARY(vm, vm_or, vm, vorrq_u32)
V_INLINE uint32x4_t v_bits(int first) { /* one bit in each lane, from bit `first` on */
    static const uint32_t low[4] = { 1, 2, 4, 8 };
    return vld1q_u32(low) << vdupq_n_u32((uint32_t)first);
}
V_INLINE vm vm_of_bits(uint32_t bits) {
    const uint32x4_t q = vdupq_n_u32(bits);
    return (vm){ vtstq_u32(q, v_bits(0)), vtstq_u32(q, v_bits(4)), vtstq_u32(q, v_bits(8)),
                 vtstq_u32(q, v_bits(12)) };
}
V_INLINE uint32_t vm_to_bits(vm m) {
    const uint32x4_t low = vorrq_u32(vandq_u32(m.a, v_bits(0)), vandq_u32(m.b, v_bits(4)));
    const uint32x4_t high = vorrq_u32(vandq_u32(m.c, v_bits(8)), vandq_u32(m.d, v_bits(12)));
    return vaddvq_u32(vorrq_u32(low, high));
}
V_INLINE vf vf_select(vm m, vf x, vf y) {
    return (vf){ vbslq_f32(m.a, x.a, y.a), vbslq_f32(m.b, x.b, y.b), vbslq_f32(m.c, x.c, y.c),
                 vbslq_f32(m.d, x.d, y.d) };
}
V_INLINE float32x4_t v_scale(uint32x4_t m, float32x4_t x, float32x4_t n) { /* NaN becomes 0 */
    const int32x4_t exponent = vshlq_n_s32(vcvtq_s32_f32(n), 23);
    const int32x4_t bits = vaddq_s32(vreinterpretq_s32_f32(x), exponent);
    return vreinterpretq_f32_u32(vandq_u32(m, vreinterpretq_u32_s32(bits)));
}
V_INLINE vf vf_scale_if(vm m, vf x, vf n) {
    return (vf){ v_scale(m.a, x.a, n.a), v_scale(m.b, x.b, n.b), v_scale(m.c, x.c, n.c),
                 v_scale(m.d, x.d, n.d) };
}
V_INLINE uint32_t v_equal(const int32_t *p, int32_t x, int n) {
    uint32_t bits = 0;
    int e = 0;
    for (; e + 4 <= n; e += 4)
        bits |= vaddvq_u32(vandq_u32(vceqq_s32(vld1q_s32(p + e), vdupq_n_s32(x)), v_bits(0))) << e;
    for (; e < n; e++) bits |= (uint32_t)(p[e] == x) << e;
    return bits;
}
V_INLINE uint32_t v_nonzero_bytes(const uint8_t *p) {
    static const uint8_t each[8] = { 1, 2, 4, 8, 16, 32, 64, 128 };
    const uint8x16_t x = vld1q_u8(p);
    const uint8x16_t bits = vandq_u8(vtstq_u8(x, x), vcombine_u8(vld1_u8(each), vld1_u8(each)));
    return vaddv_u8(vget_low_u8(bits)) | (uint32_t)vaddv_u8(vget_high_u8(bits)) << 8;
}

/* ---- across lanes ---- */

V_INLINE float vf_sum(vf x) {
    const float32x4_t y = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
    const float32x2_t z = vadd_f32(vget_low_f32(y), vget_high_f32(y));
    return vget_lane_f32(z, 0) + vget_lane_f32(z, 1);
}
/* Four rows of [4][16] to four lanes: levels 8 and 4 within a row, 2 for pairs, 1 for all. */
#define V_ROWS(name, op)                                                                           \
    V_INLINE float32x4_t name##_4(const float *p) {                                                \
        float32x4_t y[4], z[2];                                                                    \
        V_UNROLL(4) for (int i = 0; i < 4; i++) {                                                  \
            const vf x = vf_load(p + 16 * i);                                                      \
            y[i] = op(op(x.a, x.c), op(x.b, x.d));                                                 \
        }                                                                                          \
        V_UNROLL(2) for (int i = 0; i < 2; i++) {                                                  \
            const float64x2_t even = vreinterpretq_f64_f32(y[2 * i]);                              \
            const float64x2_t odd = vreinterpretq_f64_f32(y[2 * i + 1]);                           \
            z[i] = op(vreinterpretq_f32_f64(vzip1q_f64(even, odd)),                                \
                      vreinterpretq_f32_f64(vzip2q_f64(even, odd)));                               \
        }                                                                                          \
        return op(vuzp1q_f32(z[0], z[1]), vuzp2q_f32(z[0], z[1]));                                 \
    }                                                                                              \
    V_INLINE vf name(const float *p) {                                                             \
        return (vf){ name##_4(p), name##_4(p + 64), name##_4(p + 128), name##_4(p + 192) };        \
    }
V_ROWS(vf_sum_rows, vaddq_f32)
V_ROWS(vf_max_rows, v_max)

V_INLINE void v_transpose4(const float *src, int64_t ss, float *dst, int64_t ds) {
    const float32x4_t r0 = vld1q_f32(src), r1 = vld1q_f32(src + ss);
    const float32x4_t r2 = vld1q_f32(src + 2 * ss), r3 = vld1q_f32(src + 3 * ss);
    const float32x4_t t0 = vzip1q_f32(r0, r2), t1 = vzip2q_f32(r0, r2); /* 00 20 01 21, … */
    const float32x4_t t2 = vzip1q_f32(r1, r3), t3 = vzip2q_f32(r1, r3);
    vst1q_f32(dst, vzip1q_f32(t0, t2));
    vst1q_f32(dst + ds, vzip2q_f32(t0, t2));
    vst1q_f32(dst + 2 * ds, vzip1q_f32(t1, t3));
    vst1q_f32(dst + 3 * ds, vzip2q_f32(t1, t3));
}
V_INLINE void v_transpose(const float *src, int64_t src_stride, float *dst, int64_t dst_stride) {
    for (int r = 0; r < 16; r += 4)
        for (int c = 0; c < 16; c += 4)
            v_transpose4(src + r * src_stride + c, src_stride, dst + c * dst_stride + r,
                         dst_stride);
}
/*
 * tile_product_ahead announces nothing: what that is worth was never measured on such a processor,
 * and clang then keeps sums of tiles on the stack.
 */
#define V_SILENT 1
V_INLINE void v_prefetch(const void *p) { __builtin_prefetch(p, 0, 2); }
V_INLINE void v_prefetch_near(const void *p) { __builtin_prefetch(p, 0, 3); }

/* ---- eight numbers of 64 bits, the greatest first ---- */

typedef int64x2x4_t vr;

V_INLINE vr vr_load(const int64_t *p) { return vld1q_s64_x4(p); }
V_INLINE void vr_store(int64_t *p, vr a) { vst1q_s64_x4(p, a); }
V_INLINE int64_t vr_last(vr a) { return vgetq_lane_s64(a.val[3], 1); }
V_INLINE int64x2_t vr_place(int64x2_t before, int64x2_t a, int64x2_t x) {
    const int64x2_t next = vextq_s64(before, a, 1);
    const int64x2_t least = vbslq_s64(vcgtq_s64(next, x), x, next);
    return vbslq_s64(vcgtq_s64(least, a), least, a);
}
V_INLINE vr vr_insert(vr a, int64_t x) {
    const int64x2_t rank = vdupq_n_s64(x);
    int64x2_t before = vdupq_n_s64(INT64_MAX);
    for (int n = 0; n < 4; n++) {
        const int64x2_t own = a.val[n];
        a.val[n] = vr_place(before, own, rank);
        before = own;
    }
    return a;
}

#undef V_HALF
#undef V_HALF_N
#undef V_UNARY
#undef V_BINARY
#undef V_TERNARY
#undef V_ROWS
#endif
