/*
 * Dropout: which of 32 weights of a row are kept, as a pure function of seed, head, query and key
 * (docs/numerics.md). Philox 4x32-10 (Salmon, Moraes, Dror and Shaw 2011) in vectors: a counter is
 * four keys, so a row of 32 keys is eight counters, each in a pair of lanes:
 *
 *     pair              0    1    2    3    4    5    6    7
 *     four keys from    0   16    4   20    8   24   12   28  on
 *
 * A product of 32 by 32 bits fills a pair, and only its low lane goes into another product. In this
 * order words 0 … 3 of the pairs become words of keys 0 … 15 and 16 … 31 by moves within 128 bits.
 * core/rng.h has the same function for one counter.
 */
#ifndef QKVI_TMPL_DROPOUT_H
#define QKVI_TMPL_DROPOUT_H

#include "kernels/attend.h"

/* Ten rounds; low lanes of pairs only, high lanes hold numbers of no consequence. */
V_INLINE void dropout_philox(const uint32_t key[10][2], vi c[4]) {
    const vi m0 = vi_set1((int32_t)0xD2511F53), m1 = vi_set1((int32_t)0xCD9E8D57);
    V_UNROLL_BY(10) for (int round = 0; round < 10; round++) {
        const vi p0 = vi_mul_even(c[0], m0), p1 = vi_mul_even(c[2], m1);
        const vi k0 = vi_set1((int32_t)key[round][0]), k1 = vi_set1((int32_t)key[round][1]);
        c[0] = vi_xor(vi_xor(vi_odd(p1), c[1]), k0);
        c[1] = p1;
        c[2] = vi_xor(vi_xor(vi_odd(p0), c[3]), k1);
        c[3] = p0;
    }
}

/* kept[0]: keys j … j + 15 of row i; kept[1]: j + 16 … j + 31. j is a multiple of 32. */
V_INLINE void dropout_keeps(const qkvi_dropout *d, int64_t i, int64_t j, vm kept[2]) {
    static const int32_t quarter[16] = { 0, 0, 4, 0, 1, 0, 5, 0, 2, 0, 6, 0, 3, 0, 7, 0 };
    const uint64_t row = (uint64_t)(d->row + i), col = (uint64_t)(d->col + j);
    const uint32_t rest = d->head[1] ^ (uint32_t)(row >> 32) ^ (uint32_t)(col >> 34) << 16;
    vi c[4] = { vi_add(vi_loadu(quarter), vi_set1((int32_t)(uint32_t)(col >> 2))),
                vi_set1((int32_t)(uint32_t)row), vi_set1((int32_t)d->head[0]),
                vi_set1((int32_t)rest) };
    dropout_philox(d->key, c);
    const vi last = vi_set1((int32_t)d->last);
    const vi w01 = vi_evens(c[0], c[1]), w23 = vi_evens(c[2], c[3]);
    kept[0] = vm_above(vi_firsts(w01, w23), last);
    kept[1] = vm_above(vi_lasts(w01, w23), last);
}

/* The same, a bit each. */
V_INLINE uint32_t dropout_bits(const qkvi_dropout *d, int64_t i, int64_t j) {
    vm kept[2];
    dropout_keeps(d, i, j, kept);
    return vm_to_bits(kept[0]) | vm_to_bits(kept[1]) << 16;
}

/* n weights of row i from key j on become 0 where they are not kept; n a multiple of 32. */
V_INLINE void dropout_row(const qkvi_dropout *d, int64_t i, int64_t j, int n, float *p) {
    for (int e = 0; e < n; e += 32) {
        vm kept[2];
        dropout_keeps(d, i, j + e, kept);
        V_UNROLL(2)
        for (int v = 0; v < 2; v++)
            vf_store(p + e + 16 * v, vf_select(kept[v], vf_load(p + e + 16 * v), vf_set1(0)));
    }
}

#endif
