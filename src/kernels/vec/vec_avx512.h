/*
 * The vector layer on AVX-512 (F, BW, VL, DQ): 16 lanes are one zmm, truth values are mask
 * registers. vec_scalar.h defines every operation.
 */
#ifndef QKVI_VEC_AVX512_H
#define QKVI_VEC_AVX512_H

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512VL__) ||                   \
    !defined(__AVX512DQ__)
#error "vec_avx512.h needs -mavx512f -mavx512bw -mavx512vl -mavx512dq"
#endif

#include <immintrin.h>
#include <stdint.h>

#include "kernels/vec/unroll.h"

#define V_INLINE static inline __attribute__((always_inline, unused))
#define V_NAME   avx512
/*
 * Register tile 12 x 32: 24 zmm accumulate, 2 hold a row of B, 1 a broadcast element of A: 27 of
 * 32.
 */
#define V_MR 12
#define V_NV 2

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

/* ---- load and store ---- */

V_INLINE vf vf_set1(float x) { return _mm512_set1_ps(x); }
V_INLINE vf vf_loadu(const float *p) { return _mm512_loadu_ps(p); }
V_INLINE vf vf_load(const float *p) { return _mm512_load_ps(p); }
V_INLINE vm v_first(int n) { return (vm)((1u << n) - 1u); } /* lanes below n */
V_INLINE vf vf_load_n(const float *p, int n) { return _mm512_maskz_loadu_ps(v_first(n), p); }
V_INLINE vf vf_loadu_i8(const int8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
V_INLINE void vf_storeu(float *p, vf a) { _mm512_storeu_ps(p, a); }
V_INLINE void vf_store(float *p, vf a) { _mm512_store_ps(p, a); }
V_INLINE void vf_store_n(float *p, vf a, int n) { _mm512_mask_storeu_ps(p, v_first(n), a); }

/* ---- 16-bit types ---- */

V_INLINE vf v_from_bf16(__m256i x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}
V_INLINE __m256i v_to_bf16(vf a) {
    const __m512i bits = _mm512_castps_si512(a), upper = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    const __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    const __m512i rounded = _mm512_srli_epi32(up, 16);
    return _mm512_cvtepi32_epi16(
        _mm512_mask_or_epi32(rounded, nan, upper, _mm512_set1_epi32(0x40)));
}
V_INLINE vf v_from_f16(__m256i x) { return _mm512_cvtph_ps(x); }
V_INLINE __m256i v_to_f16(vf a) { return _mm512_cvtps_ph(a, 8); } /* nearest even, no exceptions */
#define V_HALF(type)                                                                               \
    V_INLINE vf vf_loadu_##type(const uint16_t *p) {                                               \
        return v_from_##type(_mm256_loadu_si256((const __m256i *)p));                              \
    }                                                                                              \
    V_INLINE vf vf_load_##type##_n(const uint16_t *p, int n) {                                     \
        return v_from_##type(_mm256_maskz_loadu_epi16(v_first(n), p));                             \
    }                                                                                              \
    V_INLINE void vf_storeu_##type(uint16_t *p, vf a) {                                            \
        _mm256_storeu_si256((__m256i *)p, v_to_##type(a));                                         \
    }                                                                                              \
    V_INLINE void vf_store_##type##_n(uint16_t *p, vf a, int n) {                                  \
        _mm256_mask_storeu_epi16(p, v_first(n), v_to_##type(a));                                   \
    }
V_HALF(bf16)
V_HALF(f16)

/* ---- arithmetic ---- */

V_INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
V_INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
V_INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
V_INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
V_INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
V_INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
V_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
V_INLINE vf vf_fms(vf a, vf b, vf c) { return _mm512_fmsub_ps(a, b, c); }
V_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
V_INLINE vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }

V_INLINE vf vf_round(vf a) { return _mm512_roundscale_ps(a, 8); }

/* ---- pairs of bf16: tmpl/dp.h ---- */

#ifdef __AVX512BF16__
#define V_HAS_DP
V_INLINE vf v_dp(vf c, vi a, vi b) { return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b); }
V_INLINE vi dp_store(uint16_t *p, vf x0, vf x1) {
    const vi pairs = (vi)_mm512_cvtne2ps_pbh(x1, x0);
    _mm512_storeu_si512(p, pairs);
    return pairs;
}
V_INLINE vi dp_round(vf x0, vf x1) { return (vi)_mm512_cvtne2ps_pbh(x1, x0); }
V_INLINE vi dp_weave(vi halves) {
    static const _Alignas(64)
        uint16_t order[32] = { 0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                               8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31 };
    return _mm512_permutexvar_epi16(_mm512_load_si512(order), halves);
}
V_INLINE void dp_part(vi halves, uint16_t *first, uint16_t *second) {
    _mm256_storeu_si256((__m256i *)first, _mm512_castsi512_si256(halves));
    _mm256_storeu_si256((__m256i *)second, _mm512_extracti64x4_epi64(halves, 1));
}
#endif

/* ---- integers and bits ---- */

