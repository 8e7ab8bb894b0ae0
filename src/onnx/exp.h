/*
 * exp and tanh of a double. Not those of libm, whose bits differ between versions.
 *
 *     x = n ln 2 + r,  |r| <= ln 2 / 2     exp(x) = 2^n (1 + e),  e = r + r^2/2! + ... + r^13/13!
 *     tanh(x) = t / (t + 2),  t = exp(2x) - 1 = 2^n e + (2^n - 1)
 * (Cody and Waite 1980.) ln 2 is split into 33 bits and a rest, so that n ln 2 is exact enough. The
 * terms that e leaves out are below 2^-57 of the result. Errors are at most 2 units in the last
 * place for exp, and 3 for tanh (tests/onnx/test_attention_onnx_parts.c).
 */
#ifndef QKVI_ONNX_EXP_H
#define QKVI_ONNX_EXP_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* 2^n for a normal power. */
static inline double qkvi_onnx_power(int64_t n) {
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* exp(x) - 1 = 2^n e + (2^n - 1). |x| < 2^20. */
static inline double qkvi_onnx_reduced(double x, int64_t *n) {
    static const double factors[] = { 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800,
                                      1.0 / 3628800,    1.0 / 362880,    1.0 / 40320,
                                      1.0 / 5040,       1.0 / 720,       1.0 / 120,
                                      1.0 / 24,         1.0 / 6,         1.0 / 2 };
    const double whole = floor(x * 1.4426950408889634074 + 0.5);
    const double high = x - whole * 6.93147180369123816490e-01,
                 low = whole * 1.90821492927058770002e-10;
    const double r = high - low, lost = (high - r) - low;
    double sum = factors[0];
    for (int i = 1; i < (int)(sizeof factors / sizeof *factors); i++) sum = sum * r + factors[i];
    *n = (int64_t)whole;
    return r + (lost + r * r * sum);
}

static inline double qkvi_onnx_exp(double x) {
    int64_t n;
    if (!(x < 709.8)) return isnan(x) ? x : INFINITY;
    if (x < -745.2) return 0;
    const double e = qkvi_onnx_reduced(x, &n), m = 1 + e;
    /* Two powers: one alone may be no normal number. */
    return m * qkvi_onnx_power(n / 2) * qkvi_onnx_power(n - n / 2);
}

static inline double qkvi_onnx_tanh(double x) {
    int64_t n;
    const double size = fabs(x);
    if (!(size < 22)) return isnan(x) ? x : copysign(1, x);
    const double e = qkvi_onnx_reduced(2 * size, &n), power = qkvi_onnx_power(n);
    const double t = power * e + (power - 1);
    return copysign(t / (t + 2), x);
}

#endif
