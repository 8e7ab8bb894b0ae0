/* See philox.h. */
#include "check/philox.h"

#include <math.h>
#include <string.h>

void philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t word[4]) {
    uint32_t x[4], k[2] = { key[0], key[1] };
    memcpy(x, counter, sizeof x);
    for (int round = 0; round < 10; round++) {
        const uint64_t a = 0xD2511F53u * (uint64_t)x[0], b = 0xCD9E8D57u * (uint64_t)x[2];
        const uint32_t next[4] = { (uint32_t)(b >> 32) ^ x[1] ^ k[0], (uint32_t)b,
                                   (uint32_t)(a >> 32) ^ x[3] ^ k[1], (uint32_t)a };
        memcpy(x, next, sizeof x);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    memcpy(word, x, sizeof x);
}

double dropout_factor(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j) {
    if (!(d->flags & QKV_SET_DROPOUT)) return 1;
    const uint64_t head = (uint64_t)(b * d->n_heads + h);
    const uint32_t high = (uint32_t)(head >> 32) ^ (uint32_t)(i >> 32) ^ (uint32_t)(j >> 34) << 16;
    const uint32_t counter[4] = { (uint32_t)(j / 4), (uint32_t)i, (uint32_t)head, high };
    const uint32_t key[2] = { (uint32_t)d->dropout_seed, (uint32_t)(d->dropout_seed >> 32) };
    uint32_t word[4];
    philox4x32_10(counter, key, word);
    const double threshold = floor((double)d->dropout * 0x1p32);
    return (double)word[j % 4] >= threshold ? 1 / (1 - (double)d->dropout) : 0;
}
