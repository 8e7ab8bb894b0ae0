/*
 * The vector layer on AVX2, FMA and F16C: 16 lanes are two ymm. vec_scalar.h defines every
 * operation.
 */
#ifndef QKVI_VEC_AVX2_H
#define QKVI_VEC_AVX2_H

#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "vec_avx2.h needs -mavx2 -mfma -mf16c"
#endif

#include <immintrin.h>
#include <stdint.h>

#include "kernels/vec/unroll.h"

#define V_INLINE static inline __attribute__((always_inline, unused))
#define V_NAME   avx2
/*
 * Register tile 6 x 16: 12 ymm accumulate, 2 hold a row of B, 1 a broadcast element of A: 15 of 16.
 */
#define V_MR 6
#define V_NV 1

typedef struct {
    __m256 l, h;
} vf;
typedef struct {
    __m256i l, h;
} vi;
typedef struct {
    __m256 l, h; /* lanes of all ones or all zeros */
} vm;

/* ---- load and store ---- */

V_INLINE vf vf_set1(float x) { return (vf){ _mm256_set1_ps(x), _mm256_set1_ps(x) }; }
V_INLINE vf vf_loadu(const float *p) { return (vf){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) }; }
V_INLINE vf vf_load(const float *p) { return (vf){ _mm256_load_ps(p), _mm256_load_ps(p + 8) }; }
V_INLINE __m256i v_first(int n) { /* lanes below n */
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
V_INLINE vf vf_load_n(const float *p, int n) {
    return (vf){ _mm256_maskload_ps(p, v_first(n)), _mm256_maskload_ps(p + 8, v_first(n - 8)) };
}
V_INLINE vf vf_loadu_i8(const int8_t *p) {
    const __m128i x = _mm_loadu_si128((const __m128i *)p);
    return (vf){ _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x)),
                 _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(x, 8))) };
}

/*
 * Half of a vf, one register: for sums of which a vf each would take too many. Templates that have
 * such sums ask for V_HALVES.
 */
#define V_HALVES 1
typedef __m256 vh;
V_INLINE vh vh_zero(void) { return _mm256_setzero_ps(); }
V_INLINE vh vh_loadu(const float *p) { return _mm256_loadu_ps(p); }
/* One shuffle: a shift of lanes that were widened would wait for the units of FMA. */
V_INLINE vh vh_loadu_bf16(const uint16_t *p) {
    const __m256i x = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
    const __m256i upper =
        _mm256_setr_epi8(-1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7, -1, -1, 8, 9, -1,
                         -1, 10, 11, -1, -1, 12, 13, -1, -1, 14, 15);
    return _mm256_castsi256_ps(_mm256_shuffle_epi8(x, upper));
}
V_INLINE vh vh_loadu_f16(const uint16_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
V_INLINE vh vh_loadu_i8(const int8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
V_INLINE vh vh_fma(vh a, vh b, vh c) { return _mm256_fmadd_ps(a, b, c); }
V_INLINE void vh_store(float *p, vh a) { _mm256_store_ps(p, a); }

V_INLINE void vf_storeu(float *p, vf a) {
    _mm256_storeu_ps(p, a.l);
    _mm256_storeu_ps(p + 8, a.h);
}
V_INLINE void vf_store(float *p, vf a) {
    _mm256_store_ps(p, a.l);
    _mm256_store_ps(p + 8, a.h);
}
V_INLINE void vf_store_n(float *p, vf a, int n) {
    _mm256_maskstore_ps(p, v_first(n), a.l);
    _mm256_maskstore_ps(p + 8, v_first(n - 8), a.h);
}

/* ---- 16-bit types: 16 of them are one ymm ---- */

V_INLINE vf vf_loadu_bf16(const uint16_t *p) {
    return (vf){ vh_loadu_bf16(p), vh_loadu_bf16(p + 8) };
}
V_INLINE __m256i v_round_bf16(__m256 a) { /* in the lower half of each lane */
    const __m256i bits = _mm256_castps_si256(a), upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(_mm256_srli_epi32(up, 16), quiet, nan);
}
V_INLINE __m256i v_to_bf16(vf a) {
    const __m256i packed = _mm256_packus_epi32(v_round_bf16(a.l), v_round_bf16(a.h));
    return _mm256_permute4x64_epi64(packed, 0xD8); /* packing works within 128 bits */
}
V_INLINE vf vf_loadu_f16(const uint16_t *p) { return (vf){ vh_loadu_f16(p), vh_loadu_f16(p + 8) }; }
V_INLINE __m256i v_to_f16(vf a) { /* 0: nearest even */
    return _mm256_set_m128i(_mm256_cvtps_ph(a.h, 0), _mm256_cvtps_ph(a.l, 0));
}
#define V_HALF(type)                                                                               \
    V_INLINE vf vf_load_##type##_n(const uint16_t *p, int n) {                                     \
        uint16_t all[16] = { 0 };                                                                  \
        for (int e = 0; e < n; e++) all[e] = p[e];                                                 \
        return vf_loadu_##type(all);                                                               \
    }                                                                                              \
    V_INLINE void vf_storeu_##type(uint16_t *p, vf a) {                                            \
        _mm256_storeu_si256((__m256i *)p, v_to_##type(a));                                         \
    }                                                                                              \
    V_INLINE void vf_store_##type##_n(uint16_t *p, vf a, int n) {                                  \
        uint16_t all[16];                                                                          \
        vf_storeu_##type(all, a);                                                                  \
        for (int e = 0; e < n; e++) p[e] = all[e];                                                 \
    }
