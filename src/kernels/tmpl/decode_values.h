/*
 * Decode: weights times values (docs/numerics.md, Decode, step 7).
 *
 * A group of 16 keys that all rows see is multiplied by tiles of rows and channels, 8 keys at a
 * time, so that all of a row of V is read closely; where some row does not see some key, each row
 * walks the keys that it sees, so hidden values are not even read.
 */
#ifndef QKVI_TMPL_DECODE_VALUES_H
#define QKVI_TMPL_DECODE_VALUES_H

#include "kernels/tmpl/decode_score.h"

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

#endif
