/*
 * K of one block of keys, packed for the kernels that make scores of it: forward and columns.
 */
#ifndef QKVI_ATTN_PACK_H
#define QKVI_ATTN_PACK_H

#include "attn/seen.h"

/*
 * The keys [key, key + n) of key/value head g, n <= 256, of which those of `see` are read
 * as the class packs them, times factor: its sign, and powers of two (qkvi_split_scale). Of 32 keys
 * that no query sees nothing is written where words are floats.
 */
void qkvi_pack_keys(const qkvi_problem *problem, const qkvi_kernels *kernels, int64_t b, int64_t g,
                    int64_t key, int64_t n, const uint32_t see[QKVI_SEEN_WORDS],
                    qkvi_arithmetic class, float factor, void *panels);

#endif
