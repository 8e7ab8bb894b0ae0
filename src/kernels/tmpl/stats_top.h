/*
 * Statistics of weights: the greatest scores of a row. A score and its key are one number of 64 bits,
 * and lists of them are kept in order in registers, eight at a time.
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

V_INLINE int stats_top_row(const attend_stats *t) { return (t->top_k + 7) / 8 * 8; }

/* ---- Candidates of a block ------------------------------------------------------------------- */

/*
 * The score that n of a block's scores at least are not below, n <= 16: the n-th greatest of 16 partial
 * maxima, found by how many are above each of them.
 */
static float stats_floor(const stats_row *r, int n) {
    _Alignas(64) float top[16];
    vf most = vf_set1(-INFINITY);
    float floor = INFINITY;
    for (uint32_t panels = r->panels; panels;) {
        const attend_run run = attend_next_run(&panels);
        for (int j = run.from; j < run.to; j += 16) most = vf_max(vf_load(r->s + j), most);
    }
    vf_store(top, most);
    for (int e = 0; e < 16; e++) {
        const int n_above = __builtin_popcount(vm_to_bits(vm_lt(vf_set1(top[e]), most)));
        floor = n_above < n && top[e] < floor ? top[e] : floor;
    }
    return floor;
}

/* Keys of a block, a bit each, and the panels of 32 that have one. */
typedef struct stats_found {
    uint32_t bits[QKVI_KEY_BLOCK / 32], panels;
} stats_found;

V_INLINE stats_found stats_find(const stats_row *r, float least) {
    const vf bound = vf_set1(least > -FLT_MAX ? least : -FLT_MAX); /* not -inf */
    stats_found f = { { 0 }, 0 };
    V_UNROLL(8) for (int n = 0; n < QKVI_KEY_BLOCK / 32; n++) {
        const float *s = r->s + 32 * n;
        if (!(r->panels >> n & 1)) continue;
        const uint32_t low = vm_to_bits(vm_le(bound, vf_load(s)));
        f.bits[n] = low | vm_to_bits(vm_le(bound, vf_load(s + 16))) << 16;
        f.panels |= (uint32_t)(f.bits[n] != 0) << n;
    }
    return f;
}

/* Most panels have one key or none, which makes these two loops nearly one. */
#define STATS_EACH_FOUND(f, j)                                                                     \
    for (uint32_t in_ = (f)->panels; in_; in_ &= in_ - 1)                                          \
        for (uint32_t n_ = (uint32_t)__builtin_ctz(in_), left_ = (f)->bits[n_], j;                 \
             left_ && (j = 32 * n_ + (uint32_t)__builtin_ctz(left_), true); left_ &= left_ - 1)

/* ---- Lists ----------------------------------------------------------------------------------- */

/* Up to eight of a list. */
V_INLINE void stats_insert(int64_t *list, const stats_row *r, int64_t key0, const stats_found *f) {
    vr eight = vr_load(list);
    STATS_EACH_FOUND(f, j) eight = vr_insert(eight, stats_rank(r->s[j], key0 + j));
    vr_store(list, eight);
}

/* More of it: what the first eight leave over goes to the next. */
V_INLINE void stats_insert_long(int64_t *list, int length, const stats_row *r, int64_t key0,
                                const stats_found *f) {
    int64_t ranks[QKVI_KEY_BLOCK];
    int n = 0;
    STATS_EACH_FOUND(f, j) ranks[n++] = stats_rank(r->s[j], key0 + j);
    for (int at = 0; at < length; at += 8) {
        vr eight = vr_load(list + at);
        for (int e = 0; e < n; e++) {
            const int64_t last = vr_last(eight), rank = ranks[e];
            eight = vr_insert(eight, rank);
            ranks[e] = last > rank ? rank : last;
        }
        vr_store(list + at, eight);
    }
}

/* A row's scores that belong into its list. */
static __attribute__((noinline)) void stats_top(const attend *a, int i) {
    const attend_stats *t = a->stats;
    qkvi_stats_scratch *w = t->own.scratch;
    const stats_row r = stats_row_of(a, i);
    const int length = stats_top_row(t);
    int64_t *list = t->own.top + i * length;
    float least = w->least[i];
    if (least == -INFINITY && length <= 16) least = stats_floor(&r, length);
    const stats_found found = stats_find(&r, least);
    if (length == 8)
        stats_insert(list, &r, w->key0, &found);
    else
        stats_insert_long(list, length, &r, w->key0, &found);
    w->least[i] = stats_rank_score(list[length - 1]);
}

/* Those of the rows [g, end), g a multiple of 16, that have one. */
static void stats_tops(const attend *a, int g, int end) {
    const qkvi_stats_scratch *w = a->stats->own.scratch;
    uint32_t left = vm_to_bits(vm_lt(vf_load(w->least + g), vf_load(w->block_top + g)));
    for (left &= mask_range(0, end - g); left; left &= left - 1)
        stats_top(a, g + __builtin_ctz(left));
}

#endif
