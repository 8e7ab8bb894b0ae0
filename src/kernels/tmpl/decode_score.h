/*
 * Decode: scores (docs/numerics.md, Decode, steps 1 and 2). kernels/decode.h has the layout.
 *
 * A group of 16 keys times 4, 2 or 1 rows: 16 sums at a time, whose 16 x 16 lanes are one tree of
 * shuffles. K rows of a group of which some are hidden, or whose length is no multiple of 16, are
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

/*
 * What is announced while channels from d on are multiplied by K keys: rows side by side (row_bytes
 * = 0) line after line, others each at its place.
 */
V_INLINE void decode_announce_keys(const char *at, int64_t row_bytes, const int K, int64_t d,
                                   const qkvi_storage type) {
    const int64_t done = d * decode_elem_bytes(type), step = 16 * K * decode_elem_bytes(type);
    if (row_bytes == 0) {
        if (step < QKVI_LINE && done * K % QKVI_LINE != 0) return;
        V_UNROLL(16)
        for (int64_t b = 0; b < step; b += QKVI_LINE) decode_announce(at + done * K + b, type);
    } else if (done % QKVI_LINE == 0) {
        V_UNROLL(16)
        for (int e = 0; e < K; e++) decode_announce(at + e * row_bytes + done, type);
    }
}

