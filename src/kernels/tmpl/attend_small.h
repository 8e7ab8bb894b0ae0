/*
 * Attention, forward, of a sentence: at most 16 queries and 16 keys, where packing K and V would
 * cost more than it saves. Queries are lanes, so maximum, exp2 and sums need no shuffles:
 *
 *     S^T = K Q^T    rows: keys as they lie, columns: 16 queries, Q transposed into the work area
 *     p, l           vertical; the 32 partial sums of the written order hold one key each here
 *     O = P V        rows: queries, columns: channels of V as it lies
 *
 * The order is that of attend.h, and so are the bits, as long as every row has an ordinary
 * reference m and a finite result. Any other row is left to attend_block, which knows all cases.
 * In class dp, Q is transposed and P and V are laid out by pairs; the rest is the same.
 */
#ifndef QKVI_TMPL_ATTEND_SMALL_H
#define QKVI_TMPL_ATTEND_SMALL_H

#include "kernels/attend.h"
#include "kernels/tmpl/attend.h"
#include "kernels/tmpl/pack_dp.h"

typedef qkvi_attend_small small;

/* [channel or pair][32], of which the first 16 are used: the layout that pack_corner writes. */
static void small_transpose(const small *a, float *qt) {
    const uint32_t rows = (1u << a->n_queries) - 1;
    const float *q = a->q;
    for (int64_t c = 0; c < a->head_dim; c += 16) {
        if (a->n_queries == 16)
            v_transpose(q + c, a->q_row, qt + 32 * c, 32);
        else
            pack_corner(q + c, a->q_row, rows, 16, qt + 32 * c);
    }
}

static void dp_small_transpose(const small *a, float *qt) {
    const uint32_t rows = (1u << a->n_queries) - 1;
    const uint16_t *q = a->q;
    for (int64_t c = 0; c < a->head_dim; c += 32)
        pack_dp_corner(q + c, a->q_row, rows, a->head_dim - c, qt + 16 * c);
}

/* R keys against 16 queries: a chain over channels each. */
#define SMALL_SCORES(R)                                                                            \
    static void small_scores_##R(const float *k, int64_t k_row, int64_t dim, const float *qt,      \
                                 float *s) {                                                       \
        const float *k0 = k, *k3 = k + 3 * k_row, *k6 = k + 6 * k_row, *k9 = k + 9 * k_row;        \
        vf c[V_MR];                                                                                \
        V_UNROLL(12) for (int j = 0; j < V_MR; j++) c[j] = vf_set1(0);                             \
        for (int64_t d = 0; d < dim; d++) {                                                        \
            const vf q = vf_load(qt + 32 * d);                                                     \
            V_UNROLL(12) for (int j = 0; j < R; j++) {                                             \
                const float *third = j < 3 ? k0 : j < 6 ? k3 : j < 9 ? k6 : k9;                    \
                c[j] = vf_fma(vf_set1(third[j % 3 * k_row]), q, c[j]);                             \
            }                                                                                      \
            k0++, k3++, k6++, k9++;                                                                \
        }                                                                                          \
        V_UNROLL(12) for (int j = 0; j < R; j++) vf_store(s + 16 * j, c[j]);                       \
    }                                                                                              \
    static void dp_small_scores_##R(const uint16_t *k, int64_t k_row, int64_t dim,                 \
                                    const float *qt, float *s) {                                   \
        vf c[V_MR][V_NV];                                                                          \
        tile_zero(c);                                                                              \
        dp_product(R, dim, k, k_row *(int64_t)sizeof *k, (const uint32_t *)qt, c, NULL);           \
        V_UNROLL(12) for (int j = 0; j < R; j++) vf_store(s + 16 * j, c[j][0]);                    \
    }
TILE_EACH(SMALL_SCORES)
#define SMALL_SCORES_NAME(R) small_scores_##R,
static void (*const small_scores_of[])(const float *, int64_t, int64_t, const float *,
                                       float *) = { NULL, TILE_EACH(SMALL_SCORES_NAME) };
#define DP_SMALL_SCORES_NAME(R) dp_small_scores_##R,
static void (*const dp_small_scores_of[])(const uint16_t *, int64_t, int64_t, const float *,
                                          float *) = { NULL, TILE_EACH(DP_SMALL_SCORES_NAME) };

