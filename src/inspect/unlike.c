/*
 * d(a, b) = sqrt(mean over numbers of ((a - b) / sd)^2), sd the standard deviation of the number over all
 * heads; numbers without a spread, or that a head lacks, are left out.
 */
#include <math.h>

#include "qkv/heads.h"

/* The standard deviation of a number over all heads; 0 if one of them has no such number. */
static double deviation(int64_t n, const double *numbers, int c) {
    const int width = qkv_heads_n_numbers();
    double mean = 0, sum = 0;
    for (int64_t h = 0; h < n; h++) mean += numbers[h * width + c];
    mean /= (double)n;
    for (int64_t h = 0; h < n; h++) {
        const double off = numbers[h * width + c] - mean;
        sum += off * off;
    }
    return isnan(sum) ? 0 : sqrt(sum / (double)n);
}

void qkv_heads_unlike(int64_t n, const double *numbers, int64_t to, double *distances) {
    const int width = qkv_heads_n_numbers();
    int n_used = 0;
    if (!numbers || !distances || to < 0 || to >= n) return;
    for (int64_t h = 0; h < n; h++) distances[h] = 0;
    for (int c = 0; c < width; c++) {
        const double scale = qkv_heads_number(c)->alike ? deviation(n, numbers, c) : 0;
        if (!(scale > 0)) continue;
        n_used++;
        for (int64_t h = 0; h < n; h++) {
            const double z = (numbers[h * width + c] - numbers[to * width + c]) / scale;
            distances[h] += z * z;
        }
    }
    for (int64_t h = 0; h < n; h++) distances[h] = n_used ? sqrt(distances[h] / n_used) : 0;
}
