/*
 * Statistics of weights: sums over classes of keys, of two rows at a time, and over bins of key - query
 * (docs/numerics.md, Statistics).
 */
#ifndef QKVI_TMPL_STATS_MASS_H
#define QKVI_TMPL_STATS_MASS_H

#include <string.h>

#include "kernels/tmpl/stats_row.h"

/* ---- Masses of classes ----------------------------------------------------------------------- */

enum {
    STATS_TOGETHER = V_NV == 2 ? 8 : 2, /* classes whose sums fit the registers */
    STATS_FEW = 4 /* of 8 panels hold a class, on average: below, each class by itself is faster */
};

V_INLINE int stats_class_groups(const attend_stats *t) {
    return (t->n_masses + QKVI_STATS_GROUP - 1) / QKVI_STATS_GROUP;
}

/* Which of the keys [from, to) of the block belong to class c: 1, the others 0; class: of each key. */
V_INLINE uint32_t stats_members(const attend_stats *t, int c, const float *class) {
    const vf one = vf_set1(1), zero = vf_set1(0);
    float *members = t->own.members + c * QKVI_KEY_BLOCK;
    uint32_t held = 0;
    for (int j = 0; j < QKVI_KEY_BLOCK; j += 16) {
        const vm in = vm_eq(vf_load(class + j), vf_set1((float)c));
        vf_store(members + j, vf_select(in, one, zero));
        held |= (uint32_t)(vm_to_bits(in) != 0) << j / 32;
    }
    return held;
}

static void attend_stats_members(const attend_stats *t, int64_t from, int64_t to) {
    qkvi_stats_scratch *w = t->own.scratch;
    _Alignas(64) float class[QKVI_KEY_BLOCK];
    int n_held = 0;
    for (int j = 0; j < QKVI_KEY_BLOCK; j++) class[j] = -1;
    for (int64_t j = from; j < to && t->n_classes; j++) class[j - w->key0] = (float)t->classes[j];
    for (int c = 0; c < t->n_classes; c++) w->holds[c] = (uint8_t)stats_members(t, c, class);
    if (t->key_weights) {
        float *members = t->own.members + t->n_classes * QKVI_KEY_BLOCK;
        for (int64_t j = w->key0; j < w->key0 + QKVI_KEY_BLOCK; j++)
            members[j - w->key0] = j < from || j >= to ? 0 : t->key_weights[j];
        w->holds[t->n_classes] = UINT8_MAX;
    }
    for (int c = 0; c < t->n_masses; c++) n_held += __builtin_popcount(w->holds[c]);
    w->few = n_held <= STATS_FEW * t->n_masses;
}

/* The 16 partial sums of one class, of R rows. */
V_INLINE void stats_class_lane(const int R, const attend_stats *t, const stats_row *r, int c) {
    float *to = t->own.scratch->class_lanes[c % QKVI_STATS_GROUP] + r->i % 16 * 16;
    const float *members = t->own.members + c * QKVI_KEY_BLOCK;
    vf sum[2] = { vf_set1(0), vf_set1(0) };
    for (uint32_t left = r->panels & t->own.scratch->holds[c]; left; left &= left - 1) {
        const int panel = 32 * __builtin_ctz(left);
        V_UNROLL(2) for (int j = panel; j < panel + 32; j += 16) {
            const vf member = vf_load(members + j);
            V_UNROLL(2)
            for (int n = 0; n < R; n++) sum[n] = vf_fma(vf_load(r[n].p + j), member, sum[n]);
        }
    }
    V_UNROLL(2) for (int n = 0; n < R; n++) vf_store(to + 16 * n, sum[n]);
}

/* Those of STATS_TOGETHER classes from `first` on. */
V_INLINE void stats_class_lanes(const int R, const attend_stats *t, const stats_row *r, int first) {
    float *to = t->own.scratch->class_lanes[first % QKVI_STATS_GROUP] + r->i % 16 * 16;
    vf sum[2][STATS_TOGETHER];
    V_UNROLL(2)
    for (int n = 0; n < R; n++)
        V_UNROLL(8) for (int c = 0; c < STATS_TOGETHER; c++) sum[n][c] = vf_set1(0);
    for (uint32_t panels = r->panels; panels;) {
        const attend_run run = attend_next_run(&panels);
        for (int j = run.from; j < run.to; j += 16) {
            const float *members = t->own.members + first * QKVI_KEY_BLOCK + j;
            const vf p[2] = { vf_load(r[0].p + j), vf_load(r[R - 1].p + j) };
            V_UNROLL(8) for (int c = 0; c < STATS_TOGETHER; c++) {
                const vf member = vf_load(members + c * QKVI_KEY_BLOCK);
                V_UNROLL(2) for (int n = 0; n < R; n++) sum[n][c] = vf_fma(p[n], member, sum[n][c]);
            }
        }
    }
    V_UNROLL(8)
    for (int c = 0; c < STATS_TOGETHER; c++)
        V_UNROLL(2) for (int n = 0; n < R; n++) vf_store(to + (16 * c + n) * 16, sum[n][c]);
}

/* Those of eight classes, of R rows from i on. */
V_INLINE void stats_class_rows(const int R, const attend *a, int i, int first) {
    const attend_stats *t = a->stats;
    const stats_row r[2] = { stats_row_of(a, i), stats_row_of(a, i + R - 1) };
    const int few = t->own.scratch->few ? QKVI_STATS_GROUP : 0;
    for (int c = first; c < first + few; c++)
        if (t->own.scratch->holds[c]) stats_class_lane(R, t, r, c);
    for (int c = few; c < QKVI_STATS_GROUP; c += STATS_TOGETHER)
        stats_class_lanes(R, t, r, first + c);
}

