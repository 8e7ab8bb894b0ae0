/*
 * Class dp: sums of products of bf16 in pairs, as the instruction VDPBF16PS defines them. A pair is
 * 32 bits, its first (even) element in the lower half. One step, for each lane:
 *
 *     c = fma(a odd, b odd, c)      then      c = fma(a even, b even, c)
 *
 * Products are exact, each sum is rounded once to nearest even; a subnormal a, b or c counts as a
 * zero of its sign, and a sum that is below 2^-126 after rounding becomes one. Here is a model of
 * that, the same bits from vf_fma, for instruction sets without the instruction: slow, but exact.
 *
 * fma rounds to multiples of 2^-149, so only where it says exactly 2^-126 it may have rounded up
 * something that with all 24 bits is still below: there the sum is formed once more, 2^100 times as
 * large. Its c is below 2^-101 then, or nothing would have remained, so nothing overflows.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, VDPBF16PS; the instruction
 * itself (tests/attn/test_attention_dp.c).
 */
#ifndef QKVI_TMPL_DP_H
#define QKVI_TMPL_DP_H

#include <string.h>

#include "kernels/tmpl/gemm_tile.h"

#define DP_LEAST_NORMAL 1.17549435e-38f
#define DP_ONES         0x3F803F80 /* a pair */

V_INLINE vf dp_signed_zero(vf x) { return vi_as_vf(vi_and(vf_as_vi(x), vi_set1(INT32_MIN))); }

/* A subnormal becomes a zero of its sign. */
V_INLINE vf dp_flush(vf x) {
    const vm tiny = vm_lt(vf_abs(x), vf_set1(DP_LEAST_NORMAL));
    return vf_select(tiny, dp_signed_zero(x), x);
}

/* a, b and c are not subnormal. */
V_INLINE vf dp_fma(vf a, vf b, vf c) {
    const vf least = vf_set1(DP_LEAST_NORMAL);
    const vf up = vf_set1(0x1p50f), up_twice = vf_set1(0x1p100f);
    const vf sum = vf_fma(a, b, c);
    const vm edge = vm_eq(vf_abs(sum), least);
    if (vm_to_bits(edge) == 0) return dp_flush(sum);
    const vf larger = vf_fma(vf_mul(a, up), vf_mul(b, up), vf_mul(c, up_twice));
    const vm below = vm_lt(vf_abs(larger), vf_mul(least, up_twice));
    return vf_select(vm_and(edge, below), dp_signed_zero(sum), dp_flush(sum));
}

#ifndef V_HAS_DP
V_INLINE vf v_dp(vf c, vi a, vi b) {
    const vi upper = vi_set1(-65536); /* 0xFFFF0000 */
    const vf a1 = dp_flush(vi_as_vf(vi_and(a, upper))), a0 = dp_flush(vi_as_vf(vi_shl(a, 16)));
    const vf b1 = dp_flush(vi_as_vf(vi_and(b, upper))), b0 = dp_flush(vi_as_vf(vi_shl(b, 16)));
    return dp_fma(a0, b0, dp_fma(a1, b1, dp_flush(c)));
}
#endif

/* Sixteen pairs from p on, and one pair in all lanes. */
V_INLINE vi dp_load(const void *p) { return vf_as_vi(vf_loadu(p)); }
V_INLINE vi dp_set1(const void *p) {
    int32_t pair;
    memcpy(&pair, p, sizeof pair);
    return vi_set1(pair);
}

/* Stores floats rounded to bf16, sixteen and the next sixteen, and returns their pairs. */
#ifndef V_HAS_DP
V_INLINE vi dp_store(uint16_t *p, vf x0, vf x1) {
    vf_storeu_bf16(p, x0);
    vf_storeu_bf16(p + 16, x1);
    return dp_load(p);
}

#endif

/*
 * Floats rounded to bf16 as an operand of a step is: to nearest even, but what is subnormal before
 * becomes a zero of its sign. Sixteen and the next sixteen.
 */
#ifndef V_HAS_DP
V_INLINE vi dp_round(vf x0, vf x1) {
    uint16_t halves[32];
    return dp_store(halves, dp_flush(x0), dp_flush(x1));
}

