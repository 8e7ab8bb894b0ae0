/*
 * One row of a merge: the results of a query over disjoint sets of keys become the result over
 * their union.
 *
 *     m = max lse_p,  w_p = exp2((lse_p - m) log2 e)
 *     o = (sum w_p o_p) / (sum w_p) + 0,  lse = m + ln 2 log2(sum w_p)
 *
 * Sums begin at 0 and go in the order of the parts, with fmaf for o. A part without a visible key
 * (lse = -inf) is left out altogether, whatever its o holds; a NaN among the lse makes the row NaN.
 * Parts of 16 bits are converted, and o is rounded once.
 */
#ifndef QKVI_TMPL_MERGE_H
#define QKVI_TMPL_MERGE_H

#include <math.h>
#include <string.h>

#include "kernels/tmpl/pack.h"

enum { MERGE_VECTORS = 4 }; /* channels at a time: the weights are computed once for 64 of them */

V_INLINE float merge_largest(int n_parts, const float *const *lse_parts, int64_t at) {
    float m = -INFINITY;
    for (int p = 0; p < n_parts; p++) {
        const float lse = lse_parts[p][at];
        if (lse > m || isnan(lse)) m = lse; /* no lse is greater than NaN: it stays */
    }
    return m;
}

/* The part's weight in every lane. */
V_INLINE vf merge_weight(float lse, float m) {
    return vf_exp2(vf_mul(vf_sub(vf_set1(lse), vf_set1(m)), vf_set1(1.44269504f)));
}

/* n <= 64 channels from element `at` of every part on. Returns the sum of the weights. */
V_INLINE vf merge_channels(const qkv_dtype type, int n_parts, const void *const *o_parts,
                           const float *const *lse_parts, int64_t at, int64_t lse_at, float m,
                           int64_t n, void *o) {
    vf total = vf_set1(0), sum[MERGE_VECTORS];
    for (int v = 0; v < MERGE_VECTORS; v++) sum[v] = vf_set1(0);
    for (int p = 0; p < n_parts; p++) {
        const float lse = lse_parts[p][lse_at];
        if (lse == -INFINITY) continue;
        const vf weight = merge_weight(lse, m);
        total = vf_add(total, weight);
        for (int v = 0; v < MERGE_VECTORS && 16 * v < n; v++) {
            const void *x = pack_at(type, o_parts[p], at + 16 * v);
            sum[v] = vf_fma(weight, pack_load(type, x, pack_left(n - 16 * v)), sum[v]);
        }
    }
    for (int v = 0; v < MERGE_VECTORS && 16 * v < n; v++) {
        const vf mean = vf_add(vf_div(sum[v], total), vf_set1(0));
        pack_store(type, pack_to(type, o, 16 * v), mean, pack_left(n - 16 * v));
    }
    return total;
}

V_INLINE void merge_row_of(const qkv_dtype type, int n_parts, const void *const *o_parts,
                           const float *const *lse_parts, int64_t o_at, int64_t lse_at, int64_t dim,
                           void *o, float *lse) {
    const float m = merge_largest(n_parts, lse_parts, lse_at);
    const int64_t step = 16 * MERGE_VECTORS;
    vf total = vf_set1(0);
    if (m == -INFINITY) {
        if (dim) memset(o, 0, (size_t)(dim * qkvi_dtype_bytes(type))); /* o may be NULL */
        if (lse) *lse = m;
        return;
    }
    if (dim == 0) total = merge_channels(type, n_parts, o_parts, lse_parts, 0, lse_at, m, 0, o);
    for (int64_t c = 0; c < dim; c += step)
        total = merge_channels(type, n_parts, o_parts, lse_parts, o_at + c, lse_at, m,
                               dim - c < step ? dim - c : step, pack_to(type, o, c));
    if (!lse) return;
    float joined[16];
    vf_storeu(joined, vf_fma(vf_log2(total), vf_set1(0.693147181f), vf_set1(m)));
    *lse = joined[0];
}

#define MERGE_ROW(name, type)                                                                      \
    static void merge_row_##name(int n_parts, const void *const *o_parts,                          \
                                 const float *const *lse_parts, int64_t o_at, int64_t lse_at,      \
                                 int64_t dim, void *o, float *lse) {                               \
        merge_row_of(type, n_parts, o_parts, lse_parts, o_at, lse_at, dim, o, lse);                \
    }
PACK_EACH_TYPE(MERGE_ROW)

#endif
