/*
 * Decode: weights times values (docs/numerics.md, Decode, step 7).
 *
 * Groups of 16 keys that all rows see and that lie one after the other are a strip, multiplied by
 * tiles of rows and channels, so short that all of a row of V is read closely. Where some row does
 * not see some key, each row walks the keys that it sees, so hidden values are not even read.
 */
#ifndef QKVI_TMPL_DECODE_VALUES_H
#define QKVI_TMPL_DECODE_VALUES_H

#include "kernels/tmpl/decode_score.h"

/* A strip at most, in bytes and in groups. Shorter ones store and load sums too often. */
enum { DECODE_STRIP = 8192, DECODE_STRIP_GROUPS = 4 };

/* The lines of so many bytes; of fewer than a line those that begin in them. */
V_INLINE void decode_announce_bytes(const char *at, const int64_t bytes, const qkvi_storage type) {
    if (bytes < QKVI_LINE && (uintptr_t)at % QKVI_LINE >= (uintptr_t)bytes) return;
    V_UNROLL(4) for (int64_t b = 0; b < bytes; b += QKVI_LINE) decode_announce(at + b, type);
}

/* sum += P V of one key. */
V_INLINE void decode_value_step(const int R, const int W, const float *p, const char *v,
                                vf c[DECODE_R][DECODE_W], const qkvi_storage type) {
    vf x[DECODE_W];
    V_UNROLL(4) for (int u = 0; u < DECODE_W; u++) x[u] = vf_set1(0);
    V_UNROLL(4) for (int u = 0; u < W; u++) x[u] = decode_load(v, 16 * u, type);
    V_UNROLL(4) for (int r = 0; r < R; r++) {
        const vf y = vf_set1(p[r * QKVI_DECODE_SCORE_ROW]);
        V_UNROLL(4) for (int u = 0; u < W; u++) c[r][u] = vf_fma(y, x[u], c[r][u]);
    }
}

/*
 * sum += P V for R rows, W vectors of channels and n keys. soon: keys of a strip that will be read
 * later, of each of which as many bytes are announced; at: NULL: none.
 */
V_INLINE void decode_value_tile(const int R, const int W, const float *p, const char *v,
                                int64_t v_row, int n, float *sum, int64_t o_row, bool begin,
                                decode_soon soon, const qkvi_storage type) {
    const int64_t bytes = 16 * W * decode_elem_bytes(type);
    vf c[DECODE_R][DECODE_W];
    /* those that a narrower tile does not use, too, or gcc for AArch64 fears for them */
    V_UNROLL(4) for (int u = 0; u < DECODE_W; u++) {
        V_UNROLL(4) for (int r = 0; r < DECODE_R; r++) c[r][u] = vf_set1(0);
    }
    V_UNROLL(4) for (int r = 0; r < R; r++) {
        V_UNROLL(4)
        for (int u = 0; u < W; u++)
            c[r][u] = begin ? vf_set1(0) : vf_load(sum + r * o_row + 16 * u);
    }
    int e = 0;
    for (; e < soon.n; e++, v += v_row, soon.at += soon.row_bytes) {
        decode_announce_bytes(soon.at, bytes, type);
        decode_value_step(R, W, p + e, v, c, type);
    }
    for (; e < n; e++, v += v_row) decode_value_step(R, W, p + e, v, c, type);
    V_UNROLL(4) for (int r = 0; r < R; r++) {
        V_UNROLL(4) for (int u = 0; u < W; u++) vf_store(sum + r * o_row + 16 * u, c[r][u]);
    }
}

/* For all rows; the first ones announce. */
V_INLINE void decode_value_rows(const int W, const decode *a, const float *p, const char *v,
                                int64_t v_row, int n, float *sum, int64_t o_row, bool begin,
                                decode_soon soon, const qkvi_storage type) {
    for (int left = a->n_rows, rows; left > 0; left -= rows) {
        rows = decode_rows_of(left);
        if (rows == 4)
            decode_value_tile(DECODE_R, W, p, v, v_row, n, sum, o_row, begin, soon, type);
        else if (rows == 2)
            decode_value_tile(2, W, p, v, v_row, n, sum, o_row, begin, soon, type);
        else
            decode_value_tile(1, W, p, v, v_row, n, sum, o_row, begin, soon, type);
        p += rows * QKVI_DECODE_SCORE_ROW;
        sum += rows * o_row;
        soon.n = 0;
    }
}

