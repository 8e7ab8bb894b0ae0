/*
 * Columns of weights: sums over queries for each key, 16 keys side by side. kernels/columns.h has
 * the layout, docs/numerics.md the order.
 *
 * A hidden key has the score -inf and so p = 0; adding it changes no sum but perhaps the sign of a
 * zero, which is lost in the doubles, so which tiles are computed at all is free. Rows that take no
 * part get -inf for all keys. lse log2 e is subtracted in two parts, so that a weight has no error
 * but that of lse.
 */
#ifndef QKVI_TMPL_COLUMNS_H
#define QKVI_TMPL_COLUMNS_H

#include <string.h>

#include "kernels/columns.h"
#include "kernels/tmpl/attend_scores.h"
#include "kernels/tmpl/columns_map.h"

/* 1 / ATTEND_LN2, which lse was multiplied by, as the sum of two floats. */
#define COLUMNS_LOG2E      1.44269502f
#define COLUMNS_LOG2E_REST 1.52953419e-08f

/* ---- Rows ------------------------------------------------------------------------------------ */

/* What is subtracted from the scores of a row, and its weight. */
static void columns_rows(const qkvi_columns *c) {
    const int n = c->a->n_queries;
    qkvi_columns_scratch *w = c->own;
    for (int i = 0; i < QKVI_QUERY_BLOCK; i++) {
        w->shift[i] = i < n ? c->lse[i * c->lse_row] : 0;
        w->weight[i] = i < n && c->weights ? c->weights[i * c->weights_row] : 1;
    }
    memset(w->left_out, 0, sizeof w->left_out);
    memset(w->saw, 0, sizeof w->saw);
    for (int g = 0; g < n; g += 16) {
        const vf zero = vf_set1(0), given = vf_load(w->shift + g);
        const vm finite = vm_lt(vf_abs(given), vf_set1(INFINITY));
        const vf lse = vf_select(finite, given, zero), by = vf_set1(COLUMNS_LOG2E);
        const vf shift = vf_mul(lse, by);
        const vf rest = vf_fma(lse, vf_set1(COLUMNS_LOG2E_REST), vf_fms(lse, by, shift));
        const vm ordinary = vm_lt(vf_abs(shift), vf_set1(0x1p60f));
        const bool edits = attend_edits(c->a);
        vf_store(w->shift + g, edits ? lse : shift);
        vf_store(w->rest + g, edits ? zero : vf_select(ordinary, rest, zero));
        w->left_out[g / 32] |= (~vm_to_bits(finite) & 0xFFFF) << g % 32;
    }
}

/* ---- Scores of 32 keys ----------------------------------------------------------------------- */

/* Which rows have a score above -inf: what emptiness beside a sink is decided by. */
static void columns_saw(const qkvi_columns *c) {
    qkvi_attend_scratch *s = c->a->scratch;
    for (int g = 0; g < c->a->n_queries; g += 16) {
        const int end = g + 16 < c->a->n_queries ? g + 16 : c->a->n_queries;
        for (int i = g; i < end; i += V_TOPS)
            if (!s->tile[i / V_MR].panels) attend_no_max(s, i, i + 1);
        const vm above = vm_lt(vf_set1(-INFINITY), attend_max_rows(s, g));
        c->own->saw[g / 32] |= vm_to_bits(above) << g % 32;
    }
}

/* Rows [i, i + rows) of the panel from key0 + t on. */
static void columns_fill(const qkvi_columns *c, int i, int rows, int t, vf x) {
    float *s = c->a->scratch->s + i * QKVI_SCORE_ROW + t;
    for (int r = 0; r < rows; r++, s += QKVI_SCORE_ROW) {
        vf_store(s, x);
        vf_store(s + 16, x);
    }
}

/* The panel from key j on; rows that take no part see nothing. */
static void columns_scores(const qkvi_columns *c, int64_t j) {
    qkvi_attend_scratch *s = c->a->scratch;
    for (int t = 0; t * V_MR < c->a->n_queries; t++) {
        s->tile[t].panels = 0;
        s->tile[t].partial = false;
    }
    attend_scores(c->a, c->key0, j, j + 32 < c->to ? j + 32 : c->to);
    if (c->a->has_sink) columns_saw(c);
    for (int g = 0; 32 * g < c->a->n_queries; g++)
        for (uint32_t left = c->own->left_out[g]; left; left &= left - 1) {
            const int i = 32 * g + __builtin_ctz(left);
            if (i >= c->a->n_queries) break;
            columns_fill(c, i, 1, (int)(j - c->key0), vf_set1(-INFINITY));
        }
}