V_INLINE vi vf_as_vi(vf a) { return _mm512_castps_si512(a); }
V_INLINE vf vi_as_vf(vi a) { return _mm512_castsi512_ps(a); }
V_INLINE vf vi_to_vf(vi a) { return _mm512_cvtepi32_ps(a); }
V_INLINE vi vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
V_INLINE vi vi_loadu(const int32_t *p) { return _mm512_loadu_si512(p); }
V_INLINE void vi_storeu_i8(int8_t *p, vi a) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(a));
}
#ifdef __AVX512VNNI__
/* Of the intrinsic gcc 12 copies c for each product: 83 instead of 162 products a nanosecond. */
V_INLINE vi v_dot4(vi c, vi a, vi b) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
#else
/* Even and odd bytes apart, as 16-bit integers. */
V_INLINE vi v_dot4(vi c, vi a, vi b) {
    const __m512i even = _mm512_madd_epi16(_mm512_and_si512(a, _mm512_set1_epi32(0x00FF00FF)),
                                           _mm512_srai_epi16(_mm512_slli_epi16(b, 8), 8));
    const __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(a, 8), _mm512_srai_epi16(b, 8));
    return _mm512_add_epi32(c, _mm512_add_epi32(even, odd));
}
#endif
V_INLINE vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
V_INLINE vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
V_INLINE vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
V_INLINE vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
V_INLINE vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
V_INLINE vi vi_shl(vi a, int n) { return _mm512_slli_epi32(a, (unsigned)n); }
V_INLINE vi vi_shr(vi a, int n) { return _mm512_srli_epi32(a, (unsigned)n); }
V_INLINE vi vi_sar(vi a, int n) { return _mm512_srai_epi32(a, (unsigned)n); }

V_INLINE vi vi_mul_even(vi a, vi b) { return _mm512_mul_epu32(a, b); }
V_INLINE vi vi_odd(vi a) { return _mm512_srli_epi64(a, 32); }
V_INLINE vi vi_evens(vi a, vi b) { return _mm512_mask_shuffle_epi32(a, 0xAAAA, b, _MM_PERM_CCAA); }
V_INLINE vi vi_firsts(vi a, vi b) { return _mm512_unpacklo_epi64(a, b); }
V_INLINE vi vi_lasts(vi a, vi b) { return _mm512_unpackhi_epi64(a, b); }

/* ---- truth values ---- */

V_INLINE vm vm_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
V_INLINE vm vm_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
V_INLINE vm vm_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
V_INLINE vm vm_ne(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }
V_INLINE vm vm_nlt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ); }
V_INLINE vm vm_above(vi a, vi b) { return _mm512_cmpgt_epu32_mask(a, b); }
V_INLINE vm vm_and(vm a, vm b) { return (vm)(a & b); }
V_INLINE vm vm_or(vm a, vm b) { return (vm)(a | b); }
V_INLINE vm vm_of_bits(uint32_t bits) { return (vm)bits; }
V_INLINE uint32_t vm_to_bits(vm a) { return a; }
V_INLINE vf vf_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
V_INLINE vf vf_scale_if(vm m, vf a, vf n) { return _mm512_maskz_scalef_ps(m, a, n); }
V_INLINE uint32_t v_equal(const int32_t *p, int32_t x, int n) {
    const __m512i same = _mm512_set1_epi32(x);
    const __mmask16 low = v_first(n < 16 ? n : 16), high = v_first(n > 16 ? n - 16 : 0);
    const __m512i a = _mm512_maskz_loadu_epi32(low, p);
    const __m512i b = _mm512_maskz_loadu_epi32(high, high ? p + 16 : p);
    return (uint32_t)_mm512_mask_cmpeq_epi32_mask(low, a, same) |
           (uint32_t)_mm512_mask_cmpeq_epi32_mask(high, b, same) << 16;
}
V_INLINE uint32_t v_nonzero_bytes(const uint8_t *p) {
    const __m128i x = _mm_loadu_si128((const __m128i *)p);
    return _mm_test_epi8_mask(x, x);
}

/* ---- across lanes ---- */

V_INLINE float vf_sum(vf a) {
    const __m256 x = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}
/*
 * Each level halves the partial values of a row and the number of vectors: 16 vectors, 8, 4, 2, 1.
 */
#define V_ROWS(name, op)                                                                           \
    V_INLINE vf name(const float *p) {                                                             \
        __m512 a[8], b[4], c[2];                                                                   \
        V_UNROLL(8) for (int i = 0; i < 8; i++) { /* rows i | i + 8 */                             \
            const __m512 x = _mm512_load_ps(p + 16 * i), y = _mm512_load_ps(p + 16 * (i + 8));     \
            a[i] = op(_mm512_shuffle_f32x4(x, y, 0x44), _mm512_shuffle_f32x4(x, y, 0xEE));         \
        }                                                                                          \
        V_UNROLL(4)                                                                                \
        for (int i = 0; i < 4; i++)                                                                \
            b[i] = /* i, i + 8, i + 4, i + 12 */                                                   \
                op(_mm512_shuffle_f32x4(a[i], a[i + 4], 0x88),                                     \
                   _mm512_shuffle_f32x4(a[i], a[i + 4], 0xDD));                                    \
        V_UNROLL(2)                                                                                \
        for (int i = 0; i < 2; i++)                                                                \
            c[i] = op(_mm512_shuffle_ps(b[i], b[i + 2], 0x44),                                     \
                      _mm512_shuffle_ps(b[i], b[i + 2], 0xEE));                                    \
        const __m512 d =                                                                           \
            op(_mm512_shuffle_ps(c[0], c[1], 0x88), _mm512_shuffle_ps(c[0], c[1], 0xDD));          \
        /* lane 4g + e holds row {0, 8, 4, 12}[g] + {0, 2, 1, 3}[e] */                             \
        return _mm512_permutexvar_ps(                                                              \
            _mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15), d);           \
    }
