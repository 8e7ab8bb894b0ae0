/*
 * Decode: splits of keys, one by one and joined (docs/numerics.md, Decode, steps 4, 8 and 9).
 * kernels/decode.h has the layout.
 *
 *     for each block of 512 keys:   S (decode_score.h)   m, P = 2^(S - m), l (decode_softmax.h)
 *                                   block = P V, O = O alpha + block (decode_values.h)
 */
#ifndef QKVI_TMPL_DECODE_H
#define QKVI_TMPL_DECODE_H

#include "core/fma.h"
#include "kernels/tmpl/decode_score.h"
#include "kernels/tmpl/decode_softmax.h"
#include "kernels/tmpl/decode_values.h"

/* ---- A split --------------------------------------------------------------------------------- */

#define DECODE_STORE(name, type)                                                                   \
    static void decode_scores_##name(const decode *a, int from, int to, const decode_ahead *x) {   \
        decode_scores_of(a, from, to, x, type);                                                    \
    }                                                                                              \
    static void decode_values_##name(const decode *a, int from, int to, const decode_ahead *x) {   \
        decode_values_of(a, from, to, x, type);                                                    \
    }
DECODE_STORE(f32, QKVI_STORE_F32)
DECODE_STORE(bf16, QKVI_STORE_BF16)
DECODE_STORE(f16, QKVI_STORE_F16)
DECODE_STORE(i8, QKVI_STORE_I8)

typedef void decode_pass(const decode *, int, int, const decode_ahead *);
static decode_pass *const decode_scores_in[QKVI_STORES] = { decode_scores_f32, decode_scores_bf16,
                                                            decode_scores_f16, decode_scores_i8 };
static decode_pass *const decode_values_in[QKVI_STORES] = { decode_values_f32, decode_values_bf16,
                                                            decode_values_f16, decode_values_i8 };

/* Does a row see all of the group from key j on, as far as positions and blocks say? */
static bool decode_some_sees(const decode *a, int64_t j) {
    for (int r = 0; r < a->n_rows; r++) {
        const qkvi_decode_row *row = &a->rows[r];
        if (row->begin <= j && row->end >= j + QKVI_DECODE_GROUP && !mask_hides(&row->mask) &&
            (!a->block_len || decode_lists(&row->blocks, j / a->block_len)))
            return true;
    }
    return false;
}

/*
 * The first groups of K after the block of keys that ends at `end`, NULL for those of which it is
 * not known that all is read; returns how many are held.
 */
static int decode_look_ahead(const decode *a, int64_t end) {
    const int n = decode_distance(a, a->k.row_bytes);
    int64_t scale;
    for (int g = 0; g < n; g++) {
        const int64_t j = end + QKVI_DECODE_GROUP * g;
        if (j + QKVI_DECODE_GROUP > a->n_held) return g;
        a->scratch->next_at[g] = decode_some_sees(a, j) ? decode_row_at(a, &a->k, j, &scale) : NULL;
    }
    return n;
}

/* Groups [from, to) of the block from key0 on. false: no row sees a key of them. */
static bool decode_block(const decode *a, int64_t key0, int from, int to, bool first) {
    qkvi_decode_scratch *w = a->scratch;
    if (!decode_look(a, key0, from, to)) return false;
    const bool alike = a->head_dim == a->head_dim_v; /* rows of K and V have as many bytes */
    const int n_next = alike ? decode_look_ahead(a, key0 + QKVI_DECODE_GROUP * to) : 0;
    const decode_ahead keys = { .at = w->k_at,
                                .any = w->any,
                                .to = to,
                                .next = w->v_at,
                                .next_any = w->any,
                                .next_from = from,
                                .next_to = alike ? to : from,
                                .distance = decode_distance(a, a->k.row_bytes),
                                .row_bytes = a->k.row_bytes,
                                .next_row_bytes = a->v.row_bytes };
    const decode_ahead values = { .at = w->v_at,
                                  .any = w->any,
                                  .to = to,
                                  .next = w->next_at,
                                  .next_to = n_next,
                                  .distance = decode_distance(a, a->v.row_bytes),
                                  .row_bytes = a->v.row_bytes,
                                  .next_row_bytes = a->k.row_bytes };
    decode_scores_in[a->storage](a, from, to, &keys);
    decode_softmax(a, key0, from, to);
    decode_values_in[a->storage](a, from, to, &values);
    decode_add_block(a, first);
    return true;
}

/* table.h */
static void decode_split(const decode *a) {
    qkvi_decode_scratch *w = a->scratch;
    bool first = true;
    a->part->seen = 0;
    for (int r = 0; r < a->n_rows; r++) {
        w->m[r] = -INFINITY;
        w->l[r] = 0;
    }
    for (int r = a->n_rows; r % 16 != 0; r++) { /* lanes of no row */
        w->m[r] = w->l[r] = 0;
        vf_store(w->max + 16 * r, vf_set1(0));
        vf_store(w->sum + 16 * r, vf_set1(0));
    }
    if (a->stats) decode_stats_begin(a);
    for (int64_t j = a->first_key; j < a->end_key;) {
        const int64_t key0 = j / QKVI_DECODE_BLOCK * QKVI_DECODE_BLOCK;
        const int64_t end = qkvi_min_i64(key0 + QKVI_DECODE_BLOCK, a->end_key);
        const int from = (int)((j - key0) / QKVI_DECODE_GROUP);
        const int to = (int)qkvi_ceil_div(end - key0, QKVI_DECODE_GROUP);
        if (decode_block(a, key0, from, to, first)) first = false;
        j = end;
    }
    for (int r = 0; r < a->n_rows; r++) {
        a->part->m[r] = w->m[r];
        a->part->l[r] = w->l[r];
    }
    if (a->stats) decode_stats_keep(a);
}

