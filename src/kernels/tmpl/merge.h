/*
 * One row of a merge: the results of a query over disjoint sets of keys become the result over
 * their union.
 *
 *     m = max lse_p,  w_p = exp2((lse_p - m) log2 e),  o = (sum w_p o_p) / (sum w_p),  lse = m + ln 2 log2(sum w_p)
 *
 * Sums begin at 0 and go in the order of the parts, with fmaf for o. A part without a visible key
 * (lse = -inf) is left out altogether, whatever its o holds; a NaN among the lse makes the row NaN.
 */
#ifndef QKVI_TMPL_MERGE_H
#define QKVI_TMPL_MERGE_H

#include <math.h>

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
V_INLINE vf merge_channels(int n_parts, const void *const *o_parts, const float *const *lse_parts,
                           int64_t at, int64_t lse_at, float m, int64_t n, float *o) {
    vf total = vf_set1(0), sum[MERGE_VECTORS];
    for (int v = 0; v < MERGE_VECTORS; v++) sum[v] = vf_set1(0);
    for (int p = 0; p < n_parts; p++) {
        const float lse = lse_parts[p][lse_at];
        if (lse == -INFINITY) continue;
        const vf weight = merge_weight(lse, m);
        const float *x = (const float *)o_parts[p] + at;
        total = vf_add(total, weight);
        for (int v = 0; v < MERGE_VECTORS && 16 * v < n; v++) {
            const int64_t left = n - 16 * v;
            const vf part = left >= 16 ? vf_loadu(x + 16 * v) : vf_load_n(x + 16 * v, (int)left);
            sum[v] = vf_fma(weight, part, sum[v]);
        }
    }
    for (int v = 0; v < MERGE_VECTORS && 16 * v < n; v++) {
        const int64_t left = n - 16 * v;
        const vf y = vf_div(sum[v], total);
        if (left >= 16)
            vf_storeu(o + 16 * v, y);
        else
            vf_store_n(o + 16 * v, y, (int)left);
    }
    return total;
}

static void merge_row(int n_parts, const void *const *o_parts, const float *const *lse_parts,
                      int64_t o_at, int64_t lse_at, int64_t dim, float *o, float *lse) {
    const float m = merge_largest(n_parts, lse_parts, lse_at);
    const int64_t step = 16 * MERGE_VECTORS;
    vf total = vf_set1(0);
    if (m == -INFINITY) {
        for (int64_t c = 0; c < dim; c++) o[c] = 0;
        if (lse) *lse = m;
        return;
    }
    if (dim == 0) total = merge_channels(n_parts, o_parts, lse_parts, 0, lse_at, m, 0, o);
    for (int64_t c = 0; c < dim; c += step)
        total = merge_channels(n_parts, o_parts, lse_parts, o_at + c, lse_at, m,
                               dim - c < step ? dim - c : step, o + c);
    if (!lse) return;
    float joined[16];
    vf_storeu(joined, vf_fma(vf_log2(total), vf_set1(0.693147181f), vf_set1(m)));
    *lse = joined[0];
}

#endif
