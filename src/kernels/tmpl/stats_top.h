/*
 * Statistics of weights: the greatest scores of a row. A score and its key are one number of 64 bits,
 * and lists of them are sorted in registers, eight at a time.
 */
#ifndef QKVI_TMPL_STATS_TOP_H
#define QKVI_TMPL_STATS_TOP_H

#include <float.h>
#include <string.h>

#include "kernels/tmpl/stats_row.h"

/* Greater for a greater score (0 and -0 are equal), then for a smaller key, which is not negative. */
V_INLINE int64_t stats_rank(float score, int64_t key) {
    const float canonical = score + 0.0f;
    int32_t bits;
    memcpy(&bits, &canonical, sizeof bits);
    bits ^= bits >> 31 & INT32_MAX;
    return (int64_t)((uint64_t)(uint32_t)bits << 32 | (uint32_t)(INT32_MAX - (int32_t)key));
}

V_INLINE int64_t stats_rank_key(int64_t rank) { return INT32_MAX - (int32_t)(uint32_t)rank; }

V_INLINE float stats_rank_score(int64_t rank) {
    int32_t bits = (int32_t)(rank >> 32);
    float score;
    bits ^= bits >> 31 & INT32_MAX;
    memcpy(&score, &bits, sizeof score);
    return score;
}

/*
 * Eight of a list in registers, without a branch, since nobody can foretell where a rank goes. Returns
 * what is left over: the last of them, or the rank.
 */
V_INLINE int64_t stats_insert(int64_t eight[8], int64_t rank) {
    V_UNROLL(8) for (int at = 0; at < 8; at++) {
        const int64_t x = eight[at];
        eight[at] = x > rank ? x : rank;
        rank = x > rank ? rank : x;
    }
    return rank;
}

V_INLINE int stats_top_row(const attend_stats *t) { return (t->top_k + 7) / 8 * 8; }

/*
 * A score that the n-th greatest of the block is not below, n <= 8: the eighth greatest of 32 partial
 * maxima.
 */
static float stats_floor(const stats_row *r) {
    _Alignas(64) float top[32];
    int64_t eight[8];
    vf top0 = vf_set1(-INFINITY), top1 = top0;
    for (uint32_t panels = r->panels; panels;) {
        const attend_run run = attend_next_run(&panels);
        for (int j = run.from; j < run.to; j += 32) {
            top0 = vf_max(vf_load(r->scores + j), top0);
            top1 = vf_max(vf_load(r->scores + j + 16), top1);
        }
    }
    vf_store(top, top0);
    vf_store(top + 16, top1);
    V_UNROLL(8) for (int at = 0; at < 8; at++) eight[at] = stats_rank(-INFINITY, 0);
    for (int at = 0; at < 32; at++) stats_insert(eight, stats_rank(top[at], 0));
    return stats_rank_score(eight[7]);
}

/* Keys of a block, a bit each. */
typedef struct stats_found {
    uint64_t bits[QKVI_KEY_BLOCK / 64];
} stats_found;

/* The first of them, taken out, without a branch; there is one. */
V_INLINE int stats_next(stats_found *f) {
    int word = f->bits[2] ? 2 : 3;
    word = f->bits[1] ? 1 : word;
    word = f->bits[0] ? 0 : word;
    const uint64_t bits = f->bits[word];
    f->bits[word] = bits & (bits - 1);
    return 64 * word + __builtin_ctzll(bits);
}

V_INLINE stats_found stats_find(const stats_row *r, float least) {
    const vf bound = vf_set1(least > -FLT_MAX ? least : -FLT_MAX); /* not -inf */
    stats_found f = { { 0 } };
    for (int n = 0; n < QKVI_KEY_BLOCK / 32; n++) {
        const float *s = r->scores + 32 * n;
        if (!(r->panels >> n & 1)) continue;
        const uint32_t bits =
            vm_to_bits(vm_le(bound, vf_load(s))) | vm_to_bits(vm_le(bound, vf_load(s + 16))) << 16;
        f.bits[n / 2] |= (uint64_t)bits << n % 2 * 32;
    }
    return f;
}

/* Candidates are found first, so that inserting them is one loop. */
static __attribute__((noinline)) void stats_top(const attend *a, const stats_row *r, int64_t key0) {
    const attend_stats *t = a->stats;
    const int length = stats_top_row(t);
    int64_t *list = t->own.top + r->i * length, eight[8];
    float least = stats_rank_score(list[length - 1]);
    if (least == -INFINITY && length == 8) least = stats_floor(r);
    stats_found found = stats_find(r, least);
    int n = 0;
    for (int word = 0; word < QKVI_KEY_BLOCK / 64; word++)
        n += __builtin_popcountll(found.bits[word]);
    V_UNROLL(8) for (int at = 0; at < 8; at++) eight[at] = list[at];
    for (; n > 0; n--) {
        const int key = stats_next(&found);
        int64_t rank = stats_insert(eight, stats_rank(r->scores[key], key0 + key));
        for (int at = 8; at < length; at += 8) /* what one eight leaves over goes to the next */
            if (rank > list[at + 7]) rank = stats_insert(list + at, rank);
    }
    V_UNROLL(8) for (int at = 0; at < 8; at++) list[at] = eight[at];
}

#endif