/* ---- Weights and sums of 16 keys ------------------------------------------------------------- */

/* log2 of the weights of row i with scores s, at most 0. */
V_INLINE vf columns_exponent(const bool edits, const qkvi_columns_scratch *w, int i, vf s, vf by) {
    const vf shift = vf_set1(w->shift[i]);
    const vf x =
        edits ? vf_mul(vf_sub(s, shift), by) : vf_sub(vf_fms(s, by, shift), vf_set1(w->rest[i]));
    return vf_min(vf_set1(0), x);
}

typedef struct columns_sums {
    vf received, sum, p_log_p, seen, tiny, largest, at;
} columns_sums;

/* All sums go on by the rows of a tile, whose p are kept. s: 16 scores of row i. */
V_INLINE void columns_all(const bool edits, const qkvi_columns *c, int i, int rows, int t, float *s,
                          vf by, columns_sums *x) {
    static const float number[QKVI_QUERY_BLOCK] = {
#define COLUMNS_8(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7
        COLUMNS_8(0),  COLUMNS_8(8),  COLUMNS_8(16), COLUMNS_8(24), COLUMNS_8(32), COLUMNS_8(40),
        COLUMNS_8(48), COLUMNS_8(56), COLUMNS_8(64), COLUMNS_8(72), COLUMNS_8(80), COLUMNS_8(88)
    };
    const vf zero = vf_set1(0), one = vf_set1(1);
    for (int r = i; r < i + rows; r++, s += QKVI_SCORE_ROW) {
        const vf score = vf_load(s);
        const vf u = columns_exponent(edits, c->own, r, score, by), p = vf_exp2_below_128(u);
        const vm sees = vm_lt(vf_set1(-INFINITY), score), greater = vm_lt(x->largest, p);
        vf_store(s, p);
        c->own->sees[r][1 + t / 16] = (uint16_t)vm_to_bits(sees);
        x->received = vf_fma(p, vf_set1(c->own->weight[r]), x->received);
        x->sum = vf_add(x->sum, p);
        x->p_log_p = vf_fma(p, vf_max(u, vf_set1(-128)), x->p_log_p);
        x->seen = vf_add(x->seen, vf_select(sees, one, zero));
        x->tiny = vf_add(x->tiny, vf_select(vm_and(sees, vm_lt(p, vf_set1(c->tiny))), one, zero));
        x->largest = vf_select(greater, p, x->largest);
        x->at = vf_select(greater, vf_set1(number[r]), x->at);
    }
}

V_INLINE vf columns_received(const bool edits, const qkvi_columns *c, int i, int rows,
                             const float *s, vf by, vf sum) {
    V_UNROLL_BY(2) for (int r = i; r < i + rows; r++, s += QKVI_SCORE_ROW) {
        const vf p = vf_exp2_below_128(columns_exponent(edits, c->own, r, vf_load(s), by));
        sum = vf_fma(p, vf_set1(c->own->weight[r]), sum);
    }
    return sum;
}

/* Rows of a tile that were not computed, if they will be read. */
static void columns_blank(const qkvi_columns *c, int i, int rows, int t) {
    columns_fill(c, i, rows, t, vf_set1(0));
    for (int r = i; r < i + rows; r++)
        c->own->sees[r][1 + t / 16] = c->own->sees[r][2 + t / 16] = 0;
}

