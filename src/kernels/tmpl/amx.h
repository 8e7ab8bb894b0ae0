/*
 * Class amx: sums of products of bf16, 32 at a step, as the instruction TDPBF16PS defines them:
 *
 *     even = fma(a even, b even, even), odd = fma(a odd, b odd, odd)  from +0, 16 pairs in order
 *     c = c + (even + odd)
 *
 * Each sum is rounded once to nearest even; a subnormal a, b or c counts as a zero of its sign, and
 * so does a sum that is below 2^-126 after rounding. These bits are made of vf_fma here; the
 * instruction itself is in kernels/amx.c. A and B are those of class dp (tmpl/dp.h), with a depth
 * that zeros fill up to a multiple of 32.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, TDPBF16PS; the instruction
 * itself (tests/kernels/test_gemm_bf16.c).
 */
#ifndef QKVI_TMPL_AMX_H
#define QKVI_TMPL_AMX_H

#include "kernels/tmpl/dp.h"

V_INLINE vf amx_even(vi pair) { return dp_flush(vi_as_vf(vi_shl(pair, 16))); }
V_INLINE vf amx_odd(vi pair) { return dp_flush(vi_as_vf(vi_and(pair, vi_set1(-65536)))); }

/*
 * One step of a row of A and 16 columns of B. Of B the rows that `take` has no bit for count as
 * zeros, whatever they are.
 */
static vf amx_step(vf c, uint32_t take, const void *a, const uint32_t *b) {
    vf even = vf_set1(0), odd = even;
    for (int pair = 0; pair < 16; pair++, take >>= 2) {
        const vi x = dp_set1((const char *)a + 4 * pair);
        const vi y = vi_and(dp_load(b + 32 * pair), vi_set1((int32_t)dp_half(take)));
        even = dp_fma(amx_even(x), amx_even(y), even);
        odd = dp_fma(amx_odd(x), amx_odd(y), odd);
    }
    return dp_flush(vf_add(dp_flush(c), dp_flush(vf_add(even, odd))));
}

/* table.h */
static void amx_tile(int n_rows, int n_cols, int64_t n, const uint16_t *a, int64_t a_row,
                     const uint32_t *b, float *c, int64_t c_row) {
    for (int i = 0; i < n_rows; i++)
        for (int j = 0; j < n_cols; j += 16) {
            const int left = n_cols - j;
            float *const to = c + i * c_row + j;
            vf x = left >= 16 ? vf_loadu(to) : vf_load_n(to, left);
            for (int64_t k = 0; k < n; k += 32)
                x = amx_step(x, UINT32_MAX, a + i * a_row + k, b + 16 * k + j);
            tile_store(left, x, to, 0);
        }
}

#endif
