/*
 * Decode: statistics of weights (docs/numerics.md, Decode, statistics). kernels/decode_stats.h has
 * the layout, tmpl/attend_stats.h the sums of 256 keys.
 *
 * Scores are copied before they become weights, so o and lse have the bits of a call without
 * statistics. The rows of a head are consecutive queries, as there; of several heads the sums of
 * one at a time are in the scratch of the forward pass, those of others in the part.
 */
#ifndef QKVI_TMPL_DECODE_STATS_H
#define QKVI_TMPL_DECODE_STATS_H

#include "core/fma.h"
#include "kernels/decode_stats.h"
#include "kernels/tmpl/attend.h"
#include "kernels/tmpl/stats_kept.h"

enum { DECODE_HALF = QKVI_KEY_BLOCK / QKVI_DECODE_GROUP }; /* groups */

/* The rows of a head as the forward pass has them. */
static attend decode_attend(const qkvi_decode *a, int head) {
    return (attend){
        .n_queries = (a->n_rows - head + a->stats->n_heads - 1) / a->stats->n_heads,
        .scratch = a->stats->scratch,
        .mask = a->rows[head].mask,
        .scale = a->scale,
        .softcap = a->softcap,
        .stats = &a->stats->of[head],
    };
}

/* The row of query i of a head. */
V_INLINE int decode_row_of(const qkvi_decode *a, int head, int i) {
    return head + i * a->stats->n_heads;
}

/* ---- Sums of a row --------------------------------------------------------------------------- */

V_INLINE qkvi_stats_kept *decode_sums(const qkvi_decode *a, const qkvi_decode_part *part, int r) {
    const size_t at = a->stats->sums_at + (size_t)r * a->stats->sums_bytes;
    return (qkvi_stats_kept *)(void *)((char *)(uintptr_t)part + at);
}

static void decode_sums_load(const qkvi_decode *a, const attend *x, int head) {
    for (int i = 0; i < x->n_queries; i++)
        stats_move_row(true, x->stats, i, decode_sums(a, a->part, decode_row_of(a, head, i)));
    a->stats->held = head;
}

static void decode_sums_store(const qkvi_decode *a, const attend *x, int head) {
    for (int i = 0; i < x->n_queries; i++)
        stats_move_row(false, x->stats, i, decode_sums(a, a->part, decode_row_of(a, head, i)));
}

/* ---- A split --------------------------------------------------------------------------------- */

/* The first head has as many rows as any other. */
static void decode_stats_begin(const qkvi_decode *a) {
    const attend x = decode_attend(a, 0);
    attend_stats_begin(&x);
    for (int head = 0; head < a->stats->n_heads; head++) {
        const attend y = decode_attend(a, head);
        decode_sums_store(a, &y, head);
    }
    a->stats->held = 0;
}

/* The sums of the last head that was under way. */
static void decode_stats_keep(const qkvi_decode *a) {
    const attend x = decode_attend(a, a->stats->held);
    decode_sums_store(a, &x, a->stats->held);
}

/*
 * Groups [from, to) of a half of the block of keys, of which it is the `half`th, as the rows of x.
 */
static void decode_stats_copy(const qkvi_decode *a, const attend *x, int head, int half, int from,
                              int to) {
    const vf none = vf_set1(-INFINITY);
    for (int i = 0; i < x->n_queries; i++) {
        const float *s = a->scratch->s + decode_row_of(a, head, i) * QKVI_DECODE_SCORE_ROW +
                         QKVI_KEY_BLOCK * half;
        float *own = x->scratch->s + i * QKVI_SCORE_ROW;
        if (from % 2) vf_store(own + QKVI_DECODE_GROUP * (from - 1), none);
        for (int g = from; g < to; g++)
            vf_store(own + QKVI_DECODE_GROUP * g, vf_load(s + QKVI_DECODE_GROUP * g));
        if (to % 2) vf_store(own + QKVI_DECODE_GROUP * to, none);
    }
    for (int i = 0; i < x->n_queries; i += V_MR)
        x->scratch->tile[i / V_MR].panels = mask_range(from / 2, (to + 1) / 2);
}