/* The tree 4, 2, 1 of eight partial sums. */
V_INLINE vf small_tree(vf sum[8]) {
    V_UNROLL_BY(3) for (int half = 4; half > 0; half /= 2) {
        V_UNROLL_BY(4) for (int j = 0; j < half; j++) sum[j] = vf_add(sum[j], sum[j + half]);
    }
    return sum[0];
}

/* s: scores, then p, [16 keys][16 queries]. Returns whether every reference is ordinary. */
V_INLINE bool small_softmax(const bool rounds, const small *a, float *s, vf *l, vf *lse) {
    const vf none = vf_set1(-INFINITY), c = vf_set1(a->factor);
    vf top = none;
    for (int j = 0; j < a->n_keys; j++) {
        const vf x = vf_select(vm_of_bits(a->see[j]), vf_load(s + 16 * j), none);
        vf_store(s + 16 * j, x);
        top = vf_max(x, top);
    }
    const vf m = vf_mul(top, c);
    if (vm_to_bits(vm_lt(vf_abs(m), vf_set1(ATTEND_LARGE))) != 0xFFFF) return false;
    for (int j = 0; j < a->n_keys; j++) {
        const vf x = attend_exponent(vf_load(s + 16 * j), c, m, ATTEND_RAW);
        vf_store(s + 16 * j, rounds ? dp_exp2_below_128(x) : vf_exp2_below_128(x));
    }
    for (int j = a->n_keys; j < 16; j++) vf_store(s + 16 * j, vf_set1(0));
    vf sum[8];
    V_UNROLL(8)
    for (int j = 0; j < 8; j++) sum[j] = vf_add(vf_load(s + 16 * j), vf_load(s + 16 * (j + 8)));
    *l = small_tree(sum);
    *lse = vf_mul(vf_add(m, vf_log2(*l)), vf_set1(ATTEND_LN2));
    return true;
}

/*
 * R queries: o = P V / l + 0 for 16 V_NV channels at a time. Adds 0 times what it stored to `zero`:
 * NaN where some of it is not finite.
 */
#define SMALL_VALUES(R)                                                                            \
    static void small_values_##R(const small *a, const float *p, const float *l, float *o,         \
                                 float *zero) {                                                    \
        for (int64_t d = 0; d < a->head_dim_v; d += 16 * V_NV) {                                   \
            const float *v = (const float *)a->v + d;                                              \
            vf c[V_MR][V_NV];                                                                      \
            tile_zero(c);                                                                          \
            for (int j = 0; j < a->n_keys; j++, v += a->v_row) {                                   \
                vf row[V_NV];                                                                      \
                V_UNROLL(2) for (int u = 0; u < V_NV; u++) row[u] = vf_loadu(v + 16 * u);          \
                V_UNROLL(12) for (int i = 0; i < R; i++) {                                         \
                    const vf x = vf_set1(p[16 * j + i]);                                           \
                    V_UNROLL(2)                                                                    \
                    for (int u = 0; u < V_NV; u++) c[i][u] = vf_fma(x, row[u], c[i][u]);           \
                }                                                                                  \
            }                                                                                      \
            vf all = vf_set1(0);                                                                   \
            V_UNROLL(12) for (int i = 0; i < R; i++) V_UNROLL(2) for (int u = 0; u < V_NV; u++) {  \
                const vf x = vf_add(vf_div(c[i][u], vf_set1(l[i])), vf_set1(0));                   \
                vf_storeu(o + i * a->o_row + d + 16 * u, x);                                       \
                all = vf_fma(x, vf_set1(0), all);                                                  \
            }                                                                                      \
            vf_store(zero, vf_add(vf_load(zero), all));                                            \
        }                                                                                          \
    }
TILE_EACH(SMALL_VALUES)
#define SMALL_VALUES_NAME(R) small_values_##R,
static void (*const small_values_of[])(const small *, const float *, const float *, float *,
                                       float *) = { NULL, TILE_EACH(SMALL_VALUES_NAME) };

/* p, at least 2^-126 or 0, rounded to bf16: in the lower half of each lane. */
V_INLINE vi dp_small_round(vf p) {
    const vi x = vf_as_vi(p), odd = vi_and(vi_shr(x, 16), vi_set1(1));
    return vi_shr(vi_add(vi_add(x, vi_set1(0x7FFF)), odd), 16);
}

