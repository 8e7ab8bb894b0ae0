/*
 * Decode: scores (docs/numerics.md, Decode, steps 1 and 2). kernels/decode.h has the layout.
 *
 * A group of 16 keys times 4, 2 or 1 rows: 16 sums at a time, whose 16 x 16 lanes are one tree of
 * shuffles. K rows of a group of which nobody sees some, or whose length is no multiple of 16, are
 * first copied to the stage, with zeros for what may not be read; so the product has no edges.
 */
#ifndef QKVI_TMPL_DECODE_SCORE_H
#define QKVI_TMPL_DECODE_SCORE_H

#include "kernels/tmpl/decode_look.h"

/* The rows of a group that have a bit in `see`, zeros for the others and beyond `bytes`. */
static const char *decode_stage(const decode *a, const char *at, int64_t row_bytes, int64_t bytes,
                                int64_t padded_bytes, uint32_t see) {
    for (int e = 0; e < QKVI_DECODE_GROUP; e++) {
        char *to = a->stage + e * padded_bytes;
        const int64_t n = see >> e & 1 ? bytes : 0;
        if (n) memcpy(to, at + e * row_bytes, (size_t)n);
        memset(to + n, 0, (size_t)(padded_bytes - n));
    }
    return a->stage;
}

/* R rows times K keys: 16 lanes of each sum go to t[row][keys][16]. */
V_INLINE void decode_products(const int R, const int K, const float *q, int64_t q_row,
                              const char *k, int64_t k_row, float *t, int keys,
                              const qkvi_storage type) {
    vf c[16], x[4]; /* R K, and R, of them; all, or compilers fear for those beyond */
    V_UNROLL(4) for (int r = 0; r < 4; r++) x[r] = vf_set1(0);
    V_UNROLL(16) for (int n = 0; n < R * K; n++) c[n] = vf_set1(0);
    V_UNROLL_BY(8) for (int64_t d = 0; d < q_row; d += 16) {
        V_UNROLL(4) for (int r = 0; r < R; r++) x[r] = vf_load(q + r * q_row + d);
        V_UNROLL(16) for (int e = 0; e < K; e++) {
            const vf y = decode_load(k + e * k_row, d, type);
            V_UNROLL(4) for (int r = 0; r < R; r++) c[r * K + e] = vf_fma(x[r], y, c[r * K + e]);
        }
    }
    V_UNROLL(4) for (int r = 0; r < R; r++) {
        V_UNROLL(16) for (int e = 0; e < K; e++) vf_store(t + 16 * (r * keys + e), c[r * K + e]);
    }
}

/* R rows times a group; R is 1, 2 or 4. */
V_INLINE void decode_group_scores(const int R, const decode *a, int row, const char *k,
                                  int64_t k_row, float *s, const qkvi_storage type) {
    const int keys = 16 / R, tile = DECODE_SUMS / R;
    const float *q = a->q + row * a->q_row;
    _Alignas(64) float t[16 * 16], x[16];
    for (int e = 0; e < QKVI_DECODE_GROUP; e += keys) {
        for (int n = 0; n < keys; n += tile)
            decode_products(R, tile, q, a->q_row, k + (e + n) * k_row, k_row, t + 16 * n, keys,
                            type);
        vf_store(x, vf_sum_rows(t));
        V_UNROLL(4)
        for (int r = 0; r < R; r++)
            memcpy(s + r * QKVI_DECODE_SCORE_ROW + e, x + r * keys, (size_t)keys * sizeof(float));
    }
}

/*
 * All tiles of DECODE_R rows times n keys that lie one after the other and that somebody sees. From
 * `turn` bytes on, what is to be fetched lies `jump` bytes further. dim: head_dim, if it is one that
 * this is compiled for and rows are dense; otherwise 0. Without loops inside a tile, more loads are under way.
 */
