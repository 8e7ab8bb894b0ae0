/*
 * Decode: weights, values, and joining splits (docs/numerics.md, Decode, steps 3 to 9).
 * kernels/decode.h has the layout, decode_score.h the scores.
 *
 *     for each block of 512 keys:   S (decode_score.h)   m, P = 2^(S - m), l   block = P V, O = O alpha + block
 *
 * A group of 16 keys that all rows see is multiplied by tiles of rows and channels; where some row
 * does not see some key, each row walks the keys that it sees, so hidden values are not even read.
 */
#ifndef QKVI_TMPL_DECODE_H
#define QKVI_TMPL_DECODE_H

#include "kernels/tmpl/decode_score.h"

/* ---- Softmax: steps 3 to 6 ------------------------------------------------------------------- */

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

/* ---- Values: step 7 -------------------------------------------------------------------------- */

enum { DECODE_HALF = 8 };

/* What is fetched while values are summed: `lines` of each row, one row after the other. */
typedef struct decode_cursor {
    const char *at;
    int64_t row_bytes;
    int left, lines;
} decode_cursor;

V_INLINE void decode_fetch_some(decode_cursor *x, const int n) {
    if (x->left <= 0) {
        x->at += x->row_bytes - 64 * (x->lines - x->left);
        x->left = x->lines;
    }
    V_UNROLL(4) for (int b = 0; b < n; b++) __builtin_prefetch(x->at + 64 * b, 0, 3);
    x->at += 64 * n;
    x->left -= n;
}

/* block += P V for R rows, W vectors of channels and a group of keys. */
V_INLINE void decode_value_tile(const int R, const int W, const decode *a, int row, int g, int e0,
                                const char *v, int64_t v_row, int64_t c0, bool begin,
                                decode_cursor *x0, const qkvi_storage type) {
    const float *p = a->scratch->s + row * QKVI_DECODE_SCORE_ROW + QKVI_DECODE_GROUP * g;
    float *sum = a->block + row * a->o_row + c0;
    const int64_t bytes = 16 * W * decode_elem_bytes(type);
    vf c[DECODE_R][DECODE_W], x[DECODE_W];
    /* those that a narrower tile does not use, too, or gcc for AArch64 fears for them */
    V_UNROLL(4) for (int u = 0; u < DECODE_W; u++) {
        x[u] = vf_set1(0);
        V_UNROLL(4) for (int r = 0; r < DECODE_R; r++) c[r][u] = vf_set1(0);
    }
    V_UNROLL(4) for (int r = 0; r < R; r++) {
        V_UNROLL(4)
        for (int u = 0; u < W; u++)
            c[r][u] = begin ? vf_set1(0) : vf_load(sum + r * a->o_row + 16 * u);
    }
    V_UNROLL(8) for (int e = e0; e < e0 + DECODE_HALF; e++) {
        if (row == 0) decode_fetch_some(x0, bytes < 64 ? 1 : (int)(bytes / 64));
        V_UNROLL(4)
        for (int u = 0; u < W; u++) x[u] = decode_load(v + e * v_row, c0 + 16 * u, type);
        V_UNROLL(4) for (int r = 0; r < R; r++) {
            const vf y = vf_set1(p[r * QKVI_DECODE_SCORE_ROW + e]);
            V_UNROLL(4) for (int u = 0; u < W; u++) c[r][u] = vf_fma(y, x[u], c[r][u]);
        }
    }
    V_UNROLL(4) for (int r = 0; r < R; r++) {
        V_UNROLL(4) for (int u = 0; u < W; u++) vf_store(sum + r * a->o_row + 16 * u, c[r][u]);
    }
}

V_INLINE void decode_value_rows(const int W, const decode *a, int g, int e0, const char *v,
                                int64_t v_row, int64_t c0, bool begin, decode_cursor *x,
                                const qkvi_storage type) {
    for (int r = 0; r < a->n_rows;) {
        const int left = a->n_rows - r;
        if (DECODE_R >= 4 && left >= 4) {
            decode_value_tile(DECODE_R, W, a, r, g, e0, v, v_row, c0, begin, x, type);
            r += 4;
        } else if (left >= 2) {
            decode_value_tile(2, W, a, r, g, e0, v, v_row, c0, begin, x, type);
            r += 2;
        } else {
            decode_value_tile(1, W, a, r, g, e0, v, v_row, c0, begin, x, type);
            r += 1;
        }
    }
}

/* The same for one row and the keys that it sees. */
V_INLINE void decode_value_selected(const decode *a, int r, int g, const char *v, int64_t v_row,
                                    bool begin, const qkvi_storage type) {
    const float *p = a->scratch->s + r * QKVI_DECODE_SCORE_ROW + QKVI_DECODE_GROUP * g;
    float *sum = a->block + r * a->o_row;
    for (int64_t c0 = 0; c0 < a->o_row; c0 += 16) {
        vf c = begin ? vf_set1(0) : vf_load(sum + c0);
        for (uint32_t see = a->scratch->see[r][g]; see; see &= see - 1) {
            const int e = __builtin_ctz(see);
            c = vf_fma(vf_set1(p[e]), decode_load(v + e * v_row, c0, type), c);
        }
        vf_store(sum + c0, c);
    }
}

