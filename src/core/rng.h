/*
 * Random numbers as a pure function: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw 2011, "Parallel
 * random numbers: as easy as 1, 2, 3"). The same (key, counter) gives the same four words on every
 * machine and in any order of evaluation, so nothing depends on threads.
 */
#ifndef QKVI_CORE_RNG_H
#define QKVI_CORE_RNG_H

#include <stdint.h>

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/* out = the four words of block counter under key: ten rounds. out may be counter. */
void qkvi_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

/*
 * A stream of words: the key is seed, the counter is {block number, purpose, index low, index
 * high}.
 */
typedef struct qkvi_rng {
    uint32_t key[2], counter[4], words[4];
    int n_left; /* words not yet given out, taken from the front */
} qkvi_rng;

/*
 * The stream for (seed, purpose, index): streams that differ in any of the three are independent.
 */
qkvi_rng qkvi_rng_make(uint64_t seed, uint32_t purpose, uint64_t index);

uint32_t qkvi_rng_u32(qkvi_rng *rng);
/* Uniform in [0, n), without bias; n > 0. */
uint32_t qkvi_rng_below(qkvi_rng *rng, uint32_t n);
/* A multiple of 2^-24 in [0, 1). */
float qkvi_rng_unit(qkvi_rng *rng);

#pragma GCC visibility pop

#endif