V_INLINE void decode_run_scores(const int64_t dim, const decode *a, const char *k, int n, float *s,
                                int64_t turn, int64_t jump, const qkvi_storage type) {
    const int keys = 16 / DECODE_R, tile = DECODE_SUMS / DECODE_R;
    const int64_t q_row = dim ? dim : a->q_row, bytes = q_row * decode_elem_bytes(type);
    const int64_t k_row = dim ? bytes : a->k.row_bytes;
    const int64_t ahead = decode_distance(k_row) * QKVI_DECODE_GROUP * k_row;
    _Alignas(64) float t[16 * 16], x[16];
    for (int e = 0; e < n; e += keys, k += keys * k_row) {
        decode_fetch(k + ahead + (e * k_row + ahead < turn ? 0 : jump), k_row, bytes, keys);
        for (int r = 0; r + DECODE_R <= a->n_rows; r += DECODE_R) {
            for (int m = 0; m < keys; m += tile)
                decode_products(DECODE_R, tile, a->q + r * q_row, q_row, k + m * k_row, k_row,
                                t + 16 * m, keys, type);
            vf_store(x, vf_sum_rows(t));
            V_UNROLL(4)
            for (int i = 0; i < DECODE_R; i++)
                memcpy(s + (r + i) * QKVI_DECODE_SCORE_ROW + e, x + i * keys,
                       (size_t)keys * sizeof(float));
        }
    }
}

/* Rows from r on times a group. */
V_INLINE void decode_rows_scores(const decode *a, int r, int g, const char *k, int64_t k_row,
                                 const qkvi_storage type) {
    while (r < a->n_rows) {
        float *s = a->scratch->s + r * QKVI_DECODE_SCORE_ROW + QKVI_DECODE_GROUP * g;
        const int left = a->n_rows - r;
        if (DECODE_R >= 4 && left >= 4) {
            decode_group_scores(4, a, r, k, k_row, s, type);
            r += 4;
        } else if (left >= 2) {
            decode_group_scores(2, a, r, k, k_row, s, type);
            r += 2;
        } else {
            decode_group_scores(1, a, r, k, k_row, s, type);
            r += 1;
        }
    }
}

/* Groups from g on that lie one after the other and of which every key is seen; their end. */
static int decode_run_end(const decode *a, int g, int to) {
    const qkvi_decode_scratch *w = a->scratch;
    const int64_t bytes = QKVI_DECODE_GROUP * a->k.row_bytes;
    for (g++; g < to && w->any[g] == DECODE_ALL && w->k_at[g] == w->k_at[g - 1] + bytes;) g++;
    return g;
}

V_INLINE void decode_scores_of(const decode *a, int from, int to, const decode_ahead *ahead,
                               const qkvi_storage type) {
    qkvi_decode_scratch *w = a->scratch;
    const int64_t k_row = a->k.row_bytes, bytes = a->head_dim * decode_elem_bytes(type);
    const int64_t padded = a->q_row * decode_elem_bytes(type);
    for (int g = from, end; g < to; g = end) {
        const char *k = w->k_at[g];
        end = g + 1;
        if (!w->any[g]) continue;
        if (w->any[g] != DECODE_ALL || bytes != padded) {
            k = decode_stage(a, k, k_row, bytes, padded, w->any[g]);
            decode_rows_scores(a, 0, g, k, padded, type);
            continue;
        }
        end = decode_run_end(a, g, to);
        const char *const next = end < to ? w->k_at[end] : ahead->next[ahead->next_from];
        const int n = QKVI_DECODE_GROUP * (end - g);
        const int64_t turn = n * k_row, jump = next - (k + turn);
        float *s = w->s + QKVI_DECODE_GROUP * g;
        if (a->q_row == 128 && k_row == bytes)
            decode_run_scores(128, a, k, n, s, turn, jump, type);
        else if (a->q_row == 64 && k_row == bytes)
            decode_run_scores(64, a, k, n, s, turn, jump, type);
        else
            decode_run_scores(0, a, k, n, s, turn, jump, type);
        for (int m = g; m < end && a->n_rows % DECODE_R; m++)
            decode_rows_scores(a, a->n_rows / DECODE_R * DECODE_R, m, w->k_at[m], k_row, type);
    }
}

#endif
