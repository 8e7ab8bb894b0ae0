/* See columns.h. */
#include <math.h>
#include <string.h>

#include "attn/columns.h"

/* ---- Where tiles lie ------------------------------------------------------------------------- */

/* The last of so many tiles of n tokens that begins at token i or before, and so is not empty. */
static int64_t tile_of(int64_t i, int64_t n, int64_t n_tiles) {
    return ((i + 1) * n_tiles - 1) / n;
}

/* floor(a n / n_tiles), whatever the sizes. */
static int64_t tile_begin(int64_t a, int64_t n, int64_t n_tiles) {
    return n / n_tiles * a + n % n_tiles * a / n_tiles;
}

/* Keys of a batch that tiles are made of. */
static int64_t tiled_keys(const qkvi_problem *p, int64_t b) {
    return p->kv_len ? p->kv_len[b] : qkvi_len_k(p, b);
}

/* ---- Sums of the heads under way ------------------------------------------------------------- */

void qkvi_columns_lay_out_map(qkvi_cutter *cutter, const qkvi_columns_problem *x, int64_t n_heads,
                              qkvi_columns_map *map) {
    const qkv_attention_columns *want = &x->want;
    *map = (qkvi_columns_map){ .n_pairs = 0 };
    if (x->tiles) {
        map->n_pairs = qkvi_ceil_div(x->p.len_k, QKVI_KEY_BLOCK) + want->n_tiles_k;
        const size_t row = (size_t)map->n_pairs;
        const int64_t n_rows = n_heads * want->n_tiles_q;
        map->mass = qkvi_cut(cutter, n_rows, row * sizeof *map->mass);
        map->peak = qkvi_cut(cutter, n_rows, row * sizeof *map->peak);
    }
    if (want->n_tiles_q)
        map->tile_rows = qkvi_cut(cutter, n_heads * want->n_tiles_q, sizeof *map->tile_rows);
    if (x->diagonals) {
        const int64_t lanes = n_heads * QKVI_COLUMN_LANES;
        const size_t n = (size_t)want->n_diagonals;
        map->diagonal = qkvi_cut(cutter, lanes, n * sizeof *map->diagonal);
        map->diagonal_rows = qkvi_cut(cutter, lanes, n * sizeof *map->diagonal_rows);
    }
    if (x->p.sinks) map->row_seen = qkvi_cut(cutter, n_heads, (size_t)x->p.len_q);
}

void qkvi_columns_begin_tiles(const qkvi_columns_problem *x, const qkvi_columns_map *map, int64_t n,
                              int64_t b, int64_t key0, qkvi_columns_tiles *tiles) {
    const qkv_attention_columns *want = &x->want;
    const int64_t n_keys = tiled_keys(&x->p, b), head = n * want->n_tiles_q * map->n_pairs;
    const int64_t end = qkvi_min_i64(key0 + QKVI_KEY_BLOCK, n_keys);
    tiles->mass = map->mass + head;
    tiles->peak = map->peak + head;
    tiles->n_cols = 0;
    for (int64_t j = key0; j < end;) {
        const int64_t col = tile_of(j, n_keys, want->n_tiles_k);
        const int64_t at = key0 / QKVI_KEY_BLOCK + col;
        j = qkvi_min_i64(tile_begin(col + 1, n_keys, want->n_tiles_k), end);
        tiles->col[tiles->n_cols] = at;
        tiles->col_end[tiles->n_cols++] = (int)(j - key0);
        for (int64_t a = 0; a < want->n_tiles_q; a++) {
            tiles->mass[a * map->n_pairs + at] = 0;
            tiles->peak[a * map->n_pairs + at] = 0;
        }
    }
}

void qkvi_columns_tile_rows(const qkvi_columns_problem *x, const qkvi_rules *rules,
                            const qkvi_columns_map *map, int64_t i0, int64_t i1,
                            qkvi_columns_tiles *tiles) {
    const int64_t n_tiles = x->want.n_tiles_q, n = rules->n_queries;
    tiles->n_rows = 0;
    for (int64_t i = i0; i < i1;) {
        const int64_t a = tile_of(i, n, n_tiles);
        i = qkvi_min_i64(tile_begin(a + 1, n, n_tiles), i1);
        tiles->row[tiles->n_rows] = a * map->n_pairs;
        tiles->row_end[tiles->n_rows++] = (int)(i - i0);
    }
}

/* ---- Finished heads -------------------------------------------------------------------------- */