/* Pairs of an element of the first sixteen and one of the next. */
V_INLINE vi dp_weave(vi halves) {
    uint16_t from[32];
    uint32_t pairs[16];
    memcpy(from, &halves, sizeof from);
    for (int n = 0; n < 16; n++) pairs[n] = from[n] | (uint32_t)from[16 + n] << 16;
    return dp_load(pairs);
}

V_INLINE void dp_part(vi halves, uint16_t *first, uint16_t *second) {
    uint16_t from[32];
    memcpy(from, &halves, sizeof from);
    memcpy(first, from, sizeof from / 2);
    memcpy(second, from + 16, sizeof from / 2);
}
#endif

/* Of a pair the first element (bit 0), the second (bit 1), or both. */
V_INLINE uint32_t dp_half(uint32_t bits) {
    return (bits & 1 ? 0xFFFFu : 0) | (bits & 2 ? 0xFFFF0000u : 0);
}

/* The others become 0. */
V_INLINE void dp_keep(void *p, uint32_t bits) {
    uint32_t pair;
    memcpy(&pair, p, sizeof pair);
    pair &= dp_half(bits);
    memcpy(p, &pair, sizeof pair);
}

/*
 * 2^x like vf_exp2_below_128, by degree 5: 1.6e-7 is nothing where 2^-9 follows, and lse, whose
 * sum is not rounded to bf16, is nearly as exact as with degree 6.
 */
V_INLINE vf dp_exp2_below_128(vf x) {
    const vf n = vf_round(x);
    const vf f = vf_sub(x, n);
    vf p = vf_set1(1.326472731e-03f);
    p = vf_fma(p, f, vf_set1(9.671512991e-03f));
    p = vf_fma(p, f, vf_set1(5.550733581e-02f));
    p = vf_fma(p, f, vf_set1(2.402224243e-01f));
    p = vf_fma(p, f, vf_set1(6.931470037e-01f));
    p = vf_fma(p, f, vf_set1(1.0f));
    return vf_scale_if(vm_nlt(x, vf_set1(-126.0f)), p, n);
}

/* An element and a zero. */
V_INLINE vi dp_set1_half(const void *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return vi_set1(half);
}

/*
 * c continues its chains by a depth of n elements of A B, for R rows and V_NV vectors of columns.
 * Pair k of row i of A is at a + i a_row + k a_step bytes, any address; row k of B is b[32 * k
 * ...], its last pair half of zeros where n is odd: then nothing beyond A's last element is read.
 * The pointers are those of tile_product_ahead. ahead is nullable. Of the model there is nothing to
 * keep in registers.
 */
#ifdef V_HAS_DP
/*
 * Bytes of B that are on their way to the first-level cache, where it is not there: a panel is read
 * once for each R rows, and what is behind it is the next one. 3 and 6 KiB gained less.
 */
enum { DP_NEAR = 12 << 10 };

V_INLINE void dp_last(const int R, const char *a0, int64_t a_row, const uint32_t *b,
                      vf c[V_MR][V_NV]) {
    const char *const third[4] = { a0, a0 + 3 * a_row, a0 + 6 * a_row, a0 + 9 * a_row };
    vi row[V_NV];
    V_UNROLL(2) for (int v = 0; v < V_NV; v++) row[v] = dp_load(b + 16 * v);
    V_UNROLL(12) for (int i = 0; i < R; i++) {
        const vi x = dp_set1_half(third[i / 3] + i % 3 * a_row);
        V_UNROLL(2) for (int v = 0; v < V_NV; v++) c[i][v] = v_dp(c[i][v], x, row[v]);
    }
}