V_HALF(bf16)
V_HALF(f16)

/* ---- arithmetic ---- */

#define V_BINARY(name, op)                                                                         \
    V_INLINE vf name(vf a, vf b) { return (vf){ op(a.l, b.l), op(a.h, b.h) }; }
#define V_TERNARY(name, op)                                                                        \
    V_INLINE vf name(vf a, vf b, vf c) { return (vf){ op(a.l, b.l, c.l), op(a.h, b.h, c.h) }; }
V_BINARY(vf_add, _mm256_add_ps)
V_BINARY(vf_sub, _mm256_sub_ps)
V_BINARY(vf_mul, _mm256_mul_ps)
V_BINARY(vf_div, _mm256_div_ps)
V_BINARY(vf_max, _mm256_max_ps)
V_BINARY(vf_min, _mm256_min_ps)
V_TERNARY(vf_fma, _mm256_fmadd_ps)
V_TERNARY(vf_fms, _mm256_fmsub_ps)
V_TERNARY(vf_fnma, _mm256_fnmadd_ps)
V_INLINE vf vf_sqrt(vf a) { return (vf){ _mm256_sqrt_ps(a.l), _mm256_sqrt_ps(a.h) }; }

V_INLINE vf vf_round(vf a) { return (vf){ _mm256_round_ps(a.l, 8), _mm256_round_ps(a.h, 8) }; }

/* ---- integers and bits ---- */

V_INLINE vi vf_as_vi(vf a) { return (vi){ _mm256_castps_si256(a.l), _mm256_castps_si256(a.h) }; }
V_INLINE vf vi_as_vf(vi a) { return (vf){ _mm256_castsi256_ps(a.l), _mm256_castsi256_ps(a.h) }; }
V_INLINE vf vi_to_vf(vi a) { return (vf){ _mm256_cvtepi32_ps(a.l), _mm256_cvtepi32_ps(a.h) }; }
V_INLINE vi vi_set1(int32_t x) { return (vi){ _mm256_set1_epi32(x), _mm256_set1_epi32(x) }; }
V_INLINE vi vi_loadu(const int32_t *p) {
    return (vi){ _mm256_loadu_si256((const __m256i *)p),
                 _mm256_loadu_si256((const __m256i *)(p + 8)) };
}
V_INLINE void vi_storeu_i8(int8_t *p, vi a) {
    const __m256i x = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.l, a.h), 0xD8);
    _mm_storeu_si128((__m128i *)p,
                     _mm_packs_epi16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)));
}
/* Even and odd bytes apart, as 16-bit integers. */
V_INLINE __m256i v_dot4_half(__m256i c, __m256i a, __m256i b) {
    const __m256i even = _mm256_madd_epi16(_mm256_and_si256(a, _mm256_set1_epi32(0x00FF00FF)),
                                           _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
    const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8));
    return _mm256_add_epi32(c, _mm256_add_epi32(even, odd));
}
V_INLINE vi v_dot4(vi c, vi a, vi b) {
    return (vi){ v_dot4_half(c.l, a.l, b.l), v_dot4_half(c.h, a.h, b.h) };
}
#define V_INTEGER(name, op)                                                                        \
    V_INLINE vi name(vi a, vi b) { return (vi){ op(a.l, b.l), op(a.h, b.h) }; }
V_INTEGER(vi_add, _mm256_add_epi32)
V_INTEGER(vi_sub, _mm256_sub_epi32)
V_INTEGER(vi_and, _mm256_and_si256)
V_INTEGER(vi_or, _mm256_or_si256)
V_INTEGER(vi_xor, _mm256_xor_si256)
V_INLINE vi vi_shl(vi a, int n) {
    return (vi){ _mm256_slli_epi32(a.l, n), _mm256_slli_epi32(a.h, n) };
}
V_INLINE vi vi_shr(vi a, int n) {
    return (vi){ _mm256_srli_epi32(a.l, n), _mm256_srli_epi32(a.h, n) };
}
V_INLINE vi vi_sar(vi a, int n) {
    return (vi){ _mm256_srai_epi32(a.l, n), _mm256_srai_epi32(a.h, n) };
}

