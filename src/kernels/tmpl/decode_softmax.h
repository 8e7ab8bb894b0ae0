/*
 * Decode: from scores to weights, 512 keys of a row at a time (docs/numerics.md, Decode, steps 3 to
 * 6): finished or raw, -inf where hidden, the reference, p and its sums, scales of int8.
 */
#ifndef QKVI_TMPL_DECODE_SOFTMAX_H
#define QKVI_TMPL_DECODE_SOFTMAX_H

#include "kernels/tmpl/decode_look.h"
#include "kernels/tmpl/decode_stats.h"

V_INLINE bool decode_edits(const decode *a, const qkvi_decode_row *row) {
    return a->softcap > 0 || mask_biases(&row->mask);
}

/* The scores x of a row and the 16 keys from j on become finished: soft cap, mask, ALiBi and
 * distance bias. */
V_INLINE vf decode_finished(const decode *a, const qkvi_decode_row *row, int64_t j, vf x) {
    const vf scale = vf_set1(a->scale);
    vf bias[2] = { vf_set1(0), vf_set1(0) };
    const int64_t left = row->end - j;
    const bool biases = mask_biases(&row->mask);
    if (biases) mask_adds(&row->mask, 0, j, left < 16 ? (int)left : 16, bias);
    if (a->softcap > 0) {
        const vf cap = vf_set1(a->softcap);
        x = vf_mul(cap, vf_tanh(vf_div(vf_mul(x, scale), cap)));
        return biases ? vf_add(x, bias[0]) : x;
    }
    return biases ? vf_fma(x, scale, bias[0]) : x;
}

/* The scales of a group's tokens; 1 for those without a bit in `see`, which are not read. */
V_INLINE vf decode_scales(const qkvi_kv_rows *x, int64_t at, uint32_t see) {
    const float *scale = x->scale + at;
    float each[16];
    if (see == DECODE_ALL && x->scale_row == 1) return vf_loadu(scale);
    for (int e = 0; e < QKVI_DECODE_GROUP; e++)
        each[e] = see >> e & 1 ? scale[e * x->scale_row] : 1;
    return vf_loadu(each);
}

/* Row r, groups [from, to): scores as the softmax takes them, and its maxima. */
static void decode_edit_row(const decode *a, int r, int64_t key0, int from, int to) {
    qkvi_decode_scratch *w = a->scratch;
    const qkvi_decode_row *row = &a->rows[r];
    const bool edits = decode_edits(a, row);
    float *s = w->s + r * QKVI_DECODE_SCORE_ROW;
    vf top = vf_set1(-INFINITY);
    for (int g = from; g < to; g++) {
        float *at = s + QKVI_DECODE_GROUP * g;
        const uint32_t see = w->see[r][g];
        vf x = vf_set1(-INFINITY);
        if (see) x = vf_load(at);
        if (see && a->k.scale) x = vf_mul(x, decode_scales(&a->k, w->k_scale_at[g], see));
        if (see && edits) x = decode_finished(a, row, key0 + QKVI_DECODE_GROUP * g, x);
        if (see != DECODE_ALL) x = vf_select(vm_of_bits(see), x, vf_set1(-INFINITY));
        if (see != DECODE_ALL || edits || a->k.scale) vf_store(at, x);
        top = vf_max(top, x);
    }
    vf_store(w->max + 16 * r, top);
}

/* Scores of row r need nothing, or scales that are all to be read and lie side by side. */
V_INLINE bool decode_plain(const decode *a, const qkvi_kv_rows *x, int r) {
    return a->scratch->whole && !decode_edits(a, &a->rows[r]) && (!x->scale || x->scale_row == 1);
}

/* decode_edit_row for such a row. */
V_INLINE void decode_plain_row(const decode *a, int r, int from, int to, const bool scaled) {
    qkvi_decode_scratch *w = a->scratch;
    float *s = w->s + r * QKVI_DECODE_SCORE_ROW;
    vf top = vf_set1(-INFINITY);
    V_UNROLL_BY(4) for (int g = from; g < to; g++) {
        float *at = s + QKVI_DECODE_GROUP * g;
        vf x = vf_load(at);
        if (scaled) {
            x = vf_mul(x, vf_loadu(a->k.scale + w->k_scale_at[g]));
            vf_store(at, x);
        }
        top = vf_max(top, x);
    }
    vf_store(w->max + 16 * r, top);
}

