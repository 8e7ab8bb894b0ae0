/*
 * Philox 4x32-10. Constants: the paper's section 4.3; test vectors: the authors' Random123
 * distribution (kat_vectors).
 */
#include "core/rng.h"

void qkvi_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]) {
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53 * c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9; /* the golden ratio */
        k1 += 0xBB67AE85; /* sqrt(3) - 1 */
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

qkvi_rng qkvi_rng_make(uint64_t seed, uint32_t purpose, uint64_t index) {
    return (qkvi_rng){ .key = { (uint32_t)seed, (uint32_t)(seed >> 32) },
                       .counter = { 0, purpose, (uint32_t)index, (uint32_t)(index >> 32) } };
}

uint32_t qkvi_rng_u32(qkvi_rng *rng) {
    if (rng->n_left == 0) {
        qkvi_philox(rng->key, rng->counter, rng->words);
        rng->counter[0]++; /* 2^34 words a stream */
        rng->n_left = 4;
    }
    return rng->words[4 - rng->n_left--];
}

/*
 * Lemire 2019, "Fast random integer generation in an interval": multiply, and reject the few that
 * would bias.
 */
uint32_t qkvi_rng_below(qkvi_rng *rng, uint32_t n) {
    uint64_t product = (uint64_t)qkvi_rng_u32(rng) * n;
    if ((uint32_t)product < n) {
        const uint32_t threshold = (0u - n) % n;
        while ((uint32_t)product < threshold) product = (uint64_t)qkvi_rng_u32(rng) * n;
    }
    return (uint32_t)(product >> 32);
}

float qkvi_rng_unit(qkvi_rng *rng) { return (float)(qkvi_rng_u32(rng) >> 8) * 0x1p-24f; }