V_INTEGER(vi_mul_even, _mm256_mul_epu32)
V_INLINE vi vi_odd(vi a) { return (vi){ _mm256_srli_epi64(a.l, 32), _mm256_srli_epi64(a.h, 32) }; }
V_INLINE vi vi_evens(vi a, vi b) {
    return (vi){ _mm256_blend_epi32(a.l, _mm256_slli_epi64(b.l, 32), 0xAA),
                 _mm256_blend_epi32(a.h, _mm256_slli_epi64(b.h, 32), 0xAA) };
}
V_INTEGER(vi_firsts, _mm256_unpacklo_epi64)
V_INTEGER(vi_lasts, _mm256_unpackhi_epi64)

/* ---- truth values ---- */

#define V_COMPARE(name, predicate)                                                                 \
    V_INLINE vm name(vf a, vf b) {                                                                 \
        return (vm){ _mm256_cmp_ps(a.l, b.l, predicate), _mm256_cmp_ps(a.h, b.h, predicate) };     \
    }
V_COMPARE(vm_lt, _CMP_LT_OQ)
V_COMPARE(vm_le, _CMP_LE_OQ)
V_COMPARE(vm_eq, _CMP_EQ_OQ)
V_COMPARE(vm_ne, _CMP_NEQ_UQ)
V_COMPARE(vm_nlt, _CMP_NLT_UQ)
V_INLINE __m256 v_above(__m256i a, __m256i b) { /* as signed numbers, 2^31 less */
    const __m256i half = _mm256_set1_epi32(INT32_MIN);
    return _mm256_castsi256_ps(
        _mm256_cmpgt_epi32(_mm256_xor_si256(a, half), _mm256_xor_si256(b, half)));
}
V_INLINE vm vm_above(vi a, vi b) { return (vm){ v_above(a.l, b.l), v_above(a.h, b.h) }; }
V_INLINE vm vm_and(vm a, vm b) { return (vm){ _mm256_and_ps(a.l, b.l), _mm256_and_ps(a.h, b.h) }; }
V_INLINE vm vm_or(vm a, vm b) { return (vm){ _mm256_or_ps(a.l, b.l), _mm256_or_ps(a.h, b.h) }; }
V_INLINE __m256 v_spread(uint32_t bits) { /* 8 bits to 8 lanes */
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_castsi256_ps(
        _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), each), each));
}
V_INLINE vm vm_of_bits(uint32_t bits) { return (vm){ v_spread(bits), v_spread(bits >> 8) }; }
V_INLINE uint32_t vm_to_bits(vm a) {
    return (uint32_t)_mm256_movemask_ps(a.l) | (uint32_t)_mm256_movemask_ps(a.h) << 8;
}
V_INLINE vf vf_select(vm m, vf a, vf b) {
    return (vf){ _mm256_blendv_ps(b.l, a.l, m.l), _mm256_blendv_ps(b.h, a.h, m.h) };
}
V_INLINE __m256 v_scale(__m256 m, __m256 a,
                        __m256 n) { /* NaN becomes the integer 2^31 and that 0 */
    const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    const __m256i bits = _mm256_add_epi32(_mm256_castps_si256(a), exponent);
    return _mm256_and_ps(m, _mm256_castsi256_ps(bits));
}
V_INLINE vf vf_scale_if(vm m, vf a, vf n) {
    return (vf){ v_scale(m.l, a.l, n.l), v_scale(m.h, a.h, n.h) };
}
V_INLINE uint32_t v_equal(const int32_t *p, int32_t x, int n) {
    uint32_t bits = 0;
    int e = 0;
    for (; e + 8 <= n; e += 8) {
        const __m256i y = _mm256_loadu_si256((const __m256i *)(p + e));
        const __m256i same = _mm256_cmpeq_epi32(y, _mm256_set1_epi32(x));
        bits |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(same)) << e;
    }
    for (; e < n; e++) bits |= (uint32_t)(p[e] == x) << e;
    return bits;
}
V_INLINE uint32_t v_nonzero_bytes(const uint8_t *p) {
    const __m128i x = _mm_loadu_si128((const __m128i *)p);
    return 0xffffu ^ (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_setzero_si128()));
}

/* ---- across lanes ---- */

