/*
 * Statistics of weights: the greatest scores of a row. A score and its key are one number of 64
 * bits, and lists of them are kept in order in registers, eight at a time.
 */
#ifndef QKVI_TMPL_STATS_TOP_H
#define QKVI_TMPL_STATS_TOP_H

#include <float.h>
#include <string.h>

#include "kernels/tmpl/stats_row.h"

/*
 * Greater for a greater score (0 and -0 are equal), then for a smaller key, which is not negative.
 */
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
 * The score that n of a block's scores at least are not below, n <= 16: the n-th greatest of 16
 * partial maxima, found by how many are above each of them.
 */
static float stats_floor(const stats_row *r, int n) {
    _Alignas(64) float top[16];
    vf most = vf_set1(-INFINITY), n_above = vf_set1(0);
    float floor = INFINITY;
    for (uint32_t panels = r->panels; panels;) {
        const attend_run run = attend_next_run(&panels);
        for (int j = run.from; j < run.to; j += 16) most = vf_max(vf_load(r->s + j), most);
    }
    vf_store(top, most);
    for (int e = 0; e < 16; e++)
        n_above = vf_add(n_above, vf_select(vm_lt(most, vf_set1(top[e])), vf_set1(1), vf_set1(0)));
    vf_store(top, vf_select(vm_lt(n_above, vf_set1((float)n)), most, vf_set1(INFINITY)));
    for (int e = 0; e < 16; e++) floor = top[e] < floor ? top[e] : floor;
    return floor;
}

/*
 * Places of the bits of a word, from the lowest on, and what lies beside them; returns how many
 * there are. Whether there are none, one or two is no branch, since it could not be predicted.
 */
V_INLINE int stats_places(uint64_t word, uint32_t base, uint16_t *to) {
    const int n = __builtin_popcountll(word);
    V_UNROLL(2)
    for (int e = 0; e < 2; e++, word &= word - 1)
        to[e] = (uint16_t)(base + (uint32_t)__builtin_ctzll(word | UINT64_C(1) << 63));
    for (int e = 2; e < n; e++, word &= word - 1)
        to[e] = (uint16_t)(base + (uint32_t)__builtin_ctzll(word));
    return n;
}

/*
 * Of a row the keys with scores that are not below `least`, as found[] has them; returns how many.
 */
V_INLINE int stats_find(const stats_row *r, float least, uint16_t *found) {
    const vf bound = vf_set1(least > -FLT_MAX ? least : -FLT_MAX); /* not -inf */
    int n = 0;
    V_UNROLL(4) for (int at = 0; at < QKVI_KEY_BLOCK; at += 64) {
        uint64_t word = 0;
        V_UNROLL(2) for (int j = 0; j < 64; j += 32) {
            const float *s = r->s + at + j;
            if (!(r->panels >> (at + j) / 32 & 1)) continue;
            const uint32_t low = vm_to_bits(vm_le(bound, vf_load(s)));
            word |= (uint64_t)(low | vm_to_bits(vm_le(bound, vf_load(s + 16))) << 16) << j;
        }
        n += stats_places(word, (uint32_t)(r->i % 16 * QKVI_KEY_BLOCK + at), found + n);
    }
    return n;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

/* What was found in a group of rows: scratch and lists of its first, and what to add to keys. */
typedef struct stats_group {
    const float *s;
    int64_t *list;
    int64_t key0;
} stats_group;

V_INLINE int64_t stats_found_rank(const stats_group *g, uint32_t found) {
    const uint32_t row = found / QKVI_KEY_BLOCK, key = found % QKVI_KEY_BLOCK;
    return stats_rank(g->s[row * QKVI_SCORE_ROW + key], g->key0 + key);
}

/* Lists of eight, of several rows: no branch but the end. */
static __attribute__((noinline)) void stats_insert(const stats_group *g, const uint16_t *found,
                                                   int n) {
    const stats_group group = *g;
    for (int e = 0; e < n; e++) {
        int64_t *list = group.list + found[e] / QKVI_KEY_BLOCK * 8;
        vr_store(list, vr_insert(vr_load(list), stats_found_rank(&group, found[e])));
    }
}

/* A longer one of one row: what eight leave over goes to the next. */
static __attribute__((noinline)) void stats_insert_long(const stats_group *g, int64_t *list,
                                                        int length, const uint16_t *found, int n) {
    int64_t ranks[QKVI_KEY_BLOCK];
    for (int e = 0; e < n; e++) ranks[e] = stats_found_rank(g, found[e]);
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

/* The last score of the lists of 16 rows. */
V_INLINE void stats_keep_least(const stats_group *g, int length, float *least) {
    int32_t bits[16];
    for (int n = 0; n < 16; n++) bits[n] = (int32_t)(g->list[(n + 1) * length - 1] >> 32);
    const vi x = vi_loadu(bits);
    vf_store(least, vi_as_vf(vi_xor(x, vi_and(vi_sar(x, 31), vi_set1(INT32_MAX)))));
}

/* Scores that belong into the lists of the rows [g, end), g a multiple of 16. */
static __attribute__((noinline)) void stats_tops(const attend *a, int g, int end) {
    const attend_stats *t = a->stats;
    qkvi_stats_scratch *w = t->own.scratch;
    const int length = stats_top_row(t);
    const stats_group group = { a->scratch->s + g * QKVI_SCORE_ROW, t->own.top + g * length,
                                w->key0 };
    uint32_t left = vm_to_bits(vm_lt(vf_load(w->least + g), vf_load(w->block_top + g)));
    int n = 0;
    for (left &= mask_range(0, end - g); left; left &= left - 1) {
        const int row = __builtin_ctz(left);
        const stats_row r = stats_row_of(a, g + row);
        float least = w->least[r.i];
        if (least == -INFINITY && length <= 16) least = stats_floor(&r, length);
        const int more = stats_find(&r, least, w->found + n);
        if (length == 8)
            n += more;
        else
            stats_insert_long(&group, group.list + row * length, length, w->found, more);
    }
    if (length == 8) stats_insert(&group, w->found, n);
    for (int i = g; i < end; i++) w->least[i] = stats_rank_score(t->own.top[(i + 1) * length - 1]);
}

#endif
