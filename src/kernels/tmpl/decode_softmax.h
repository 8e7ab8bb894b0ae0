/*
 * Decode: from scores to weights, 512 keys of a row at a time (docs/numerics.md, Decode, steps 3 to
 * 6): finished or raw, -inf where hidden, the reference, p and its sums, scales of int8.
 */
#ifndef QKVI_TMPL_DECODE_SOFTMAX_H
#define QKVI_TMPL_DECODE_SOFTMAX_H

#include "kernels/tmpl/decode_look.h"

V_INLINE bool decode_edits(const decode *a, const qkvi_decode_row *row) {
    return a->softcap > 0 || mask_biases(&row->mask);
}

/* The scores x of a row and the 16 keys from j on become finished: soft cap, mask and ALiBi. */
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

/* p over groups [from, to); returns the 16 partial sums. */
V_INLINE vf decode_exp_row(float *s, int from, int to, vf c, vf m, const attend_kind kind) {
    vf sum = vf_set1(0);
    V_UNROLL_BY(4) for (int g = from; g < to; g++) {
        float *at = s + QKVI_DECODE_GROUP * g;
        const vf p = vf_exp2_below_128(attend_exponent(vf_load(at), c, m, kind));
        vf_store(at, p);
        sum = vf_add(sum, p);
    }
    return sum;
}

static void decode_weigh_row(const decode *a, int r, int from, int to) {
    qkvi_decode_scratch *w = a->scratch;
    const bool edits = decode_edits(a, &a->rows[r]);
    const vf c = vf_set1(edits ? ATTEND_LOG2E : a->scale * ATTEND_LOG2E), m = vf_set1(w->shift[r]);
    float *s = w->s + r * QKVI_DECODE_SCORE_ROW;
    vf sum;
    if (edits)
        sum = decode_exp_row(s, from, to, c, m, ATTEND_FINISHED);
    else if (fabsf(w->shift[r]) < ATTEND_LARGE)
        sum = decode_exp_row(s, from, to, c, m, ATTEND_RAW);
    else
        sum = decode_exp_row(s, from, to, c, m, ATTEND_RAW_LARGE);
    vf_store(w->sum + 16 * r, sum);
}

/* The reference of row r rises if its maxima ask for it; its alpha. */
static void decode_raise_row(const decode *a, int r) {
    qkvi_decode_scratch *w = a->scratch;
    const bool edits = decode_edits(a, &a->rows[r]);
    float top = -INFINITY, one[16];
    for (int e = 0; e < 16; e++) {
        const float x = w->max[16 * r + e];
        top = top > x ? top : x;
    }
    if (!edits) top *= a->scale * ATTEND_LOG2E;
    vf m = vf_set1(w->m[r]);
    const vf alpha = attend_raise(edits, vf_set1(top), &m);
    vf_storeu(one, alpha);
    w->alpha[r] = one[0];
    vf_storeu(one, m);
    w->m[r] = one[0];
    vf_storeu(one, attend_shift(m));
    w->shift[r] = one[0];
}

/* Step 6: weights that have been summed, times their tokens' scales. */
static void decode_scale_row(const decode *a, int r, int from, int to) {
    qkvi_decode_scratch *w = a->scratch;
    for (int g = from; g < to; g++) {
        float *p = w->s + r * QKVI_DECODE_SCORE_ROW + QKVI_DECODE_GROUP * g;
        const uint32_t see = w->see[r][g];
        if (see) vf_store(p, vf_mul(vf_load(p), decode_scales(&a->v, w->v_scale_at[g], see)));
    }
}

static void decode_softmax(const decode *a, int64_t key0, int from, int to) {
    qkvi_decode_scratch *w = a->scratch;
    for (int r = 0; r < a->n_rows; r++) {
        decode_edit_row(a, r, key0, from, to);
        decode_raise_row(a, r);
        decode_weigh_row(a, r, from, to);
        if (a->v.scale) decode_scale_row(a, r, from, to);
        w->l[r] = fmaf(w->l[r], w->alpha[r], vf_sum(vf_load(w->sum + 16 * r)));
    }
}

#endif
