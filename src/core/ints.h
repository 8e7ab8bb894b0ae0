/*
 * Whole numbers: the few functions of sizes and indices that every layer needs.
 */
#ifndef QKVI_CORE_INTS_H
#define QKVI_CORE_INTS_H

#include <stdint.h>

static inline int64_t qkvi_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t qkvi_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

/* a / b, rounded up, and that times b; a >= 0, b > 0. The quotient never overflows. */
static inline int64_t qkvi_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static inline int64_t qkvi_round_up(int64_t a, int64_t b) { return qkvi_ceil_div(a, b) * b; }

#endif
