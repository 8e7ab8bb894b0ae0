/*
 * a b + c of floats, rounded once: fusedMultiplyAdd of IEEE 754. Where the compiler may use an
 * instruction for it, qkvi_fmaf is that instruction; elsewhere it is computed here. It does not
 * call fmaf of the C library, which is slow where it is right, and not right everywhere: those of
 * musl, of WASI and of Windows err where a b + c lies next to the middle of two subnormal floats.
 *
 * A product of two floats is exact in double: 24 + 24 bits are 48, and its exponent fits. Let s be
 * its sum with c, rounded to the 53 bits of a double. Whatever separates floats that round
 * differently, the middle of two neighbours, has at most 25 bits, so 28 zeros at its end as a
 * double, fewer bits still where floats are subnormal, and rounding to a double does not go past
 * it. So unless the last 28 bits of s are zeros, which is one of 2^28 sums of ordinary numbers, s
 * rounds to the float that the exact sum rounds to.
 *
 * Otherwise e is exactly what rounding took away from s (TwoSum; Knuth, TAOCP 2, 4.2.2, theorem B).
 * If e is not 0, s is replaced by the neighbour towards the exact sum whose last bit is 1, which is
 * the sum rounded to odd. Rounded once more that is the sum rounded once (Boldo and Melquiond,
 * "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE
 * Transactions on Computers 57, 2008). Neither s nor e over- or underflows: the sums are below
 * 2^257, and multiples of 2^-298. Where s is infinite or NaN, e is NaN and s stays as it is.
 */
#ifndef QKVI_CORE_FMA_H
#define QKVI_CORE_FMA_H

#include <float.h>
#include <stdint.h>
#include <string.h>

/*
 * What the proof needs of the compiler. The processor's part, rounding to nearest without flushing
 * to zero, is set before every computation (core/fpstate.h); unit_core_fma finds a build that
 * reorders.
 */
#if defined(__FAST_MATH__) || FLT_EVAL_METHOD != 0
#error "floats must be computed as IEEE 754 says, without -ffast-math and without x87"
#endif
_Static_assert(FLT_MANT_DIG == 24 && DBL_MANT_DIG == 53 && DBL_MAX_EXP == 1024, "IEEE 754");

/* The sum in double, and a number whose bit 63 says that its last 28 bits are zeros. */
static inline double qkvi_fmaf_sum(float a, float b, float c) {
    return (double)a * (double)b + (double)c;
}
static inline uint64_t qkvi_fmaf_in_doubt(double s) {
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    return (bits & 0x0FFFFFFF) - 1;
}

/* Of NaNs the bits may differ from those of an instruction. */
static inline float qkvi_fmaf_to_odd(float a, float b, float c) {
    const double product = (double)a * (double)b, addend = (double)c, s = product + addend;
    const double added = s - product;
    const double e = (product - (s - added)) + (addend - added);
    const double outward = e * s; /* > 0: s is too near to 0 */
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    bits = (bits - (outward < 0)) | (outward < 0) | (outward > 0);
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return (float)odd;
}
static inline float qkvi_fmaf_computed(float a, float b, float c) {
    const double s = qkvi_fmaf_sum(a, b, c);
    return qkvi_fmaf_in_doubt(s) >> 63 ? qkvi_fmaf_to_odd(a, b, c) : (float)s;
}

#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define QKVI_FMA_INSTRUCTION 1
static inline float qkvi_fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
#define QKVI_FMA_INSTRUCTION 0
static inline float qkvi_fmaf(float a, float b, float c) { return qkvi_fmaf_computed(a, b, c); }
#endif

#endif
