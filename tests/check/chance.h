/* Random numbers for tests: splitmix64, so that a seed gives the same case on any machine. */
#ifndef QKV_TESTS_CHANCE_H
#define QKV_TESTS_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rng {
    uint64_t state;
} rng;

uint64_t rng_next(rng *r);
int64_t rng_between(rng *r, int64_t low, int64_t high); /* both included */
bool rng_chance(rng *r, int percent);
float rng_normal(rng *r); /* sum of uniforms: mean 0, variance 1, within +-6 */

/* Numbers of either sign in [2^low, 2^(high + 1)), with uniform exponents; and zeros. */
typedef struct size_band {
    int low, high;
    bool zeros; /* one of eight numbers is a zero, of either sign */
} size_band;

/* A band of any width within [low, high]. */
size_band band_random(rng *r, int low, int high);
double band_draw(rng *r, const size_band *s);

#endif