/* block += P V of n keys from group g on that lie one after the other and that all rows see. */
V_INLINE void decode_value_strip(const int64_t dim, const decode *a, int g, const char *v,
                                 int64_t v_row, int n, bool begin, const decode_ahead *ahead,
                                 const qkvi_storage type) {
    const int64_t o_row = dim ? dim : a->o_row, size = decode_elem_bytes(type);
    const float *p = a->scratch->s + QKVI_DECODE_GROUP * g;
    const int64_t wide = 16 * (a->n_rows >= 4 ? DECODE_W4 : DECODE_W);
    const decode_soon next = decode_next(ahead, g, n / QKVI_DECODE_GROUP, a->head_dim_v * size);
    const bool dense = dim || next.row_bytes == 0;
    const bool fits = a->head_dim_v == o_row && (!dim || next.row_bytes == 0);
    decode_soon soon = { next.at, fits ? next.n : 0, 0 };
    for (int64_t c = 0, step; c < o_row; c += step) {
        step = c + wide <= o_row ? wide : 16;
        soon.row_bytes = dense ? step * size : next.row_bytes;
        if (step == 16 * DECODE_W)
            decode_value_rows(DECODE_W, a, p, v + c * size, v_row, n, a->block + c, o_row, begin,
                              soon, type);
        else
            decode_value_rows(1, a, p, v + c * size, v_row, n, a->block + c, o_row, begin, soon,
                              type);
        if (soon.n) soon.at += dense ? soon.n * step * size : step * size;
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

/* The end of a strip from group g on. */
static int decode_strip_end(const decode *a, int g, int to) {
    const qkvi_decode_scratch *w = a->scratch;
    const int64_t bytes = QKVI_DECODE_GROUP * a->v.row_bytes;
    const int64_t most = DECODE_STRIP / (bytes ? bytes : 1);
    const int end = (int)qkvi_min_i64(to, g + qkvi_min_i64(most, DECODE_STRIP_GROUPS));
    for (g++; g < end && w->all[g] == DECODE_ALL && w->v_at[g] == w->v_at[g - 1] + bytes;) g++;
    return g;
}

/* dim: as in decode_scores_dim. */
V_INLINE void decode_values_dim(const int64_t dim, const decode *a, int from, int to,
                                const decode_ahead *ahead, const qkvi_storage type) {
    const qkvi_decode_scratch *w = a->scratch;
    const int64_t padded = (dim ? dim : a->o_row) * decode_elem_bytes(type);
    const int64_t bytes = dim ? padded : a->head_dim_v * decode_elem_bytes(type);
    bool begin = true;
    for (int g = from, end; g < to; g = end) {
        const char *v = w->v_at[g];
        int64_t v_row = dim ? padded : a->v.row_bytes;
        end = g + 1;
        if (!w->any[g]) continue;
        if (bytes != padded) {
            v = decode_stage(a, v, v_row, bytes, padded, w->any[g]);
            v_row = padded;
        } else if (w->all[g] == DECODE_ALL) {
            end = decode_strip_end(a, g, to);
        }
        if (w->all[g] == DECODE_ALL) {
            const int n = QKVI_DECODE_GROUP * (end - g);
            decode_value_strip(dim, a, g, v, v_row, n, begin, ahead, type);
        } else {
            for (int r = 0; r < a->n_rows; r++)
                decode_value_selected(a, r, g, v, v_row, begin, type);
        }
        begin = false;
    }
}

V_INLINE void decode_values_of(const decode *a, int from, int to, const decode_ahead *ahead,
                               const qkvi_storage type) {
    const bool dense = a->v.row_bytes == a->head_dim_v * decode_elem_bytes(type);
    if (dense && a->head_dim_v == 128)
        decode_values_dim(128, a, from, to, ahead, type);
    else if (dense && a->head_dim_v == 64)
        decode_values_dim(64, a, from, to, ahead, type);
    else
        decode_values_dim(0, a, from, to, ahead, type);
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