V_INLINE void decode_values_of(const decode *a, int from, int to, const decode_ahead *ahead,
                               const qkvi_storage type) {
    qkvi_decode_scratch *w = a->scratch;
    const int64_t bytes = a->head_dim_v * decode_elem_bytes(type);
    const int64_t padded = a->o_row * decode_elem_bytes(type);
    bool begin = true;
    for (int g = from; g < to; g++) {
        if (!w->any[g]) continue;
        const char *v = w->v_at[g];
        int64_t v_row = a->v.row_bytes, next_row, c0 = 0;
        const char *next = decode_next(ahead, g, &next_row);
        if (bytes != padded) {
            v = decode_stage(a, v, v_row, bytes, padded, w->any[g]);
            v_row = padded;
        }
        if (w->all[g] != DECODE_ALL) {
            for (int r = 0; r < a->n_rows; r++)
                decode_value_selected(a, r, g, v, v_row, begin, type);
        } else {
            const int lines = (int)(bytes + 63) / 64;
            decode_cursor x = { next ? next : v, next ? next_row : 0, lines, lines };
            for (int e0 = 0; e0 < QKVI_DECODE_GROUP; e0 += DECODE_HALF) {
                const bool first = begin && e0 == 0;
                for (c0 = 0; c0 + 16 * DECODE_W <= a->o_row; c0 += 16 * DECODE_W) {
                    decode_value_rows(DECODE_W, a, g, e0, v, v_row, c0, first, &x, type);
                }
                for (; c0 < a->o_row; c0 += 16) {
                    decode_value_rows(1, a, g, e0, v, v_row, c0, first, &x, type);
                }
            }
        }
        begin = false;
    }
}

/* O = O alpha + block. */
static void decode_add_block(const decode *a, bool first) {
    for (int r = 0; r < a->n_rows; r++) {
        const vf alpha = vf_set1(a->scratch->alpha[r]);
        const float *block = a->block + r * a->o_row;
        float *o = a->part->o + r * a->o_row;
        for (int64_t c = 0; c < a->o_row; c += 16)
            vf_store(o + c, vf_fma(first ? vf_set1(0) : vf_load(o + c), alpha, vf_load(block + c)));
    }
}

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

/* The first groups of K after the block of keys that ends at `end`; returns how many are held. */
static int decode_look_ahead(const decode *a, int64_t end) {
    const int n = decode_distance(a->k.row_bytes);
    int64_t scale;
    for (int g = 0; g < n; g++) {
        if (end + QKVI_DECODE_GROUP * g >= a->n_held) return g;
        a->scratch->next_at[g] = decode_row_at(a, &a->k, end + QKVI_DECODE_GROUP * g, &scale);
    }
    return n;
}

/* Groups [from, to) of the block from key0 on. false: no row sees a key of them. */
static bool decode_block(const decode *a, int64_t key0, int from, int to, bool first) {
    qkvi_decode_scratch *w = a->scratch;
    if (!decode_look(a, key0, from, to)) return false;
    const int n_next = decode_look_ahead(a, key0 + QKVI_DECODE_GROUP * to);
    const int64_t k_row = a->k.row_bytes, v_row = a->v.row_bytes;
    const decode_ahead keys = {
        w->k_at, w->v_at, to, from, to, decode_distance(k_row), k_row, v_row
    };
    const decode_ahead values = { w->v_at, w->next_at, to, 0, n_next, decode_distance(v_row),
                                  v_row,   k_row };
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
            continue;
        }
        const float m = next->m[r] > to->m[r] ? next->m[r] : to->m[r];
        const float fall = decode_fall(edits, to->m[r], m);
        const float fall_next = decode_fall(edits, next->m[r], m);
        to->l[r] = fmaf(to->l[r], fall, next->l[r] * fall_next);
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

/* o = O alpha / l + 0: a zero is positive, whoever skipped what. */
static void decode_finish_row(const decode *a, int r, float alpha, float l) {
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

/* table.h */
static void decode_finish(const decode *a) {
    const qkvi_decode_part *part = a->part;
    for (int r = 0; r < a->n_rows; r++) {
        const qkvi_decode_row *row = &a->rows[r];
        const bool edits = decode_edits(a, row), seen = part->seen >> r & 1;
        vf m = vf_set1(seen ? part->m[r] : -INFINITY), l = vf_set1(seen ? part->l[r] : 0);
        const bool empty = decode_first(m) == -INFINITY && decode_first(l) == 0;
        vf alpha = vf_set1(1);
        float lse;
        if (row->has_sink) alpha = attend_sink(edits, row->sink, &m, &l);
        if (empty) { /* its sink, not what a base of 2 makes of it */
            const bool sink = row->has_sink && !(row->sink == -INFINITY);
            decode_fill_row(a, row, seen && !sink ? NAN : 0);
            lse = sink ? row->sink : seen ? NAN : -INFINITY;
        } else {
            decode_finish_row(a, r, decode_first(alpha), decode_first(l));
            lse = decode_first(attend_lse(edits, m, l));
        }
        if (row->lse) *row->lse = lse;
    }
}

#endif
