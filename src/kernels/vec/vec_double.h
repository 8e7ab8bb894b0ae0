/*
 * Doubles, for kernels in which a float is too short: vectors of the compiler's own, as wide as the
 * instruction set of this object, so that each gets its instructions from one text. Operations on
 * lanes are those of IEEE 754, one rounding each, nothing is fused: all have the same bits.
 *
 * A row of numbers has eight virtual lanes, element j in lane j mod 8. A kernel goes over the row
 * once for each VD_WIDTH of them.
 */
#ifndef QKVI_VEC_DOUBLE_H
#define QKVI_VEC_DOUBLE_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VD_BYTES 64
#elif defined(__AVX__)
#define VD_BYTES 32
#else
#define VD_BYTES 16
#endif

enum { VD_LANES = 8, VD_WIDTH = VD_BYTES / 8 };

typedef double vd __attribute__((vector_size(VD_BYTES)));
typedef float vd_floats __attribute__((vector_size(VD_BYTES / 2)));
typedef int64_t vl __attribute__((vector_size(VD_BYTES))); /* truth values are 0 and -1 */
typedef uint64_t vu __attribute__((vector_size(VD_BYTES)));

#define VD_INLINE static inline __attribute__((always_inline, unused))

/* A lane each, of a(0), a(1), …: written out, since compilers make inserts of a loop. */
#if VD_BYTES == 64
#define VD_EACH(a)                                                                                 \
    { a(0), a(1), a(2), a(3), a(4), a(5), a(6), a(7) }
#elif VD_BYTES == 32
#define VD_EACH(a)                                                                                 \
    { a(0), a(1), a(2), a(3) }
#else
#define VD_EACH(a)                                                                                 \
    { a(0), a(1) }
#endif

VD_INLINE vd vd_set1(double x) {
#define VD_SAME(l) x
    return (vd)VD_EACH(VD_SAME);
}
VD_INLINE vl vl_set1(int64_t x) { return (vl)VD_EACH(VD_SAME); }
/* x, x + 1, … */
VD_INLINE vl vl_from(int64_t x) {
#define VD_NEXT(l) x + (l)
    return (vl)VD_EACH(VD_NEXT);
}
VD_INLINE vd vd_load(const double *p) {
    vd a;
    memcpy(&a, p, sizeof a);
    return a;
}
/* p[2 at[0]], p[2 at[1]], …: one coordinate of points in the plane. */
VD_INLINE vd vd_gather2(const double *p, const int32_t *at) {
#define VD_PICKED(l) p[2 * (int64_t)at[l]]
    return (vd)VD_EACH(VD_PICKED);
}
VD_INLINE void vd_store(double *p, vd a) { memcpy(p, &a, sizeof a); }
VD_INLINE vd vd_load_floats(const float *p) {
    vd_floats a;
    memcpy(&a, p, sizeof a);
    return __builtin_convertvector(a, vd);
}
/* Rounded to the nearest floats. */
VD_INLINE void vd_store_floats(float *p, vd a) {
    const vd_floats x = __builtin_convertvector(a, vd_floats);
    memcpy(p, &x, sizeof x);
}
VD_INLINE vd vd_keep(vl m, vd a) { return (vd)(m & (vl)a); } /* 0 elsewhere */
VD_INLINE vd vd_select(vl m, vd a, vd b) { return (vd)((m & (vl)a) | (~m & (vl)b)); }
/* Whether it is true anywhere. */
VD_INLINE int vl_any(vl m) {
#if defined(__AVX512F__)
    return _mm512_test_epi64_mask((__m512i)m, (__m512i)m) != 0;
#elif defined(__AVX__)
    return !_mm256_testz_si256((__m256i)m, (__m256i)m);
#else
    return (m[0] | m[1]) != 0;
#endif
}

/* The eight lanes of a row. */
VD_INLINE double vd_tree(const double a[VD_LANES]) {
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

/*
 * e^x for x <= 0; exactly 0 below -708, where results would become subnormal. n = x log2 e to the
 * nearest integer, by adding 1.5 2^52; r = x - n ln 2, ln 2 in two parts, of which the first times
 * n is exact; e^r by its series, of which the first term left out, r^14 / 14!, is below 5e-18.
 */
VD_INLINE vd vd_exp(vd x) {
    const vd magic = vd_set1(0x1.8p52);
    const vd shifted = x * vd_set1(0x1.71547652b82fep+0) + magic;
    const vd n = shifted - magic;
    const vd r = (x - n * vd_set1(0x1.62e42fee00000p-1)) - n * vd_set1(0x1.a39ef35793c76p-33);
    vd p = vd_set1(1.0 / 6227020800);
    p = p * r + vd_set1(1.0 / 479001600);
    p = p * r + vd_set1(1.0 / 39916800);
    p = p * r + vd_set1(1.0 / 3628800);
    p = p * r + vd_set1(1.0 / 362880);
    p = p * r + vd_set1(1.0 / 40320);
    p = p * r + vd_set1(1.0 / 5040);
    p = p * r + vd_set1(1.0 / 720);
    p = p * r + vd_set1(1.0 / 120);
    p = p * r + vd_set1(1.0 / 24);
    p = p * r + vd_set1(1.0 / 6);
    p = p * r + vd_set1(0.5);
    p = p * r + vd_set1(1);
    p = p * r + vd_set1(1);
    const vd y = (vd)((vu)p + ((vu)shifted << 52)); /* the low bits of shifted are n */
    return vd_keep(x >= vd_set1(-708), y);
}

/* The same of one number. */
VD_INLINE double vd_exp_one(double x) { return vd_exp(vd_set1(x))[0]; }

/*
 * ln x for normal x > 0: x = 2^e m, m in [√½, √2); ln m = 2 artanh s, s = (m - 1) / (m + 1), by its
 * series in s^2 < 0.0295, of which the first term left out is below 4e-18 of the sum.
 */
VD_INLINE vd vd_log(vd x) {
    const vl half = vl_set1(0x3fe6a09e667f3bcd); /* √½ */
    const vl e = ((vl)x - half) >> 52;
    const vd m = (vd)((vu)x - ((vu)e << 52));
    const vd magic = vd_set1(0x1.8p52);
    const vd exponent = (vd)((vl)magic + e) - magic;
    const vd s = (m - vd_set1(1)) / (m + vd_set1(1)), z = s * s;
    vd p = vd_set1(1.0 / 21);
    p = p * z + vd_set1(1.0 / 19);
    p = p * z + vd_set1(1.0 / 17);
    p = p * z + vd_set1(1.0 / 15);
    p = p * z + vd_set1(1.0 / 13);
    p = p * z + vd_set1(1.0 / 11);
    p = p * z + vd_set1(1.0 / 9);
    p = p * z + vd_set1(1.0 / 7);
    p = p * z + vd_set1(1.0 / 5);
    p = p * z + vd_set1(1.0 / 3);
    const vd low = exponent * vd_set1(0x1.a39ef35793c76p-33) + (s + s) * (p * z);
    return exponent * vd_set1(0x1.62e42fee00000p-1) + ((s + s) + low);
}

#endif
