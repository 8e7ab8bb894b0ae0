/*
 * Statistics of weights: sums over classes of keys and over bins of key - query (docs/numerics.md,
 * Statistics).
 */
#ifndef QKVI_TMPL_STATS_MASS_H
#define QKVI_TMPL_STATS_MASS_H

#include <string.h>

#include "core/fma.h"
#include "kernels/tmpl/stats_row.h"

/* ---- Masses of classes ----------------------------------------------------------------------- */

/*
 * Rows at a time: each has a chain of sums in registers, and a vector of members serves all of
 * them.
 */
enum { STATS_ROWS = V_NV == 2 ? 8 : 4 };

/*
 * Which of the keys [from, to) of the block belong to class c: 1, the others 0; class: of each key.
 */
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
    for (int j = 0; j < QKVI_KEY_BLOCK; j++) class[j] = -1;
    for (int64_t j = from; j < to && t->n_classes; j++) class[j - w->key0] = (float)t->classes[j];
    for (int c = 0; c < t->n_classes; c++) w->holds[c] = (uint8_t)stats_members(t, c, class);
    if (t->key_weights) {
        float *members = t->own.members + t->n_classes * QKVI_KEY_BLOCK;
        for (int64_t j = w->key0; j < w->key0 + QKVI_KEY_BLOCK; j++)
            members[j - w->key0] = j < from || j >= to ? 0 : t->key_weights[j];
        w->holds[t->n_classes] = UINT8_MAX;
    }
}

/* The 16 partial sums of one class of R rows, which have the panels of the first. */
V_INLINE void stats_class_rows(const int R, const attend_stats *t, const stats_row *r, int c) {
    const float *members = t->own.members + c * QKVI_KEY_BLOCK;
    float *to = t->own.scratch->class_lanes + r->i % 16 * 16;
    vf sum[STATS_ROWS];
    V_UNROLL(8) for (int n = 0; n < R; n++) sum[n] = vf_set1(0);
    for (uint32_t left = r->panels & t->own.scratch->holds[c]; left; left &= left - 1) {
        const int panel = 32 * __builtin_ctz(left);
        V_UNROLL(2) for (int j = panel; j < panel + 32; j += 16) {
            const vf member = vf_load(members + j);
            V_UNROLL(8)
            for (int n = 0; n < R; n++)
                sum[n] = vf_fma(vf_load(r->p + n * QKVI_SCORE_ROW + j), member, sum[n]);
        }
    }
    V_UNROLL(8) for (int n = 0; n < R; n++) vf_store(to + 16 * n, sum[n]);
}

/* Of the rows [g, end), g a multiple of 16. */
static __attribute__((noinline)) void stats_class(const attend *a, int g, int end, int c) {
    const qkvi_attend_tile *tile = a->scratch->tile;
    for (int i = g; i < end;) {
        const stats_row r = stats_row_of(a, i);
        const int last = i + STATS_ROWS - 1; /* of the row's tile, or of the next */
        if (last < end && tile[last / V_MR].panels == r.panels) {
            stats_class_rows(STATS_ROWS, a->stats, &r, c);
            i += STATS_ROWS;
        } else {
            stats_class_rows(1, a->stats, &r, c);
            i++;
        }
    }
}

/* Of those rows all classes. One without a key in the block adds 0. */
static void stats_classes(const attend *a, int g, int end) {
    const attend_stats *t = a->stats;
    const vf alpha = vf_load(a->scratch->alpha + g);
    float *sum = t->own.class_sums + g * t->n_masses;
    for (int c = 0; c < t->n_masses; c++, sum += 16) {
        vf block = vf_set1(0);
        if (t->own.scratch->holds[c]) {
            stats_class(a, g, end, c);
            block = vf_sum_rows(t->own.scratch->class_lanes);
        }
        vf_store(sum, vf_fma(vf_load(sum), alpha, block));
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
            if (in == UINT32_MAX) {
                sum0 = vf_add(sum0, vf_load(r->p + j));
                sum1 = vf_add(sum1, vf_load(r->p + j + 16));
                continue;
            }
            const vm in0 = vm_of_bits(in & 0xFFFF), in1 = vm_of_bits(in >> 16);
            sum0 = vf_add(sum0, vf_select(in0, vf_load(r->p + j), zero));
            sum1 = vf_add(sum1, vf_select(in1, vf_load(r->p + j + 16), zero));
        }
    }
    return vf_sum(vf_add(sum0, sum1));
}

/* The first bin that ends after an offset. */
V_INLINE int stats_bin(const attend_stats *t, int64_t offset) {
    int low = 0, high = t->n_offsets;
    while (low < high) {
        const int n = (low + high) / 2;
        if (t->offsets[n + 1] > offset)
            high = n;
        else
            low = n + 1;
    }
    return low;
}

/* Of one row, whose offset of the block's first key and first bin that ends after it these are. */
V_INLINE void stats_offsets_row(const attend *a, int i, int64_t first, int bin) {
    const stats_row r = stats_row_of(a, i);
    const attend_stats *t = a->stats;
    const float alpha = a->scratch->alpha[i];
    float *sums = t->own.offset_sums + i * t->n_offsets;
    for (int n = 0; n < t->n_offsets && alpha != 1; n++) sums[n] *= alpha;
    for (int n = bin; n < t->n_offsets && t->offsets[n] < first + QKVI_KEY_BLOCK; n++) {
        const int64_t from = t->offsets[n] - first, to = t->offsets[n + 1] - first;
        sums[n] += from <= 0 && to >= QKVI_KEY_BLOCK
                       ? vf_sum(vf_load(a->scratch->sum + 16 * i))
                       : stats_range_sum(&r, from > 0 ? from : 0,
                                         to < QKVI_KEY_BLOCK ? to : QKVI_KEY_BLOCK);
    }
}

/* Rows [g, end): the next has offsets that are less by one, and seldom another first bin. */
static __attribute__((noinline)) void stats_offsets(const attend *a, int g, int end) {
    const attend_stats *t = a->stats;
    int64_t first = t->own.scratch->key0 - (t->position + g);
    int bin = stats_bin(t, first);
    for (int i = g; i < end; i++, first--) {
        while (bin > 0 && t->offsets[bin] > first) bin--;
        stats_offsets_row(a, i, first, bin);
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
        w->token_sums[n][i] = qkvi_fmaf(w->token_sums[n][i], a->scratch->alpha[i], sum[n]);
}

#endif
