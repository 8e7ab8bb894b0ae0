/* ln p of words from their logits: z_t - m - ln sum exp(z - m) with m = max z, in double. */
#ifndef QKVI_INSPECT_LOG_SOFTMAX_H
#define QKVI_INSPECT_LOG_SOFTMAX_H

#include <math.h>
#include <stdint.h>

static inline float qkvi_largest_logit(const float *logits, int64_t n) {
    float largest = logits[0];
    for (int64_t v = 1; v < n; v++)
        if (logits[v] > largest) largest = logits[v];
    return largest;
}

static inline double qkvi_log_probability(const float *logits, int64_t n, int32_t word) {
    const float largest = qkvi_largest_logit(logits, n);
    double sum = 0;
    for (int64_t v = 0; v < n; v++) sum += exp((double)logits[v] - (double)largest);
    return (double)logits[word] - (double)largest - log(sum);
}

#endif
