/*
 * The explicit mask, 32 keys of a row at a time: which it lets be seen, what it adds. Reads no
 * element but those.
 */
#ifndef QKVI_TMPL_MASK_BITS_H
#define QKVI_TMPL_MASK_BITS_H

#include <math.h>

#include "kernels/attend.h"

V_INLINE bool mask_is_set(const qkvi_mask *m) { return m->bools || m->adds; }

/* The bits [begin, end) of 32. */
V_INLINE uint32_t mask_range(int64_t begin, int64_t end) {
    const int from = begin < 0 ? 0 : begin > 32 ? 32 : (int)begin;
    const int to = end < 0 ? 0 : end > 32 ? 32 : (int)end;
    return from < to ? UINT32_MAX >> (32 - (to - from)) << from : 0;
}

/*
 * What an additive mask adds to the scores of row i and the n keys from j on, 1 <= n <= 32; zeros
 * after them.
 */
V_INLINE void mask_adds(const qkvi_mask *m, int64_t i, int64_t j, int n, vf add[2]) {
    const float *p = m->adds + i * m->row + j * m->key;
    float x[32] = { 0 };
    if (m->key == 1) {
        add[0] = n >= 16 ? vf_loadu(p) : vf_load_n(p, n);
        add[1] = n == 32 ? vf_loadu(p + 16) : vf_load_n(n > 16 ? p + 16 : p, n > 16 ? n - 16 : 0);
        return;
    }
    for (int e = 0; e < n; e++) x[e] = p[e * m->key];
    add[0] = vf_loadu(x);
    add[1] = vf_loadu(x + 16);
}

/* Which of the n keys from j on a mask of either kind lets row i see, 1 <= n <= 32. */
V_INLINE uint32_t mask_bits(const qkvi_mask *m, int64_t i, int64_t j, int n) {
    if (m->adds) {
        const vf none = vf_set1(-INFINITY);
        vf add[2];
        mask_adds(m, i, j, n, add);
        return (vm_to_bits(vm_ne(add[0], none)) | vm_to_bits(vm_ne(add[1], none)) << 16) &
               mask_range(0, n);
    }
    const uint8_t *p = m->bools + i * m->row + j * m->key;
    if (m->key == 1 && n == 32) return v_nonzero_bytes(p) | v_nonzero_bytes(p + 16) << 16;
    uint32_t bits = 0;
    for (int e = 0; e < n; e++) bits |= (uint32_t)(p[e * m->key] != 0) << e;
    return bits;
}

/* table.h */
static uint32_t mask_any(const qkvi_mask *m, int64_t n_rows, int n_keys, int64_t begin,
                         int64_t end) {
    const uint32_t all = mask_range(0, n_keys);
    uint32_t any = 0;
    for (int64_t i = 0; i < n_rows && any != all; i++) {
        const uint32_t bits = mask_range(begin + i, end + i) & all & ~any;
        if (bits) any |= bits & mask_bits(m, i, 0, n_keys);
    }
    return any;
}

#endif