/* is_far: B is in a second-level cache or beyond, and comes near by itself. */
V_INLINE void dp_product_by(const int R, const int is_far, int64_t n, const void *a, int64_t a_row,
                            int64_t a_step, const uint32_t *b, vf c[V_MR][V_NV],
                            qkvi_ahead *ahead) {
    const char *a0 = a, *a3 = a0 + 3 * a_row, *a6 = a0 + 6 * a_row, *a9 = a0 + 9 * a_row;
    const char *at = ahead ? ahead->at : NULL;
    int64_t left = ahead ? ahead->left : 0, next = left > 0 ? 0 : n;
    const int64_t step = ahead ? ahead->step : 0, every = ahead ? ahead->every : 0;
    V_UNROLL_BRANCHED(2) for (int64_t k = 0; k < n / 2; k++) {
        const char *const third[4] = { a0, a3, a6, a9 };
        vi row[V_NV];
        V_UNROLL(2) for (int v = 0; v < V_NV; v++) row[v] = dp_load(b + 16 * v);
        if (is_far) {
            V_UNROLL(2)
            for (int v = 0; v < V_NV; v++) v_prefetch_near((const char *)(b + 16 * v) + DP_NEAR);
        } else if (k == next) {
            v_prefetch(at);
            at += step;
            next = --left > 0 ? k + every : n;
        }
        V_UNROLL(12) for (int i = 0; i < R; i++) {
            const vi x = dp_set1(third[i / 3] + i % 3 * a_row);
            V_UNROLL(2) for (int v = 0; v < V_NV; v++) c[i][v] = v_dp(c[i][v], x, row[v]);
        }
        a0 += a_step, a3 += a_step, a6 += a_step, a9 += a_step, b += 32;
    }
    if (ahead) {
        ahead->at = at;
        ahead->left = left;
        qkvi_ahead_turn(ahead);
    }
    if (n % 2) dp_last(R, a0, a_row, b, c);
}

#else
static void dp_product_by(int R, int is_far, int64_t n, const void *a, int64_t a_row,
                          int64_t a_step, const uint32_t *b, vf c[V_MR][V_NV], qkvi_ahead *ahead) {
    (void)is_far;
    for (int64_t k = 0; ahead && ahead->left > 0 && k < n / 2; k += ahead->every) {
        v_prefetch(ahead->at);
        ahead->at += ahead->step;
        ahead->left--;
    }
    if (ahead) qkvi_ahead_turn(ahead);
    for (int i = 0; i < R; i++)
        for (int v = 0; v < V_NV; v++) {
            const char *at = (const char *)a + i * a_row;
            vf sum = c[i][v];
            for (int64_t k = 0; k < n; k += 2, at += a_step) {
                const vi x = k + 1 < n ? dp_set1(at) : dp_set1_half(at);
                sum = v_dp(sum, x, dp_load(b + 16 * k + 16 * v));
            }
            c[i][v] = sum;
        }
}
#endif

/* The same of A whose rows are dense. */
V_INLINE void dp_product(const int R, int64_t n, const void *a, int64_t a_row, const uint32_t *b,
                         vf c[V_MR][V_NV], qkvi_ahead *ahead) {
    dp_product_by(R, 0, n, a, a_row, 4, b, c, ahead);
}

V_INLINE void dp_rows(const int R, int n_cols, int64_t n, const uint16_t *a, int64_t a_row,
                      const uint32_t *b, float *c, int64_t c_row) {
    for (int j = 0; j < n_cols; j += 16 * V_NV) {
        vf x[V_MR][V_NV];
        tile_zero(x);
        V_UNROLL(12) for (int i = 0; i < R; i++) {
            V_UNROLL(2) for (int v = 0; v < V_NV; v++) {
                const int left = n_cols - j - 16 * v;
                const float *from = c + i * c_row + j + 16 * v;
                if (left > 0) x[i][v] = left >= 16 ? vf_loadu(from) : vf_load_n(from, left);
            }
        }
        dp_product_by(R, 1, n, a, a_row * (int64_t)sizeof *a, 4, b + j, x, NULL);
        V_UNROLL(12) for (int i = 0; i < R; i++) {
            V_UNROLL(2)
            for (int v = 0; v < V_NV; v++)
                tile_store(n_cols - j - 16 * v, x[i][v], c + i * c_row + j + 16 * v, 0);
        }
    }
}

/* table.h */
static void dp_tile(int n_rows, int n_cols, int64_t n, const uint16_t *a, int64_t a_row,
                    const uint32_t *b, float *c, int64_t c_row) {
    switch (n_rows) {
#define DP_CASE(R)                                                                                 \
    case R: dp_rows(R, n_cols, n, a, a_row, b, c, c_row); return;
        TILE_EACH(DP_CASE)
#undef DP_CASE
    default: return;
    }
}

#endif