/* Numbers of rows that have them, as lanes of x. */
V_INLINE vf decode_stats_lanes(const qkvi_decode *a, const attend *x, int head, int g,
                               const float *of) {
    float lanes[16] = { 0 };
    for (int i = g; i < g + 16 && i < x->n_queries; i++)
        lanes[i - g] = of[decode_row_of(a, head, i)];
    return vf_loadu(lanes);
}

/* alpha is that of the block for the first half that is looked at, and 1 after it. */
static void decode_stats_half(const qkvi_decode *a, const attend *x, int head, bool first) {
    const qkvi_decode_scratch *w = a->scratch;
    qkvi_attend_scratch *to = x->scratch;
    for (int g = 0; g < x->n_queries; g += 16) {
        const int end = g + 16 < x->n_queries ? g + 16 : x->n_queries;
        const vf top = decode_stats_lanes(a, x, head, g, a->stats->top);
        vf_store(to->m + g, decode_stats_lanes(a, x, head, g, w->m));
        vf_store(to->l + g, decode_stats_lanes(a, x, head, g, w->l));
        vf_store(to->shift + g, decode_stats_lanes(a, x, head, g, w->shift));
        vf_store(to->alpha + g, first ? decode_stats_lanes(a, x, head, g, w->alpha) : vf_set1(1));
        if (first)
            attend_stats_raise(x, g, top, decode_stats_lanes(a, x, head, g, a->stats->before));
        else
            vf_store(x->stats->own.scratch->block_top + g, top);
        ISA(attend).stats_rows(x, g, end, attend_factor(x));
    }
}

/*
 * Groups [from, to) of the block from key0 on: scores, of which m, alpha and the shift are known.
 */
static void decode_stats_block(const qkvi_decode *a, int64_t key0, int from, int to) {
    const qkvi_decode_scratch *w = a->scratch;
    const int first = from / DECODE_HALF;
    for (int r = 0; r < a->n_rows; r += 16)
        vf_store(a->stats->top + r, vf_max_rows(w->max + 16 * r));
    for (int half = first; DECODE_HALF * half < to; half++) {
        const int begin = half == first ? from - DECODE_HALF * half : 0;
        const int end =
            to - DECODE_HALF * half < DECODE_HALF ? to - DECODE_HALF * half : DECODE_HALF;
        const int64_t key = key0 + QKVI_KEY_BLOCK * half;
        for (int head = 0; head < a->stats->n_heads; head++) {
            const attend x = decode_attend(a, head);
            if (a->stats->held != head) {
                decode_stats_keep(a);
                decode_sums_load(a, &x, head);
            }
            if (head == 0 || x.stats->key_weights) /* classes are those of all heads */
                attend_stats_block(&x, key, qkvi_max_i64(a->first_key, key),
                                   qkvi_min_i64(a->end_key, key + QKVI_KEY_BLOCK));
            decode_stats_copy(a, &x, head, half, begin, end);
            decode_stats_half(a, &x, head, half == first);
        }
    }
}

/* ---- Splits together ------------------------------------------------------------------------- */

/* How far a reference is above another, in log2 units; 0 where there is none. */
V_INLINE float decode_fallen_by(const bool edits, float from, float m) {
    return from == -INFINITY ? 0 : (from - m) * (edits ? ATTEND_LOG2E : 1);
}

/* Sums from one origin become those from the first part's. */
static void decode_join_scores(qkvi_stats_kept *x, const qkvi_stats_kept *y) {
    float *s = &x->sum[QKVI_SUM_S], *ss = &x->sum[QKVI_SUM_SS];
    const float y_s = y->sum[QKVI_SUM_S], y_ss = y->sum[QKVI_SUM_SS];
    if (x->origin == -INFINITY) {
        x->origin = y->origin, *s = y_s, *ss = y_ss;
    } else if (y->origin > -INFINITY) {
        const float n = (float)y->n_seen, far = y->origin - x->origin;
        *s += qkvi_fmaf(n, far, y_s);
        *ss += qkvi_fmaf(far, qkvi_fmaf(n, far, y_s + y_s), y_ss);
    }
    x->n_seen += y->n_seen;
    if (y->largest > x->largest) x->largest = y->largest;
}

