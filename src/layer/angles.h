/*
 * Sines, cosines, exponentials and logarithms in double by series, so that the bits of positions do
 * not depend on the libm. Errors are a few 1e-16 of the argument, far below half an ulp of a float.
 */
#ifndef QKVI_LAYER_ANGLES_H
#define QKVI_LAYER_ANGLES_H

#include <math.h>
#include <stdint.h>

#define QKVI_LN_2_HIGH 0x1.62e42fefa0000p-1 /* ln 2 = high + low; small multiples are exact */
#define QKVI_LN_2_LOW  0x1.cf79abc9e3b3ap-40

#define QKVI_PI_HALF_HIGH                                                                          \
    0x1.921fb54400000p+0 /* π/2 = high + low; multiples of high up to 2^20 are exact */
#define QKVI_PI_HALF_LOW 0x1.0b4611a626331p-34
/* sum of (sign)^m x^(first + 2m) / (first + 2m)! for |x| <= π/4 */
static inline double qkvi_sine_series(double x, int first) {
    double term = first ? x : 1.0, sum = term;
    for (int m = first + 2; m < 24; m += 2) {
        term *= -x * x / (double)((m - 1) * m);
        sum += term;
    }
    return sum;
}

/* sin (quarter = 0) or cos (quarter = 1) of 0 <= x < 2^20 */
static inline double qkvi_sinusoid(double x, int quarter) {
    const int64_t turns = (int64_t)(x / (QKVI_PI_HALF_HIGH + QKVI_PI_HALF_LOW) + 0.5);
    const double r = (x - (double)turns * QKVI_PI_HALF_HIGH) - (double)turns * QKVI_PI_HALF_LOW;
    const int64_t q = (turns + quarter) & 3;
    const double value = qkvi_sine_series(r, q % 2 == 0);
    return q < 2 ? value : -value;
}

/* ln x for normal x > 0: x = 2^e m, ln m = 2 atanh((m - 1) / (m + 1)), m in [√½, √2) */
static inline double qkvi_ln(double x) {
    int e;
    double m = frexp(x, &e);
    if (m < 0.70710678118654752) m *= 2, e--;
    const double z = (m - 1) / (m + 1), square = z * z;
    double sum = 0;
    for (int k = 23; k >= 1; k -= 2) sum = sum * square + 2.0 / k;
    return (double)e * QKVI_LN_2_HIGH + (sum * z + (double)e * QKVI_LN_2_LOW);
}

/* exp(x), |x| < 700: 2^n exp(r), |r| <= ln(2) / 2 */
static inline double qkvi_angle_exp(double x) {
    const double n = floor(x / (QKVI_LN_2_HIGH + QKVI_LN_2_LOW) + 0.5);
    const double r = (x - n * QKVI_LN_2_HIGH) - n * QKVI_LN_2_LOW;
    double sum = 1;
    for (int k = 18; k >= 1; k--) sum = 1 + sum * r / k;
    return ldexp(sum, (int)n);
}

#endif