/* The panel of 32 keys from key0 + t on. */
V_INLINE void columns_panel(const bool all, const bool edits, const qkvi_columns *c, int t) {
    const attend *a = c->a;
    qkvi_columns_scratch *w = c->own;
    const vf by = vf_set1(attend_factor(a)), zero = vf_set1(0);
    for (int at = t; at < t + 32; at += 16) {
        columns_sums x = {
            zero, zero, zero, zero, zero, vf_load(w->keys.largest + at), vf_set1(-1)
        };
        for (int i = 0; i < a->n_queries; i += V_MR) {
            float *s = a->scratch->s + i * QKVI_SCORE_ROW + at;
            if (!a->scratch->tile[i / V_MR].panels)
                continue;
            else if (all)
                columns_all(edits, c, i, attend_rows(a, i), at, s, by, &x);
            else
                x.received = columns_received(edits, c, i, attend_rows(a, i), s, by, x.received);
        }
        vf_store(w->received_now + at, x.received);
        if (!all) continue;
        vf_store(w->sum_now + at, x.sum);
        vf_store(w->p_log_p_now + at, x.p_log_p);
        vf_store(w->seen_now + at, x.seen);
        vf_store(w->tiny_now + at, x.tiny);
        vf_store(w->keys.largest + at, x.largest);
        vf_store(w->at_now + at, x.at);
    }
    for (int i = 0; all && i < a->n_queries; i += V_MR)
        if (!a->scratch->tile[i / V_MR].panels) columns_blank(c, i, attend_rows(a, i), t);
}

/* Each a function of its own, or there are not enough registers for the constants of all. */
#define COLUMNS_PANEL(name, all, edits)                                                            \
    static __attribute__((noinline)) void name(const qkvi_columns *c, int t) {                     \
        columns_panel(all, edits, c, t);                                                           \
    }
COLUMNS_PANEL(columns_received_raw, false, false)
COLUMNS_PANEL(columns_received_finished, false, true)
COLUMNS_PANEL(columns_all_raw, true, false)
COLUMNS_PANEL(columns_all_finished, true, true)
static void (*const columns_panel_of[2][2])(const qkvi_columns *, int) = {
    { columns_received_raw, columns_received_finished }, { columns_all_raw, columns_all_finished }
};

/* ---- The block ------------------------------------------------------------------------------- */

/* Sums of this block of queries join those before it. */
static void columns_join(const qkvi_columns *c, int from, int to) {
    qkvi_columns_scratch *w = c->own;
    for (int t = from; t < to; t++) w->keys.received[t] += (double)w->received_now[t];
    if (!c->all) return;
    for (int t = from; t < to; t++) {
        w->keys.sum[t] += (double)w->sum_now[t];
        w->keys.p_log_p[t] += (double)w->p_log_p_now[t];
        w->keys.n_queries[t] += (int64_t)w->seen_now[t];
        w->keys.n_tiny[t] += (int64_t)w->tiny_now[t];
        if (w->at_now[t] >= 0) w->keys.largest_query[t] = c->i0 + (int64_t)w->at_now[t];
    }
}

/* table.h */
static void columns_block(const qkvi_columns *c) {
    const int from = (int)(c->from - c->key0), to = (int)((c->to - c->key0 + 31) / 32 * 32);
    const attend_class *const class = attend_class_of(c->a);
    columns_rows(c);
    if (class->begin) class->begin();
    for (int t = from; t < to; t += 32) {
        columns_scores(c, c->key0 + t);
        columns_panel_of[c->all][attend_edits(c->a)](c, t);
    }
    if (class->end) class->end();
    columns_join(c, from, to);
    if (!c->all) return;
    for (int t = 0; t < QKVI_KEY_BLOCK; t += 32)
        if (t < from || t >= to) columns_blank(c, 0, c->a->n_queries, t);
    if (c->tiles) columns_tiles(c);
    if (c->diagonal) columns_diagonals(c, from, to);
}

/* table.h: H = (log2 r - (sum p log2 p) / r) ln 2, of 256 keys. */
static void columns_end(qkvi_columns_scratch *w) {
    for (int t = 0; t < QKVI_KEY_BLOCK; t += 16) {
        float sum[16], mean[16];
        for (int e = 0; e < 16; e++) {
            const double r = w->keys.sum[t + e];
            sum[e] = (float)r;
            mean[e] = r > 0 ? (float)(w->keys.p_log_p[t + e] / r) : 0;
        }
        const vf zero = vf_set1(0), r = vf_loadu(sum);
        const vf h = vf_mul(vf_sub(vf_log2(r), vf_loadu(mean)), vf_set1(ATTEND_LN2));
        vf_store(w->entropy + t,
                 vf_select(vm_lt(h, zero), zero, vf_select(vm_eq(r, zero), zero, h)));
    }
}

#endif