/* p over groups [from, to), times their tokens' scales once they are summed: steps 5 and 6. */
V_INLINE void decode_exp_row(const decode *a, int r, int from, int to, vf c, const attend_kind kind,
                             const bool scaled) {
    qkvi_decode_scratch *w = a->scratch;
    float *s = w->s + r * QKVI_DECODE_SCORE_ROW;
    const vf m = vf_set1(w->shift[r]);
    vf sum = vf_set1(0);
    V_UNROLL_BY(4) for (int g = from; g < to; g++) {
        float *at = s + QKVI_DECODE_GROUP * g;
        const vf p = vf_exp2_below_128(attend_exponent(vf_load(at), c, m, kind));
        sum = vf_add(sum, p);
        vf_store(at, scaled ? vf_mul(p, vf_loadu(a->v.scale + w->v_scale_at[g])) : p);
    }
    vf_store(w->sum + 16 * r, sum);
}

/* Step 6 alone: scales apart from each other, or not all to be read. */
static void decode_scale_row(const decode *a, int r, int from, int to) {
    qkvi_decode_scratch *w = a->scratch;
    for (int g = from; g < to; g++) {
        float *p = w->s + r * QKVI_DECODE_SCORE_ROW + QKVI_DECODE_GROUP * g;
        const uint32_t see = w->see[r][g];
        if (see) vf_store(p, vf_mul(vf_load(p), decode_scales(&a->v, w->v_scale_at[g], see)));
    }
}

static void decode_weigh_row(const decode *a, int r, int from, int to) {
    const qkvi_decode_scratch *w = a->scratch;
    const bool edits = decode_edits(a, &a->rows[r]), large = fabsf(w->shift[r]) >= ATTEND_LARGE;
    const vf c = vf_set1(edits ? ATTEND_LOG2E : a->scale * ATTEND_LOG2E);
    if (a->v.scale && decode_plain(a, &a->v, r) && !large) {
        decode_exp_row(a, r, from, to, c, ATTEND_RAW, true);
        return;
    }
    if (edits)
        decode_exp_row(a, r, from, to, c, ATTEND_FINISHED, false);
    else if (large)
        decode_exp_row(a, r, from, to, c, ATTEND_RAW_LARGE, false);
    else
        decode_exp_row(a, r, from, to, c, ATTEND_RAW, false);
    if (a->v.scale) decode_scale_row(a, r, from, to);
}

/* The references of 16 rows from row r on rise where their maxima ask for it. */
static void decode_raise(const decode *a, int r) {
    qkvi_decode_scratch *w = a->scratch;
    uint32_t edits = 0;
    for (int i = 0; i < 16 && r + i < a->n_rows; i++)
        edits |= (uint32_t)decode_edits(a, &a->rows[r + i]) << i;
    const vf top = vf_max_rows(w->max + 16 * r), before = vf_load(w->m + r);
    vf m = before, finished = before;
    vf alpha = attend_raise(false, vf_mul(top, vf_set1(a->scale * ATTEND_LOG2E)), &m);
    if (edits) {
        alpha = vf_select(vm_of_bits(edits), attend_raise(true, top, &finished), alpha);
        m = vf_select(vm_of_bits(edits), finished, m);
    }
    vf_store(w->m + r, m);
    vf_store(w->alpha + r, alpha);
    vf_store(w->shift + r, attend_shift(m));
}

static void decode_softmax(const decode *a, int64_t key0, int from, int to) {
    qkvi_decode_scratch *w = a->scratch;
    for (int r = 0; r < a->n_rows; r++) {
        if (!decode_plain(a, &a->k, r))
            decode_edit_row(a, r, key0, from, to);
        else if (a->k.scale)
            decode_plain_row(a, r, from, to, true);
        else
            decode_plain_row(a, r, from, to, false);
    }
    if (a->stats) memcpy(a->stats->before, w->m, sizeof w->m);
    for (int r = 0; r < a->n_rows; r += 16) decode_raise(a, r);
    if (a->stats) decode_stats_block(a, key0, from, to);
    for (int r = 0; r < a->n_rows; r++) decode_weigh_row(a, r, from, to);
    for (int r = 0; r < a->n_rows; r += 16) {
        const vf sum = vf_sum_rows(w->sum + 16 * r);
        vf_store(w->l + r, vf_fma(vf_load(w->l + r), vf_load(w->alpha + r), sum));
    }
}

#endif