V_ROWS(vf_sum_rows, _mm512_add_ps)
V_ROWS(vf_max_rows, _mm512_max_ps)

/*
 * The first two levels of vf_max_rows for four rows, so that a register tile has a fourth of the
 * maxima to store: of 36 stores after it some waited, of 27 none does. Lanes 4e … 4e + 3: row e.
 */
#define V_TOPS 4
V_INLINE vf vf_max_four(vf a, vf b, vf c, vf d) {
    const vf x = vf_max(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
    const vf y = vf_max(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xEE));
    return vf_max(_mm512_shuffle_f32x4(x, y, 0x88), _mm512_shuffle_f32x4(x, y, 0xDD));
}
/* The other two, for 16 rows: p is four of those vectors. */
V_INLINE vf vf_max_rest(const float *p) {
    const vf a = vf_load(p), b = vf_load(p + 16), c = vf_load(p + 32), d = vf_load(p + 48);
    const vf x = vf_max(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
    const vf y = vf_max(_mm512_shuffle_ps(c, d, 0x44), _mm512_shuffle_ps(c, d, 0xEE));
    const vf z = vf_max(_mm512_shuffle_ps(x, y, 0x88), _mm512_shuffle_ps(x, y, 0xDD));
    /* lane 4g + e holds row 4e + g */
    return _mm512_permutexvar_ps(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), z);
}

/*
 * Four columns of 16 rows at a time: row i + 4e in 128-bit lane e, then a 4 x 4 transpose within
 * every lane.
 */
V_INLINE void v_transpose(const float *src, int64_t src_stride, float *dst, int64_t dst_stride) {
    V_UNROLL(4) for (int g = 0; g < 4; g++) {
        __m512 a[4];
        V_UNROLL(4) for (int i = 0; i < 4; i++) {
            const float *s = src + i * src_stride + 4 * g;
            __m512 x = _mm512_castps128_ps512(_mm_loadu_ps(s));
            x = _mm512_insertf32x4(x, _mm_loadu_ps(s + 4 * src_stride), 1);
            x = _mm512_insertf32x4(x, _mm_loadu_ps(s + 8 * src_stride), 2);
            a[i] = _mm512_insertf32x4(x, _mm_loadu_ps(s + 12 * src_stride), 3);
        }
        const __m512d t0 = _mm512_castps_pd(_mm512_unpacklo_ps(a[0], a[1]));
        const __m512d t1 = _mm512_castps_pd(_mm512_unpackhi_ps(a[0], a[1]));
        const __m512d t2 = _mm512_castps_pd(_mm512_unpacklo_ps(a[2], a[3]));
        const __m512d t3 = _mm512_castps_pd(_mm512_unpackhi_ps(a[2], a[3]));
        float *d = dst + 4 * g * dst_stride;
        _mm512_store_ps(d, _mm512_castpd_ps(_mm512_unpacklo_pd(t0, t2)));
        _mm512_store_ps(d + dst_stride, _mm512_castpd_ps(_mm512_unpackhi_pd(t0, t2)));
        _mm512_store_ps(d + 2 * dst_stride, _mm512_castpd_ps(_mm512_unpacklo_pd(t1, t3)));
        _mm512_store_ps(d + 3 * dst_stride, _mm512_castpd_ps(_mm512_unpackhi_pd(t1, t3)));
    }
}
V_INLINE void v_prefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T1); }
V_INLINE void v_prefetch_near(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }

/* ---- eight numbers of 64 bits, the greatest first ---- */

typedef __m512i vr;

V_INLINE vr vr_load(const int64_t *p) { return _mm512_load_si512(p); }
V_INLINE void vr_store(int64_t *p, vr a) { _mm512_store_si512(p, a); }
V_INLINE int64_t vr_last(vr a) { return _mm_extract_epi64(_mm512_extracti64x2_epi64(a, 3), 1); }
V_INLINE vr vr_insert(vr a, int64_t x) {
    const __m512i next = _mm512_alignr_epi64(a, _mm512_set1_epi64(INT64_MAX), 7);
    const __m512i rank = _mm512_set1_epi64(x); /* minima and maxima take 6 cycles each */
    const __m512i least = _mm512_mask_mov_epi64(rank, _mm512_cmplt_epi64_mask(next, rank), next);
    return _mm512_mask_mov_epi64(a, _mm512_cmplt_epi64_mask(a, rank), least);
}

#undef V_HALF
#undef V_ROWS
#endif
