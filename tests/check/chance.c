/* See chance.h. */
#include "check/chance.h"

uint64_t rng_next(rng *r) {
    uint64_t x = r->state += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

int64_t rng_between(rng *r, int64_t low, int64_t high) {
    return low + (int64_t)((rng_next(r) >> 11) % (uint64_t)(high - low + 1));
}

bool rng_chance(rng *r, int percent) { return rng_between(r, 0, 99) < percent; }

float rng_normal(rng *r) {
    float sum = 0;
    for (int i = 0; i < 12; i++) sum += (float)(rng_next(r) >> 40) * 0x1p-24f;
    return sum - 6;
}