V_INLINE float vf_sum(vf a) {
    const __m256 x = _mm256_add_ps(a.l, a.h);
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}
/*
 * Eight rows of [8][16] to eight lanes: level 8 within a row, then 4, 2, 1 for pairs of rows at
 * once.
 */
#define V_ROWS(name, op)                                                                           \
    V_INLINE __m256 name##_8(const float *p) {                                                     \
        __m256 x[8], a[4], c[2];                                                                   \
        V_UNROLL(8)                                                                                \
        for (int i = 0; i < 8; i++)                                                                \
            x[i] = op(_mm256_load_ps(p + 16 * i), _mm256_load_ps(p + 16 * i + 8));                 \
        V_UNROLL(4)                                                                                \
        for (int i = 0; i < 4; i++)                                                                \
            a[i] = op(_mm256_permute2f128_ps(x[i], x[i + 4], 0x20),                                \
                      _mm256_permute2f128_ps(x[i], x[i + 4], 0x31)); /* rows i | i + 4 */          \
        V_UNROLL(2)                                                                                \
        for (int i = 0; i < 2; i++)                                                                \
            c[i] = op(_mm256_shuffle_ps(a[i], a[i + 2], 0x44),                                     \
                      _mm256_shuffle_ps(a[i], a[i + 2], 0xEE)); /* rows i, i + 2 | i + 4, i + 6 */ \
        const __m256 d = op(_mm256_shuffle_ps(c[0], c[1], 0x88),                                   \
                            _mm256_shuffle_ps(c[0], c[1], 0xDD)); /* 0 2 1 3 | 4 6 5 7 */          \
        return _mm256_permute_ps(d, 0xD8);                                                         \
    }                                                                                              \
    V_INLINE vf name(const float *p) { return (vf){ name##_8(p), name##_8(p + 128) }; }
V_ROWS(vf_sum_rows, _mm256_add_ps)
V_ROWS(vf_max_rows, _mm256_max_ps)

V_INLINE void v_transpose8(const float *src, int64_t ss, float *dst, int64_t ds) {
    __m256 a[8], b[8];
    V_UNROLL(8) for (int i = 0; i < 8; i++) a[i] = _mm256_loadu_ps(src + i * ss);
    V_UNROLL(4) for (int i = 0; i < 8; i += 2) {
        b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
    }
    V_UNROLL(2) for (int i = 0; i < 8; i += 4) {
        a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
        a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xEE);
        a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
        a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xEE);
    }
    V_UNROLL(4) for (int i = 0; i < 4; i++) {
        _mm256_store_ps(dst + i * ds, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_store_ps(dst + (i + 4) * ds, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
}
V_INLINE void v_transpose(const float *src, int64_t src_stride, float *dst, int64_t dst_stride) {
    for (int r = 0; r < 16; r += 8)
        for (int c = 0; c < 16; c += 8)
            v_transpose8(src + r * src_stride + c, src_stride, dst + c * dst_stride + r,
                         dst_stride);
}
V_INLINE void v_prefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T1); }
V_INLINE void v_prefetch_near(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }

/* ---- eight numbers of 64 bits, the greatest first ---- */

typedef struct vr {
    __m256i h[2];
} vr;

V_INLINE vr vr_load(const int64_t *p) {
    const __m256i *q = (const __m256i *)p;
    return (vr){ { _mm256_load_si256(q), _mm256_load_si256(q + 1) } };
}
V_INLINE void vr_store(int64_t *p, vr a) {
    _mm256_store_si256((__m256i *)p, a.h[0]);
    _mm256_store_si256((__m256i *)p + 1, a.h[1]);
}
V_INLINE int64_t vr_last(vr a) { return _mm256_extract_epi64(a.h[1], 3); }
V_INLINE __m256i vr_min(__m256i a, __m256i b) {
    return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b));
}
V_INLINE __m256i vr_max(__m256i a, __m256i b) {
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
}
V_INLINE vr vr_insert(vr a, int64_t x) {
    const __m256i rank = _mm256_set1_epi64x(x);
    const __m256i low = _mm256_permute4x64_epi64(a.h[0], 0x93); /* 3 0 1 2 */
    const __m256i high = _mm256_permute4x64_epi64(a.h[1], 0x93);
    const __m256i first = _mm256_blend_epi32(low, _mm256_set1_epi64x(INT64_MAX), 3);
    const __m256i second = _mm256_blend_epi32(high, low, 3);
    return (vr){ { vr_max(vr_min(first, rank), a.h[0]), vr_max(vr_min(second, rank), a.h[1]) } };
}

#undef V_HALF
#undef V_BINARY
#undef V_TERNARY
#undef V_INTEGER
#undef V_COMPARE
#undef V_ROWS
#endif
