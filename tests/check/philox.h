/*
 * Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011: "Parallel random numbers: as easy as 1, 2, 3"),
 * and which weights dropout keeps: from the paper and docs/numerics.md.
 */
#ifndef QKV_TESTS_PHILOX_H
#define QKV_TESTS_PHILOX_H

#include <stdbool.h>

#include "qkv/qkv.h"

void philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t word[4]);

/* The factor of dropout on the weight of a visible key: 0, or 1 / (1 - dropout). */
double dropout_factor(const qkv_attention_desc *d, int64_t b, int64_t h, int64_t i, int64_t j);

#endif