/* ---- Splits together: steps 8 and 9 ---------------------------------------------------------- */

V_INLINE float decode_first(vf x) {
    float one[16];
    vf_storeu(one, x);
    return one[0];
}

/* 2^(from - m) in the units of a row; 0 as long as m is -inf. */
V_INLINE float decode_fall(bool edits, float from, float m) {
    const vf x = vf_sub(vf_set1(from), vf_set1(m == -INFINITY ? 0 : m));
    return decode_first(vf_exp2_below_128(vf_mul(x, vf_set1(edits ? ATTEND_LOG2E : 1))));
}

/* table.h */
static void decode_join(const decode *a, const qkvi_decode_part *next) {
    qkvi_decode_part *to = a->part;
    for (int r = 0; r < a->n_rows; r++) {
        if (!(next->seen >> r & 1)) continue;
        const bool edits = decode_edits(a, &a->rows[r]), begin = !(to->seen >> r & 1);
        float *x = to->o + r * a->o_row;
        const float *y = next->o + r * a->o_row;
        if (begin) {
            memcpy(x, y, (size_t)a->o_row * sizeof *x);
            to->m[r] = next->m[r];
            to->l[r] = next->l[r];
            if (a->stats)
                memcpy(decode_sums(a, to, r), decode_sums(a, next, r), a->stats->sums_bytes);
            continue;
        }
        const float m = next->m[r] > to->m[r] ? next->m[r] : to->m[r];
        const float fall = decode_fall(edits, to->m[r], m);
        const float fall_next = decode_fall(edits, next->m[r], m);
        if (a->stats) decode_stats_join(a, r, next, m, fall, fall_next);
        to->l[r] = qkvi_fmaf(to->l[r], fall, next->l[r] * fall_next);
        to->m[r] = m;
        for (int64_t c = 0; c < a->o_row; c += 16)
            vf_store(x + c, vf_fma(vf_load(x + c), vf_set1(fall),
                                   vf_mul(vf_load(y + c), vf_set1(fall_next))));
    }
    to->seen |= next->seen;
}

static void decode_fill_row(const decode *a, const qkvi_decode_row *row, float x) {
    for (int64_t c = 0; c < a->head_dim_v; c++) row->o[c] = x;
}

/* o = O alpha / l + 0: a zero is positive, whatever was skipped. */
V_INLINE void decode_finish_row(const decode *a, int r, float alpha, float l) {
    const float *sum = a->part->o + r * a->o_row;
    const qkvi_decode_row *row = &a->rows[r];
    for (int64_t c = 0; c < a->head_dim_v; c += 16) {
        vf x = vf_load(sum + c);
        if (row->has_sink) x = vf_mul(x, vf_set1(alpha));
        x = vf_add(vf_div(x, vf_set1(l)), vf_set1(0));
        if (a->head_dim_v - c >= 16)
            vf_storeu(row->o + c, x);
        else
            vf_store_n(row->o + c, x, (int)(a->head_dim_v - c));
    }
}

/* attend_finish_empty: the lse is the sink itself, not what a base of 2 makes of it. */
static __attribute__((noinline)) float decode_finish_empty(const decode *a, int r, bool seen) {
    const qkvi_decode_row *row = &a->rows[r];
    const bool sink = row->has_sink && !(row->sink == -INFINITY);
    if (seen && sink && row->sink < INFINITY) {
        decode_finish_row(a, r, 0, 1);
        return row->sink;
    }
    decode_fill_row(a, row, seen ? NAN : 0);
    return seen ? NAN : sink ? row->sink : -INFINITY;
}

/* table.h */
static void decode_finish(const decode *a) {
    const qkvi_decode_part *part = a->part;
    float all[QKVI_DECODE_ROWS];
    for (int r = 0; r < a->n_rows; r++) {
        const qkvi_decode_row *row = &a->rows[r];
        const bool edits = decode_edits(a, row), seen = part->seen >> r & 1;
        vf m = vf_set1(seen ? part->m[r] : -INFINITY), l = vf_set1(seen ? part->l[r] : 0);
        const bool empty = decode_first(m) == -INFINITY && decode_first(l) == 0;
        vf alpha = vf_set1(1);
        float lse;
        if (row->has_sink) alpha = attend_sink(edits, row->sink, &m, &l);
        if (empty) {
            lse = decode_finish_empty(a, r, seen);
        } else {
            decode_finish_row(a, r, decode_first(alpha), decode_first(l));
            lse = decode_first(attend_lse(edits, m, l));
        }
        if (row->lse) *row->lse = lse;
        all[r] = lse;
    }
    if (a->stats) decode_stats_finish(a, all);
}

#endif
