/*
 * The two 16-bit types and floats, in integers: no libm, no compiler's type, the same bits
 * everywhere.
 *
 *     bf16   sign, 8 exponent bits, 7 of the fraction: the upper half of a float
 *     f16    sign, 5 exponent bits (bias 15), 10 of the fraction: IEEE binary16
 *
 * To float is exact. From float rounds once, to the nearest, in a tie to the even one: a carry out
 * of the fraction raises the exponent, and out of the greatest number makes an infinity, because
 * the encodings of neighbours are neighbours. A NaN stays a NaN, quiet when it comes from a float
 * or an f16, with the upper bits of its payload.
 */
#ifndef QKVI_CORE_HALF_H
#define QKVI_CORE_HALF_H

#include <stdint.h>
#include <string.h>

#include <qkv/qkv.h>

enum { QKVI_N_DTYPES = QKV_F16 + 1 }; /* of tables by qkv_dtype */

static inline int64_t qkvi_dtype_bytes(qkv_dtype type) { return type == QKV_F32 ? 4 : 2; }

static inline float qkvi_float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t qkvi_bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float qkvi_f32_of_bf16(uint16_t x) { return qkvi_float_of_bits((uint32_t)x << 16); }

static inline uint16_t qkvi_bf16_of_f32(float value) {
    const uint32_t bits = qkvi_bits_of_float(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

/*
 * A normal number moves its fraction up 13 bits and its exponent from bias 15 to 127; a subnormal
 * is its fraction times 2^-24, which a float holds.
 */
static inline float qkvi_f32_of_f16(uint16_t x) {
    const uint32_t sign = (uint32_t)(x & 0x8000u) << 16, fraction = x & 0x3FFu;
    const uint32_t exponent = x >> 10 & 31u;
    if (exponent == 31) {
        const uint32_t quiet = fraction ? 0x400000u : 0;
        return qkvi_float_of_bits(sign | 0x7F800000u | quiet | fraction << 13);
    }
    if (exponent) return qkvi_float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    const float magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

/*
 * Below 2^-14 the unit is 2^-24: the fraction with its leading 1 goes down by as many bits as the
 * exponent lacks, and by 13. From 2^-14 on it loses 13 bits, and the exponent its other bias.
 */
static inline uint16_t qkvi_f16_of_f32(float value) {
    const uint32_t bits = qkvi_bits_of_float(value), magnitude = bits & 0x7FFFFFFFu;
    const uint32_t sign = bits >> 16 & 0x8000u;
    if (magnitude > 0x7F800000u)
        return (uint16_t)(sign | 0x7E00u | (magnitude >> 13 & 0x3FFu)); /* NaN */
    if (magnitude >= 0x477FF000u) return (uint16_t)(sign | 0x7C00u);    /* from 65520 on */
    if (magnitude < 0x33000000u) return (uint16_t)sign; /* below 2^-25, half the least */
    uint32_t whole, drop = 13;
    if (magnitude >= 0x38800000u) {
        whole = magnitude - (112u << 23);
    } else {
        drop = 126 - (magnitude >> 23);
        whole = (magnitude & 0x7FFFFFu) | 0x800000u;
    }
    const uint32_t half = 1u << (drop - 1), odd = whole >> drop & 1u;
    return (uint16_t)(sign | (whole + half - 1 + odd) >> drop);
}

#endif