/* Rows that take part, and those that do not. */
static void finish_rows(const qkvi_columns_problem *x, const qkvi_columns_map *map, int64_t n,
                        int64_t b, int64_t h) {
    const qkvi_problem *p = &x->p;
    const qkv_attention_columns *want = &x->want;
    const int64_t n_rows = qkvi_rules_of(p, b).n_queries, head = b * p->n_heads + h;
    const uint8_t *seen = map->row_seen ? map->row_seen + n * p->len_q : NULL;
    int64_t n_empty = 0, n_nan = 0;
    int64_t *rows = want->n_tiles_q ? map->tile_rows + n * want->n_tiles_q : NULL;
    for (int64_t a = 0; a < want->n_tiles_q; a++) rows[a] = 0;
    for (int64_t i = 0; i < n_rows; i++) {
        const float lse = p->lse[qkvi_q_at(p, p->lse_stride, b, h, i)];
        const bool nan = isnan(lse) || lse == INFINITY;
        const bool empty = lse == -INFINITY || (seen && lse == p->sinks[h] && !seen[i]);
        n_nan += nan;
        n_empty += !nan && empty;
        if (!nan && !empty && rows) rows[tile_of(i, n_rows, want->n_tiles_q)]++;
    }
    if (want->n_nan_rows) want->n_nan_rows[head] = n_nan;
    if (want->n_empty_rows) want->n_empty_rows[head] = n_empty;
    if (want->tile_rows)
        memcpy(want->tile_rows + head * want->n_tiles_q, rows,
               (size_t)want->n_tiles_q * sizeof *rows);
}

static void finish_tiles(const qkvi_columns_problem *x, const qkvi_columns_map *map, int64_t n,
                         int64_t b, int64_t h) {
    const qkv_attention_columns *want = &x->want;
    const int64_t n_keys = tiled_keys(&x->p, b), head = b * x->p.n_heads + h;
    for (int64_t a = 0; a < want->n_tiles_q; a++) {
        const int64_t row = (n * want->n_tiles_q + a) * map->n_pairs;
        const int64_t n_rows = map->tile_rows[n * want->n_tiles_q + a];
        for (int64_t col = 0; col < want->n_tiles_k; col++) {
            const int64_t begin = tile_begin(col, n_keys, want->n_tiles_k);
            const int64_t end = tile_begin(col + 1, n_keys, want->n_tiles_k);
            const int64_t at = (head * want->n_tiles_q + a) * want->n_tiles_k + col;
            double mass = 0;
            float peak = 0;
            const int64_t n_blocks =
                map->has_sums && begin < end ? qkvi_ceil_div(end, QKVI_KEY_BLOCK) : 0;
            for (int64_t c = begin / QKVI_KEY_BLOCK; c < n_blocks; c++) {
                mass += map->mass[row + c + col];
                if (map->peak[row + c + col] > peak) peak = map->peak[row + c + col];
            }
            if (want->tile_mass) want->tile_mass[at] = n_rows ? (float)(mass / (double)n_rows) : 0;
            if (want->tile_peak) want->tile_peak[at] = peak;
        }
    }
}

static void finish_diagonals(const qkvi_columns_problem *x, const qkvi_columns_map *map, int64_t n,
                             int64_t b, int64_t h) {
    const qkv_attention_columns *want = &x->want;
    const int64_t n_blocks = qkvi_ceil_div(qkvi_len_k(&x->p, b), QKVI_KEY_BLOCK);
    const int64_t lanes = map->has_sums ? qkvi_min_i64(n_blocks, QKVI_COLUMN_LANES) : 0;
    const int64_t out = (b * x->p.n_heads + h) * want->n_diagonals;
    for (int64_t d = 0; d < want->n_diagonals; d++) {
        double sum = 0;
        int64_t rows = 0;
        for (int64_t lane = 0; lane < lanes; lane++) {
            const int64_t at = (n * QKVI_COLUMN_LANES + lane) * want->n_diagonals + d;
            sum += map->diagonal[at];
            rows += map->diagonal_rows[at];
        }
        if (want->diagonal) want->diagonal[out + d] = rows ? (float)(sum / (double)rows) : 0;
        if (want->diagonal_rows) want->diagonal_rows[out + d] = rows;
    }
}

void qkvi_columns_finish_head(const qkvi_columns_problem *x, const qkvi_columns_map *map, int64_t n,
                              int64_t b, int64_t h) {
    const qkv_attention_columns *want = &x->want;
    if (want->n_tiles_q || want->n_nan_rows || want->n_empty_rows) finish_rows(x, map, n, b, h);
    if (x->tiles) finish_tiles(x, map, n, b, h);
    if (x->diagonals) finish_diagonals(x, map, n, b, h);
}
