/*
 * Columns of weights: what is summed across keys, from the block of weights in scratch->s: tiles of
 * a map, and diagonals. All 256 keys of every row are filled there, zeros where nothing is seen.
 *
 * A diagonal goes through the block along rows of 272 floats, of which the last 16 are zeros: 16
 * diagonals side by side are one vector that is a float further right in each row. Where it leaves
 * the block, it reads those zeros.
 */
#ifndef QKVI_TMPL_COLUMNS_MAP_H
#define QKVI_TMPL_COLUMNS_MAP_H

#include "kernels/columns.h"
#include "kernels/tmpl/attend_scores.h"

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* Sums and maxima of the rows [i0, i1) for each key. */
static void columns_tile_rows(const qkvi_columns *c, int i0, int i1) {
    qkvi_columns_scratch *w = c->own;
    for (int t = 0; t < QKVI_KEY_BLOCK; t += 16) {
        const float *s = c->a->scratch->s + i0 * QKVI_SCORE_ROW + t;
        vf sum = vf_set1(0), max = sum;
        for (int i = i0; i < i1; i++, s += QKVI_SCORE_ROW) {
            const vf p = vf_load(s);
            sum = vf_add(sum, p);
            max = vf_max(max, p);
        }
        vf_store(w->tile_sum + t, sum);
        vf_store(w->tile_max + t, max);
    }
}

/* 16 partial sums and maxima of the keys [t0, t1). */
V_INLINE void columns_tile_lanes(qkvi_columns_scratch *w, int t0, int t1, int lane) {
    vf sum = vf_set1(0), max = sum;
    for (int t = t0 / 16 * 16; t < t1; t += 16) {
        const vm in = vm_of_bits(mask_range(t0 - t, t1 - t) & 0xFFFF);
        sum = vf_add(sum, vf_select(in, vf_load(w->tile_sum + t), vf_set1(0)));
        max = vf_max(max, vf_select(in, vf_load(w->tile_max + t), vf_set1(0)));
    }
    vf_store(w->lanes[0] + 16 * lane, sum);
    vf_store(w->lanes[1] + 16 * lane, max);
}

static void columns_tiles(const qkvi_columns *c) {
    const qkvi_columns_tiles *tiles = c->tiles;
    qkvi_columns_scratch *w = c->own;
    for (int a = 0; a < tiles->n_rows; a++) {
        columns_tile_rows(c, a ? tiles->row_end[a - 1] : 0, tiles->row_end[a]);
        for (int b = 0; b < tiles->n_cols; b += 16) {
            const int n = tiles->n_cols - b < 16 ? tiles->n_cols - b : 16;
            float sum[16], max[16];
            for (int e = b; e < b + n; e++)
                columns_tile_lanes(w, e ? tiles->col_end[e - 1] : 0, tiles->col_end[e], e - b);
            vf_storeu(sum, vf_sum_rows(w->lanes[0]));
            vf_storeu(max, vf_max_rows(w->lanes[1]));
            for (int e = 0; e < n; e++) {
                const int64_t at = tiles->row[a] + tiles->col[b + e];
                tiles->mass[at] += (double)sum[e];
                if (max[e] > tiles->peak[at]) tiles->peak[at] = max[e];
            }
        }
    }
}

/* ---- Diagonals ------------------------------------------------------------------------------- */

/* Which of the 16 keys from t >= -16 on row i sees, a bit each. */
V_INLINE uint32_t columns_sees(const qkvi_columns_scratch *w, int i, int t) {
    const uint16_t *word = &w->sees[i][(t + 16) / 16];
    return (word[0] | (uint32_t)word[1] << 16) >> (t + 16) % 16 & 0xFFFF;
}

/* Rows of 16 diagonals, from u on, each a sum over the rows [i0, i1). */
static void columns_count_diagonals(qkvi_columns_scratch *w, int u, int i0, int i1) {
    vf n = vf_set1(0);
    for (int i = i0; i < i1; i++) {
        const vm sees = vm_of_bits(columns_sees(w, i, i + u - QKVI_QUERY_BLOCK));
        n = vf_add(n, vf_select(sees, vf_set1(1), vf_set1(0)));
    }
    vf_store(w->diagonal_rows + u, n);
}

/* The same where the queries all see the keys [t0, t1), and no others. */
static void columns_count_whole(qkvi_columns_scratch *w, int u, int n_rows, int t0, int t1) {
    for (int e = u; e < u + 16; e++) {
        const int d = e - QKVI_QUERY_BLOCK; /* key - query */
        const int first = t0 - d > 0 ? t0 - d : 0, end = t1 - d < n_rows ? t1 - d : n_rows;
        w->diagonal_rows[e] = end > first ? (float)(end - first) : 0;
    }
}

/* Does every row see all keys between the first that one may see and the last? */
static bool columns_whole(const qkvi_columns *c, int from, int to, int t0, int t1) {
    float n = 0;
    for (int t = from; t < to; t++) n += c->own->seen_now[t];
    return n == (float)((t1 - t0) * c->a->n_queries);
}

static void columns_diagonals(const qkvi_columns *c, int from, int to) {
    enum { N = QKVI_QUERY_BLOCK + QKVI_KEY_BLOCK };
    qkvi_columns_scratch *w = c->own;
    const int64_t begin = c->a->scratch->begin[0] - c->key0;
    const int t0 = begin > 0 ? (int)begin : 0, t1 = (int)(c->to - c->key0);
    const bool whole = columns_whole(c, from, to, t0, t1);
    for (int u = 0; u < N; u += 16) {
        /* Entry e is diagonal first + 96 - e. */
        const int64_t n = c->first + QKVI_QUERY_BLOCK - u;
        const int i0 = 81 - u > 0 ? 81 - u : 0;
        const int i1 = N - u < c->a->n_queries ? N - u : c->a->n_queries;
        if (n < 0 || n - 15 >= c->n_diagonals || i0 >= i1) continue;
        const float *s = c->a->scratch->s + i0 * QKVI_SCORE_ROW + i0 + u - QKVI_QUERY_BLOCK;
        vf sum = vf_set1(0);
        V_UNROLL_BY(4)
        for (int i = i0; i < i1; i++, s += QKVI_SCORE_ROW + 1) sum = vf_add(sum, vf_loadu(s));
        vf_store(w->diagonal + u, sum);
        if (whole)
            columns_count_whole(w, u, c->a->n_queries, t0, t1);
        else
            columns_count_diagonals(w, u, i0, i1);
        for (int e = 0; e < 16; e++) {
            if (n - e < 0 || n - e >= c->n_diagonals) continue;
            c->diagonal[n - e] += (double)w->diagonal[u + e];
            c->diagonal_rows[n - e] += (int64_t)w->diagonal_rows[u + e];
        }
    }
}

#endif
