/* See chance.h. */
#include "check/chance.h"

#include <math.h>

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

size_band band_random(rng *r, int low, int high) {
    static const int widths[] = { 0, 1, 3, 8, 30, 300 };
    const int width = widths[rng_between(r, 0, 5)], middle = (int)rng_between(r, low, high);
    const size_band band = { middle - width, middle + width, rng_chance(r, 40) };
    return (size_band){ band.low < low ? low : band.low, band.high > high ? high : band.high,
                        band.zeros };
}

double band_draw(rng *r, const size_band *s) {
    const int exponent = (int)rng_between(r, s->low, s->high);
    const double x = ldexp(1 + (double)(rng_next(r) >> 11) * 0x1p-53, exponent);
    const bool zero = s->zeros && rng_chance(r, 12);
    return copysign(zero ? 0 : x, rng_chance(r, 50) ? 1.0 : -1.0);
}
