/* See alibi.h. */
#include "model/layer/alibi.h"

#include <math.h>

/* b(n), a float as in torch, whose roots are correctly rounded. n is a power of two. */
static double base_of(int64_t n) {
    double base = 1.0 / 256;
    for (; n > 1; n /= 2) base = sqrt(base);
    return (double)(float)base;
}

void qkvi_alibi_slopes(int64_t n_heads, float *slopes) {
    int64_t n = 1;
    while (n <= n_heads / 2) n *= 2;
    const double base = base_of(n), between = base_of(2 * n);
    double power = 1;
    for (int64_t h = 0; h < n; h++) slopes[h] = (float)(power *= base);
    power = between;
    for (int64_t h = n; h < n_heads; h++, power *= between * between) slopes[h] = (float)power;
}