/* p by rows of pairs, rounded, in `rows` as attend_values reads them; returns their sums. */
static vf dp_small_pairs(const float *p, float *rows) {
    float *columns = rows + 16 * QKVI_SCORE_ROW;
    vf sum[8];
    for (int j = 0; j < 8; j++) {
        const vi first = dp_small_round(vf_load(p + 32 * j));
        const vi second = dp_small_round(vf_load(p + 32 * j + 16));
        const vi pair = vi_or(first, vi_shl(second, 16));
        sum[j] = v_dp(vf_set1(0), pair, vi_set1(DP_ONES));
        vf_store(columns + 16 * j, vi_as_vf(pair));
        vf_store(columns + 16 * (j + 8), vf_set1(0));
    }
    v_transpose(columns, 16, rows, QKVI_SCORE_ROW);
    return small_tree(sum);
}

/* o = P V / l + 0 and `zero`, as small_values. */
static void dp_small_values(const small *a, const float *rows, const float *l, float *zero) {
    const attend_run keys = { 0, (a->n_keys + 1) / 2 * 2 };
    vf all = vf_set1(0);
    for (int64_t d = 0; d < a->head_dim_v; d += 32)
        for (int i = 0; i < a->n_queries; i += V_MR) {
            const int n = a->n_queries - i < V_MR ? a->n_queries - i : V_MR;
            dp_values_of[n](rows + i * QKVI_SCORE_ROW, 1, keys, (const uint32_t *)a->v + 8 * d, l,
                            a->o_sum + i * a->o_sum_row + d, a->o_sum_row, true, NULL);
        }
    for (int i = 0; i < a->n_queries; i++)
        for (int64_t d = 0; d < a->head_dim_v; d += 16) {
            const vf sum = vf_load(a->o_sum + i * a->o_sum_row + d);
            const vf x = vf_add(vf_div(sum, vf_set1(l[i])), vf_set1(0));
            vf_storeu(a->o + i * a->o_row + d, x);
            all = vf_fma(x, vf_set1(0), all);
        }
    vf_store(zero, all);
}

static void small_put_lse(const small *a, const float *lse) {
    for (int i = 0; a->lse && i < a->n_queries; i++) a->lse[i * a->lse_row] = lse[i];
}

static bool small_is_finite(const float *zero) {
    return vm_to_bits(vm_ne(vf_load(zero), vf_load(zero))) == 0;
}

static bool dp_small(const small *a) {
    float *s = a->work, *l = s + 16 * 16, *lse = l + 16, *zero = lse + 16;
    float *rows = zero + 16, *qt = rows + 16 * (QKVI_SCORE_ROW + 16);
    vf sum, log_sum;
    dp_small_transpose(a, qt);
    for (int j = 0; j < a->n_keys; j += V_MR) {
        const int n = a->n_keys - j < V_MR ? a->n_keys - j : V_MR;
        dp_small_scores_of[n]((const uint16_t *)a->k + j * a->k_row, a->k_row, a->head_dim, qt,
                              s + 16 * j);
    }
    if (!small_softmax(true, a, s, &sum, &log_sum)) return false;
    vf_store(l, dp_small_pairs(s, rows));
    vf_store(lse, log_sum);
    dp_small_values(a, rows, l, zero);
    small_put_lse(a, lse);
    return small_is_finite(zero);
}

static bool small_in_floats(const small *a) {
    float *s = a->work, *l = s + 16 * 16, *lse = l + 16, *zero = lse + 16, *qt = zero + 16;
    const float *k = a->k;
    vf sum, log_sum;
    small_transpose(a, qt);
    for (int j = 0; j < a->n_keys; j += V_MR) {
        const int rows = a->n_keys - j < V_MR ? a->n_keys - j : V_MR;
        small_scores_of[rows](k + j * a->k_row, a->k_row, a->head_dim, qt, s + 16 * j);
    }
    if (!small_softmax(false, a, s, &sum, &log_sum)) return false;
    vf_store(l, sum);
    vf_store(lse, log_sum);
    vf_store(zero, vf_set1(0));
    for (int i = 0; i < a->n_queries; i += V_MR) {
        const int rows = a->n_queries - i < V_MR ? a->n_queries - i : V_MR;
        small_values_of[rows](a, s + i, l + i, a->o + i * a->o_row, zero);
    }
    small_put_lse(a, lse);
    return small_is_finite(zero);
}

#endif
