/*
 * Statistics of weights: sums over classes of keys, of two rows at a time, and over bins of key - query
 * (docs/numerics.md, Statistics).
 */
#ifndef QKVI_TMPL_STATS_MASS_H
#define QKVI_TMPL_STATS_MASS_H

#include <string.h>

#include "kernels/tmpl/stats_row.h"

/* ---- Masses of classes ----------------------------------------------------------------------- */

enum { STATS_TOGETHER = V_NV == 2 ? 8 : 2 }; /* classes whose sums fit the registers */

V_INLINE int stats_class_groups(const attend_stats *t) {
    return (t->n_classes + QKVI_STATS_GROUP - 1) / QKVI_STATS_GROUP;
}

/* Which of the keys [from, to) of the block belong to which class: 1, the others 0. */
static void attend_stats_members(const attend *a, int64_t key0, int64_t from, int64_t to) {
    const attend_stats *t = a->stats;
    const int64_t n = stats_class_groups(t) * QKVI_STATS_GROUP * QKVI_KEY_BLOCK;
    memset(t->own.members, 0, (size_t)n * sizeof *t->own.members);
    for (int64_t j = from; j < to; j++)
        if (t->classes[j] < t->n_classes)
            t->own.members[t->classes[j] * QKVI_KEY_BLOCK + (j - key0)] = 1;
}

/* Sums of STATS_TOGETHER classes from `first` on, of R rows, into rows of class_lanes. */
V_INLINE void stats_class_lanes(const int R, const attend_stats *t, const stats_row *r, int first) {

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
    float *to = t->own.scratch->class_lanes + first % QKVI_STATS_GROUP * 16;
    V_UNROLL(8) for (int c = 0; c < STATS_TOGETHER; c++) {
        V_UNROLL(2)
        for (int n = 0; n < R; n++) vf_store(to + (n * QKVI_STATS_GROUP + c) * 16, sum[n][c]);
    }
}

static __attribute__((noinline)) void stats_class_lanes_1(const attend_stats *t, const stats_row *r,
                                                          int first) {
    stats_class_lanes(1, t, r, first);
}

static __attribute__((noinline)) void stats_class_lanes_2(const attend_stats *t, const stats_row *r,
                                                          int first) {
    stats_class_lanes(2, t, r, first);
}

/* Of one or two rows. */
static void stats_classes(const attend *a, const stats_row *r, int n_rows) {
    const attend_stats *t = a->stats;
    const float *alpha = a->scratch->alpha;
    const vf alphas = vf_select(vm_of_bits(0xFF), vf_set1(alpha[r->i]),
                                vf_set1(alpha[n_rows == 2 ? r->i + 1 : r->i]));
    float *to = t->own.class_sums + r->i / 2 * stats_class_groups(t) * 16;
    for (int g = 0; g < stats_class_groups(t); g++, to += 16) {
        for (int c = 0; c < QKVI_STATS_GROUP; c += STATS_TOGETHER)
            (n_rows == 2 ? stats_class_lanes_2 : stats_class_lanes_1)(t, r,
                                                                      g * QKVI_STATS_GROUP + c);
        vf_store(to, vf_fma(vf_load(to), alphas, vf_sum_rows(t->own.scratch->class_lanes)));
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

static __attribute__((noinline)) void stats_offsets(const attend *a, const stats_row *r,
                                                    int64_t key0) {
    const attend_stats *t = a->stats;
    const float alpha = a->scratch->alpha[r->i];
    const int64_t first = key0 - (t->position + r->i); /* offset of the block's first key */
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

#endif