/* R rows times K keys: 16 lanes of each sum go to t[row][keys][16]. */
V_INLINE void decode_products(const int R, const int K, const float *q, int64_t q_row,
                              const char *k, int64_t k_row, float *t, int keys, const char *fetch,
                              int64_t fetch_row, const qkvi_storage type) {
    vf c[16], x[4]; /* R K, and R, of them; all, or compilers fear for those beyond */
    V_UNROLL(4) for (int r = 0; r < 4; r++) x[r] = vf_set1(0);
    V_UNROLL(16) for (int n = 0; n < R * K; n++) c[n] = vf_set1(0);
    V_UNROLL_BY(2) for (int64_t d = 0; d < q_row; d += 16) {
        if (fetch) decode_announce_keys(fetch, fetch_row, K, d, type);
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

/*
 * 4 rows times 2 keys, the lower lanes of all sums, then the upper ones: a key is loaded, and
 * becomes floats, once for all rows.
 */
V_INLINE void decode_products_halves(const float *q, int64_t q_row, const char *k, int64_t k_row,
                                     float *t, int keys, const char *fetch, int64_t fetch_row,
                                     const qkvi_storage type) {
#ifdef V_HALVES
    for (int half = 0; half < 16; half += 8) {
        vh c[8], x[4];
        V_UNROLL(8) for (int n = 0; n < 8; n++) c[n] = vh_zero();
        V_UNROLL_BY(2) for (int64_t d = 0; d < q_row; d += 16) {
            if (fetch && half == 0) decode_announce_keys(fetch, fetch_row, 2, d, type);
            V_UNROLL(4) for (int r = 0; r < 4; r++) x[r] = vh_loadu(q + r * q_row + d + half);
            V_UNROLL(2) for (int e = 0; e < 2; e++) {
                const vh y = decode_load_half(k + e * k_row, d + half, type);
                V_UNROLL(4)
                for (int r = 0; r < 4; r++) c[2 * r + e] = vh_fma(x[r], y, c[2 * r + e]);
            }
        }
        V_UNROLL(4) for (int r = 0; r < 4; r++) {
            V_UNROLL(2)
            for (int e = 0; e < 2; e++) vh_store(t + 16 * (r * keys + e) + half, c[2 * r + e]);
        }
    }
#else
    (void)q, (void)q_row, (void)k, (void)k_row, (void)t, (void)keys, (void)fetch, (void)fetch_row;
    (void)type;
#endif
}

/* R rows times a group; R is 1, 2 or 4. */
V_INLINE void decode_group_scores(const int R, const float *q, int64_t q_row, const char *k,
                                  int64_t k_row, float *s, const char *fetch, int64_t fetch_row,
                                  const qkvi_storage type) {
    const bool halves = DECODE_HALVES && R == 4;
    const int keys = 16 / R, tile = halves ? 2 : DECODE_SUMS / R;
    const int64_t fetch_keys = tile * (fetch_row ? fetch_row : q_row * decode_elem_bytes(type));
    _Alignas(64) float t[16 * 16], x[16];
    for (int e = 0; e < QKVI_DECODE_GROUP; e += keys) {
        for (int n = 0; n < keys; n += tile) {
            const char *const at = k + (e + n) * k_row;
            if (halves)
                decode_products_halves(q, q_row, at, k_row, t + 16 * n, keys, fetch, fetch_row,
                                       type);
            else
                decode_products(R, tile, q, q_row, at, k_row, t + 16 * n, keys, fetch, fetch_row,
                                type);
            if (fetch) fetch += fetch_keys;
        }
        vf_store(x, vf_sum_rows(t));
        V_UNROLL(4)
        for (int r = 0; r < R; r++)
            memcpy(s + r * QKVI_DECODE_SCORE_ROW + e, x + r * keys, (size_t)keys * sizeof(float));
    }
}

/* All rows times a group; the first ones announce. */
V_INLINE void decode_rows_scores(const decode *a, int64_t q_row, int g, const char *k,
                                 int64_t k_row, const char *fetch, int64_t fetch_row,
                                 const qkvi_storage type) {
    const float *q = a->q;
    float *s = a->scratch->s + QKVI_DECODE_GROUP * g;
    for (int left = a->n_rows, n; left > 0; left -= n) {
        n = decode_rows_of(left);
        if (n == 4)
            decode_group_scores(DECODE_R, q, q_row, k, k_row, s, fetch, fetch_row, type);
        else if (n == 2)
            decode_group_scores(2, q, q_row, k, k_row, s, fetch, fetch_row, type);
        else
            decode_group_scores(1, q, q_row, k, k_row, s, fetch, fetch_row, type);
        q += n * q_row;
        s += n * QKVI_DECODE_SCORE_ROW;
        fetch = NULL;
    }
}

/* dim: head_dim, if it is one that this is compiled for and rows lie side by side; otherwise 0. */
V_INLINE void decode_scores_dim(const int64_t dim, const decode *a, int from, int to,
                                const decode_ahead *ahead, const qkvi_storage type) {
    const qkvi_decode_scratch *w = a->scratch;
    const int64_t q_row = dim ? dim : a->q_row, padded = q_row * decode_elem_bytes(type);
    const int64_t k_row = dim ? padded : a->k.row_bytes;
    const int64_t bytes = dim ? padded : a->head_dim * decode_elem_bytes(type);
    for (int g = from; g < to; g++) {
        if (!w->any[g]) continue;
        const decode_soon soon = decode_next(ahead, g, 1, bytes);
        const bool fits = bytes == padded && (!dim || soon.row_bytes == 0);
        const char *const fetch = fits ? soon.at : NULL;
        const int64_t fetch_row = dim ? 0 : soon.row_bytes;
        if (w->any[g] == DECODE_ALL && bytes == padded)
            decode_rows_scores(a, q_row, g, w->k_at[g], k_row, fetch, fetch_row, type);
        else
            decode_rows_scores(a, a->q_row, g,
                               decode_stage(a, w->k_at[g], k_row, bytes, padded, w->any[g]), padded,
                               fetch, fetch_row, type);
    }
}

V_INLINE void decode_scores_of(const decode *a, int from, int to, const decode_ahead *ahead,
                               const qkvi_storage type) {
    const bool dense = a->k.row_bytes == a->head_dim * decode_elem_bytes(type);
    if (dense && a->head_dim == 128)
        decode_scores_dim(128, a, from, to, ahead, type);
    else if (dense && a->head_dim == 64)
        decode_scores_dim(64, a, from, to, ahead, type);
    else
        decode_scores_dim(0, a, from, to, ahead, type);
}

#endif
