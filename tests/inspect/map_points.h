/* Random queries and keys for tests of maps; keys are in three bands beside the queries. */
#ifndef QKV_TESTS_MAP_POINTS_H
#define QKV_TESTS_MAP_POINTS_H

#include "core/rng.h"

static inline void map_points_fill(uint64_t seed, int n, float *q, float *k) {
    qkvi_rng rng = qkvi_rng_make(seed, 1, 0);
    for (int i = 0; i < n; i++) {
        q[i] = 4 * qkvi_rng_unit(&rng) - 2;
        k[i] = 2 * qkvi_rng_unit(&rng) - 1 + (float)(i % 3);
    }
}

#endif