static void decode_join_lists(int64_t *x, const int64_t *y, int n) {
    int64_t all[(QKV_STATS_MAX_TOP + 7) / 8 * 8];
    for (int at = 0, i = 0, j = 0; at < n; at++) all[at] = x[i] >= y[j] ? x[i++] : y[j++];
    memcpy(x, all, (size_t)n * sizeof *x);
}

/* Those of the later part are added to those of row r, whose m and l are still its own. */
static void decode_stats_join(const qkvi_decode *a, int r, const qkvi_decode_part *next, float m,
                              float fall, float fall_next) {
    const attend_stats *t = &a->stats->of[0];
    const qkvi_decode_part *part = a->part;
    const bool edits = a->softcap > 0 || mask_biases(&a->rows[r].mask);
    qkvi_stats_kept *x = decode_sums(a, part, r), *y = decode_sums(a, next, r);
    const float by = decode_fallen_by(edits, part->m[r], m);
    const float by_next = decode_fallen_by(edits, next->m[r], m);
    float *masses = stats_kept_masses(t, x);
    const float *more = stats_kept_masses(t, y);
    x->fallen = qkvi_fmaf(qkvi_fmaf(by, part->l[r], x->fallen), fall,
                          qkvi_fmaf(by_next, next->l[r], y->fallen) * fall_next);
    for (int n = QKVI_SUM_PX; n <= QKVI_SUM_PDD; n++) {
        const bool squares = n == QKVI_SUM_PP;
        const float factor = squares ? fall * fall : fall;
        const float factor_next = squares ? fall_next * fall_next : fall_next;
        x->sum[n] = qkvi_fmaf(x->sum[n], factor, y->sum[n] * factor_next);
    }
    for (int n = 0; n < QKVI_STATS_TOKENS; n++)
        x->tokens[n] = qkvi_fmaf(x->tokens[n], fall, y->tokens[n] * fall_next);
    for (int n = 0; n < t->n_masses + t->n_offsets; n++)
        masses[n] = qkvi_fmaf(masses[n], fall, more[n] * fall_next);
    if (y->top > x->top) x->top = y->top;
    decode_join_scores(x, y);
    if (t->top_k) decode_join_lists(x->list, y->list, stats_top_row(t));
}

/* ---- Results --------------------------------------------------------------------------------- */

/* After all keys: of rows that see none of them nothing is in the part. */
static void decode_stats_finish(const qkvi_decode *a, const float *lse) {
    for (int head = 0; head < a->stats->n_heads; head++) {
        const attend x = decode_attend(a, head);
        const int n = (x.n_queries + 15) / 16 * 16;
        float lses[QKVI_DECODE_ROWS] = { 0 };
        attend_stats_begin(&x);
        for (int i = 0; i < n; i++) x.scratch->m[i] = -INFINITY, x.scratch->l[i] = 0;
        for (int i = 0; i < x.n_queries; i++) {
            const int r = decode_row_of(a, head, i);
            lses[i] = lse[r];
            if (!(a->part->seen >> r & 1)) continue;
            x.scratch->m[i] = a->part->m[r], x.scratch->l[i] = a->part->l[r];
            stats_move_row(true, x.stats, i, decode_sums(a, a->part, r));
        }
        for (int g = 0; g < n; g += 16) {
            const qkvi_decode_row *row = &a->rows[head];
            vf m = vf_load(x.scratch->m + g), l = vf_load(x.scratch->l + g), alpha = vf_set1(1);
            if (row->has_sink) alpha = attend_sink(attend_edits(&x), row->sink, &m, &l);
            attend_stats_end(&x, g, (const vf[]){ m, l, alpha }, lses + g);
        }
    }
}

#endif