static __attribute__((noinline)) void stats_class_row(const attend *a, int i, int first) {
    stats_class_rows(1, a, i, first);
}

static __attribute__((noinline)) void stats_class_pair(const attend *a, int i, int first) {
    stats_class_rows(2, a, i, first);
}

/* Of the rows [g, end), g a multiple of 16. A class without a key in the block adds 0. */
static void stats_classes(const attend *a, int g, int end) {
    const attend_stats *t = a->stats;
    const vf alpha = vf_load(a->scratch->alpha + g), zero = vf_set1(0);
    float *to = t->own.class_sums + g * stats_class_groups(t) * QKVI_STATS_GROUP;
    for (int first = 0; first < t->n_masses; first += QKVI_STATS_GROUP) {
        for (int i = g; i < end; i += 2)
            (i + 1 < end ? stats_class_pair : stats_class_row)(a, i, first);
        for (int c = 0; c < QKVI_STATS_GROUP && first + c < t->n_masses; c++) {
            float *sum = to + (first + c) * 16;
            const bool held = t->own.scratch->holds[first + c];
            const vf block = held ? vf_sum_rows(t->own.scratch->class_lanes[c]) : zero;
            vf_store(sum, vf_fma(vf_load(sum), alpha, block));
        }
    }
}

/* ---- Masses by offset ------------------------------------------------------------------------ */

/* The block's sum of the weights of its keys [from, to). */
V_INLINE float stats_range_sum(const stats_row *r, int64_t from, int64_t to) {
    const vf zero = vf_set1(0);
    vf sum0 = zero, sum1 = zero;
    for (uint32_t panels = r->panels & mask_range(from / 32, (to + 31) / 32); panels;) {
        const attend_run run = attend_next_run(&panels);
        for (int j = run.from; j < run.to; j += 32) {
            const uint32_t in = mask_range(from - j, to - j);
            const vm in0 = vm_of_bits(in & 0xFFFF), in1 = vm_of_bits(in >> 16);
            sum0 = vf_add(sum0, vf_select(in0, vf_load(r->p + j), zero));
            sum1 = vf_add(sum1, vf_select(in1, vf_load(r->p + j + 16), zero));
        }
    }
    return vf_sum(vf_add(sum0, sum1));
}

static __attribute__((noinline)) void stats_offsets(const attend *a, int i) {
    const stats_row row = stats_row_of(a, i), *r = &row;
    const attend_stats *t = a->stats;
    const float alpha = a->scratch->alpha[r->i];
    const int64_t first =
        t->own.scratch->key0 - (t->position + r->i); /* offset of the block's first key */
    float *sums = t->own.offset_sums + r->i * t->n_offsets;
    int low = 0, high = t->n_offsets; /* the first bin that ends after it */
    for (int n = 0; n < t->n_offsets && alpha != 1; n++) sums[n] *= alpha;
    while (low < high) {
        const int n = (low + high) / 2;
        if (t->offsets[n + 1] > first)
            high = n;
        else
            low = n + 1;
    }
    for (int n = low; n < t->n_offsets && t->offsets[n] < first + QKVI_KEY_BLOCK; n++) {
        const int64_t from = t->offsets[n] - first, to = t->offsets[n + 1] - first;
        sums[n] += from <= 0 && to >= QKVI_KEY_BLOCK
                       ? vf_sum(vf_load(a->scratch->sum + 16 * r->i))
                       : stats_range_sum(r, from > 0 ? from : 0,
                                         to < QKVI_KEY_BLOCK ? to : QKVI_KEY_BLOCK);
    }
}

/* ---- Masses by token ------------------------------------------------------------------------- */

/* Chains of additions of p, in the order of keys. */
V_INLINE float stats_chain(float sum, const stats_row *r, int j, uint32_t bits) {
    for (; bits; bits &= bits - 1) sum += r->p[j + __builtin_ctz(bits)];
    return sum;
}

static __attribute__((noinline)) void stats_tokens(const attend *a, int i) {
    const attend_stats *t = a->stats;
    qkvi_stats_scratch *w = t->own.scratch;
    const stats_row r = stats_row_of(a, i);
    const int32_t token = t->tokens_q[i];
    const int64_t here = t->position + i;
    float sum[QKVI_STATS_TOKENS] = { 0 };
    for (uint32_t left = r.panels; left; left &= left - 1) {
        const int at = 32 * __builtin_ctz(left);
        const int64_t j = w->key0 + at;
        const int n = w->to - j < 32 ? (int)(w->to - j) : 32;
        const uint32_t same =
            v_equal(t->tokens_k + j, token, n) & ~mask_range(here - j, here - j + 1);
        const uint32_t after = j > 0 ? v_equal(t->tokens_k + j - 1, token, n)
                                     : v_equal(t->tokens_k, token, n - 1) << 1;
        sum[QKVI_TOKEN_SAME] = stats_chain(sum[QKVI_TOKEN_SAME], &r, at, same);
        sum[QKVI_TOKEN_DUPLICATE] =
            stats_chain(sum[QKVI_TOKEN_DUPLICATE], &r, at, same & mask_range(-32, here - j));
        sum[QKVI_TOKEN_INDUCTION] =
            stats_chain(sum[QKVI_TOKEN_INDUCTION], &r, at, after & mask_range(-32, here - j + 1));
    }
    for (int n = 0; n < QKVI_STATS_TOKENS; n++)
        w->token_sums[n][i] = fmaf(w->token_sums[n][i], a->scratch->alpha[i], sum[n]);
}

#endif
