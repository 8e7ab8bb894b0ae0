/*
 * Matrix products in bf16: the loops over blocks. See gemm_bf16.h.
 *
 * A is rounded to bf16 once, [m rounded up to 16][k rounded up to 32] or as tiles of AMX, and every
 * block of rows x panels reads it from there. With AMX a block is a product of the whole depth,
 * panel by panel: its rows of A stay in the second-level cache, and the next panel of B is fetched
 * during this one.
 */
#include "kernels/gemm_bf16.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/cpu.h"
#include "core/half.h"
#include "core/ints.h"
#include "kernels/amx.h"

enum {
    BLOCK_BYTES = 768 << 10, /* of A, at most, in half a second-level cache of 2 MiB */
    BLOCK_ROWS = 512,        /* at most: measured */
    SUMS = QKVI_AMX_ROWS * 32,
    /*
     * Of C: then it goes past the caches. BERT-base of 8 x 128 takes 7 % less time so (Intel Xeon
     * with AMX), of 1 x 512, whose C are smaller, as long or 2 % more.
     */
    PAST_CACHES = 2 << 20,
    STREAM_AHEAD = 8 << 10,   /* bytes of B, where a block has one tile of rows */
    ROWS_AT_ONCE = 12,        /* without memory for A */
    K_AT_ONCE = 256,          /* and then rows of so many of k: 6 KiB */
    COLUMNS_AT_ONCE = 48,     /* of A, where they are dense: 192 bytes of each of 32 */
    PANELS_BYTES = 192 << 10, /* of B, that stay in a second-level cache while rows of A change */
    WORTH_A_TASK = 1 << 21,   /* multiplications */
    TASKS_PER_THREAD = 8,
    OWN_ROWS = 128, /* of A: from so many on a thread has rows of its own */
    LANES = 16
};

/* ---- The product ----------------------------------------------------------------------------- */

typedef struct product {
    qkvi_gemm_bf16_job job;
    int64_t depth, half_row; /* k rounded up to 32; from a row of half to the next, without tiles */
    int64_t block_rows, block_cols, n_col_blocks;
    int n_row_blocks, n_threads, n_lanes;
    atomic_int next[LANES]; /* next block of a lane to begin */
    bool by_tiles;          /* of AMX; A lies in them */
} product;

static int64_t depth_of(int64_t k) { return qkvi_round_up(k, QKVI_BF16_STEP); }

/*
 * Elements from a row of A in bf16 to the next. Rows that lie multiples of 4 KiB apart share sets
 * of the first-level cache: on Zen 4, k = 2048 and 4096, 72 % of the peak, not 78 %.
 */
static int64_t half_row_of(int64_t k) {
    const int64_t depth = depth_of(k);
    return qkvi_rows_meet(depth, sizeof(uint16_t)) ? depth + QKVI_BF16_STEP : depth;
}

/* n rows of floats in bf16, and zeros up to the depth. */
static void round_floats(const product *p, int64_t n_rows, const float *x, uint16_t *to) {
    const int64_t n = p->job.k, row = p->half_row;
    p->job.kernels->rows->store[QKV_BF16](x, p->job.a_row, n_rows, n, 1, to, row);
    for (int64_t i = 0; i < n_rows && n < p->depth; i++)
        memset(to + i * row + n, 0, (size_t)(p->depth - n) * sizeof *to);
}

static qkvi_amx_tiles tiles_of(const product *p, uint16_t *at, int64_t k) {
    return (qkvi_amx_tiles){ at, qkvi_round_up(p->job.m, 16), depth_of(k) };
}

static void round_rows(const product *p, int64_t first, int64_t n_rows) {
    const qkvi_gemm_bf16_job *const j = &p->job;
    const float *const a = j->a + first * j->a_row;
    const qkvi_amx_tiles tiles = tiles_of(p, j->half, j->k);
    if (p->by_tiles)
        qkvi_amx_round((int)n_rows, j->k, a, j->a_row, &tiles, first);
    else
        round_floats(p, n_rows, a, j->half + first * p->half_row);
}

static bool has_dense_columns(const qkvi_gemm_bf16_job *j) { return j->a_col > 1; }

/* The same of A whose columns are dense: transposed, a square of 32 columns at a time. */
static void round_columns(const product *p, int64_t first) {
    _Alignas(64) float square[COLUMNS_AT_ONCE * QKVI_BF16_STEP];
    const qkvi_gemm_bf16_job *j = &p->job;
    const int64_t n_rows = qkvi_min_i64(COLUMNS_AT_ONCE, j->m - first);
    const qkvi_amx_tiles tiles = tiles_of(p, j->half, j->k);
    const int64_t row = p->by_tiles ? QKVI_BF16_STEP : p->half_row;
    memset(square, 0, sizeof square);
    for (int64_t c = 0; c < p->depth; c += QKVI_BF16_STEP) {
        const int64_t n = qkvi_min_i64(QKVI_BF16_STEP, j->k - c);
        const float *const a = j->a + first + c * j->a_col;
        qkvi_fetch_rows(a + n * j->a_col, j->a_col, qkvi_min_i64(QKVI_BF16_STEP, j->k - c - n),
                        n_rows);
        j->kernels->rows->pack_keys[QKV_F32](a, j->a_col, n, n_rows, NULL, square);
        for (int64_t i = 0; i < n_rows; i += 16) {
            const int64_t at = first + i;
            uint16_t *const to =
                p->by_tiles ? qkvi_amx_tile(&tiles, at, c) : j->half + at * row + c;
            j->kernels->rows->store[QKV_BF16](square + QKVI_BF16_STEP * i, QKVI_BF16_STEP, 16,
                                              QKVI_BF16_STEP, 1, to, row);
        }
    }
}

/* The rows of one thread: those that it will most likely multiply. */
static void round_share(void *argument, int slot) {
    const product *p = argument;
    const int64_t at_once = has_dense_columns(&p->job) ? COLUMNS_AT_ONCE : 16;
    const int64_t n = qkvi_ceil_div(p->job.m, at_once), end = n * (slot + 1) / p->n_threads;
    for (int64_t t = n * slot / p->n_threads; t < end; t++)
        if (has_dense_columns(&p->job))
            round_columns(p, at_once * t);
        else
            round_rows(p, at_once * t, qkvi_min_i64(at_once, p->job.m - at_once * t));
}

static const uint32_t *panel_at(const product *p, int64_t j0) {
    return p->job.packed_b + j0 * (p->depth / 2);
}

/* n_rows of A from `a` on, k of them from k0 on: C continues. */
static void continue_tile(const product *p, int n_rows, int64_t k0, int64_t k, const uint16_t *a,
                          int64_t a_row, int64_t i, int64_t j0) {
    const qkvi_gemm_bf16_job *const j = &p->job;
    const int n_cols = (int)qkvi_min_i64(QKVI_PANEL, j->n - j0);
    const uint32_t *const b = panel_at(p, j0) + k0 / 2 * QKVI_PANEL;
    float *const c = j->c + i * j->c_row + j0;
    j->kernels->gemm->half_tile[j->class](n_rows, n_cols, k, a, a_row, b, c, j->c_row);
}

/* The same from floats, a piece at a time. */
static void continue_floats(const product *p, int n_rows, int64_t i, int64_t j0) {
    _Alignas(64) uint16_t half[ROWS_AT_ONCE * K_AT_ONCE];
    const qkvi_gemm_bf16_job *const j = &p->job;
    for (int64_t k0 = 0; k0 < p->depth; k0 += K_AT_ONCE) {
        const int64_t k = qkvi_min_i64(K_AT_ONCE, p->depth - k0);
        memset(half, 0, sizeof half);
        const int64_t n = qkvi_min_i64(k, j->k - k0);
        if (!has_dense_columns(j))
            j->kernels->rows->store[QKV_BF16](j->a + i * j->a_row + k0, j->a_row, n_rows, n, 1,
                                              half, K_AT_ONCE);
        for (int64_t c = 0; has_dense_columns(j) && c < n; c++)
            for (int r = 0; r < n_rows; r++)
                half[r * K_AT_ONCE + c] = qkvi_bf16_of_f32(j->a[i + r + (k0 + c) * j->a_col]);
        continue_tile(p, n_rows, k0, k, half, K_AT_ONCE, i, j0);
    }
}

/* Rows of A through some panels: the rows stay near, and so do the panels for the next rows. */
static void panels_by_tiles(const product *p, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    const qkvi_gemm_bf16_job *const j = &p->job;
    const int mr = j->kernels->mr;
    for (int64_t i = i0; i < i1; i += mr) {
        const int n_rows = (int)qkvi_min_i64(mr, i1 - i);
        for (int64_t r = i; r < i + n_rows; r++)
            memset(j->c + r * j->c_row + j0, 0, (size_t)(j1 - j0) * sizeof *j->c);
        for (int64_t at = j0; at < j1; at += QKVI_PANEL)
            if (j->half)
                continue_tile(p, n_rows, 0, p->depth, j->half + i * p->half_row, p->half_row, i,
                              at);
            else
                continue_floats(p, n_rows, i, at);
        for (int64_t r = i; j->bias && r < i + n_rows; r++)
            for (int64_t at = j0; at < j1; at++) j->c[r * j->c_row + at] += j->bias[at];
    }
}

static void block_by_tiles(const product *p, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    const int64_t panel = QKVI_PANEL * p->depth * (int64_t)sizeof(uint16_t),
                  at_once = panel ? qkvi_max_i64(1, PANELS_BYTES / panel) * QKVI_PANEL : j1 - j0;
    for (int64_t at = j0; at < j1; at += at_once)
        panels_by_tiles(p, i0, i1, at, qkvi_min_i64(at + at_once, j1));
}

static void map_block(const product *p, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    const qkvi_gemm_bf16_job *const j = &p->job;
    const int64_t n_cols = j1 - j0, depth = depth_of(j->n), row = half_row_of(j->n);
    const float *const result = j->map ? j->mapped : j->c;
    if (j->rows)
        j->kernels->rows->store[QKV_BF16](j->c + i0 * j->c_row + j0, j->c_row, i1 - i0, n_cols, 1,
                                          j->rows + i0 * j->n + j0, j->n);
    for (int64_t i = i0; j->map && i < i1; i++)
        j->map(n_cols, j->c + i * j->c_row + j0, j->mapped + i * j->c_row + j0);
    for (int64_t i = i0; j->rounded && i < i1; i++) {
        uint16_t *const to = j->rounded + i * row + j0;
        j->kernels->rows->store[QKV_BF16](result + i * j->c_row + j0, n_cols, 1, n_cols, 1, to,
                                          n_cols);
        if (j1 == j->n) memset(to + n_cols, 0, (size_t)(depth - j->n) * sizeof *to);
    }
}

static void block_by_amx(const product *p, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                         float *sums) {
    const qkvi_gemm_bf16_job *const j = &p->job;
    const int64_t n_tiles = qkvi_ceil_div(i1 - i0, 32);
    qkvi_amx_begin();
    for (int64_t at = j0; at < j1; at += QKVI_PANEL) {
        const int64_t after = at + QKVI_PANEL < j1 ? at + QKVI_PANEL : j0;
        const qkvi_amx_panel panel = {
            .first_row = i0,
            .n_rows = i1 - i0,
            .first_col = at,
            .n_cols = (int)qkvi_min_i64(QKVI_PANEL, j->n - at),
            .tiles = tiles_of(p, j->half, j->k),
            .b = panel_at(p, at),
            .c = j->c + at,
            .mapped = j->map ? j->mapped + at : NULL,
            .c_row = j->c_row,
            .past_caches = j->m > PAST_CACHES / (4 * j->n),
            .bias = j->bias ? j->bias + at : NULL,
            .map = j->map,
            .rounded = tiles_of(p, j->rounded, j->n),
            .rows = j->rows ? j->rows + at : NULL,
            .n_row = j->n,
            .sums = sums,
            .ahead = n_tiles == 1 ? (const char *)panel_at(p, at) + STREAM_AHEAD
                                  : (const char *)panel_at(p, after),
            .lines = (int)qkvi_ceil_div(32, n_tiles),
        };
        qkvi_amx_multiply(&panel);
    }
    qkvi_amx_end();
}

static void do_block(const product *p, int index, float *sums) {
    const qkvi_gemm_bf16_job *const j = &p->job;
    const int64_t i0 = index / p->n_col_blocks * p->block_rows;
    const int64_t j0 = index % p->n_col_blocks * p->block_cols;
    const int64_t i1 = qkvi_min_i64(i0 + p->block_rows, j->m);
    const int64_t j1 = qkvi_min_i64(j0 + p->block_cols, j->n);
    if (p->by_tiles) {
        block_by_amx(p, i0, i1, j0, j1, sums);
        return;
    }
    block_by_tiles(p, i0, i1, j0, j1);
    map_block(p, i0, i1, j0, j1);
}

/* The first block of a lane: of rows, or where all are in one block, of columns. */
static int lane_at(const product *p, int64_t lane) {
    if (p->n_row_blocks == 1) return (int)(p->n_col_blocks * lane / p->n_lanes);
    return (int)(p->n_row_blocks * lane / p->n_lanes * p->n_col_blocks);
}

/*
 * One for each thread: its sums are one of the slots of the job's. Blocks are in lanes; a thread
 * begins with a lane of its own, and goes on with what is left of the others. It has mostly rounded
 * the A of a lane of rows itself. A lane of columns is read from end to end.
 */
static void draw_blocks(void *argument, int slot) {
    product *p = argument;
    float *const sums = p->job.sums ? p->job.sums + (int64_t)slot * SUMS : NULL;
    const int own = (int)((int64_t)slot * p->n_lanes / p->n_threads);
    for (int turn = 0; turn < p->n_lanes; turn++) {
        const int lane = (own + turn) % p->n_lanes, end = lane_at(p, lane + 1);
        for (int index; (index = atomic_fetch_add(&p->next[lane], 1)) < end;)
            do_block(p, index, sums);
    }
}

static void choose_blocks(product *p) {
    const qkvi_gemm_bf16_job *const j = &p->job;
    const int64_t depth = p->depth ? p->depth : QKVI_BF16_STEP;
    const int64_t fit = BLOCK_BYTES / (2 * depth) / 32 * 32;
    const int64_t rows_most = fit < 32 ? 32 : qkvi_min_i64(fit, BLOCK_ROWS);
    const int64_t n_panels = qkvi_ceil_div(j->n, QKVI_PANEL);
    const int64_t rows = j->m > 32 ? j->m : 32; /* fewer wait for B as long */
    const int64_t work = rows * j->n * j->k / WORTH_A_TASK;
    const int64_t n_wanted =
        p->n_threads == 1 ? 1 : qkvi_min_i64((int64_t)p->n_threads * TASKS_PER_THREAD, work);
    const int64_t n_least = qkvi_min_i64(p->n_threads, j->m / OWN_ROWS);
    const int64_t n_by_size = qkvi_ceil_div(j->m, rows_most);
    const int64_t n_row_blocks = n_by_size < n_least ? n_least : n_by_size;
    int64_t n_col_blocks = 1;
    if (n_row_blocks < n_wanted)
        n_col_blocks = qkvi_min_i64(n_panels, qkvi_ceil_div(n_wanted, n_row_blocks));
    p->block_rows = qkvi_round_up(qkvi_ceil_div(j->m, n_row_blocks), 32);
    p->block_cols =
        qkvi_gemm_panels(n_panels, n_row_blocks, n_col_blocks, p->n_threads) * QKVI_PANEL;
    p->n_col_blocks = qkvi_ceil_div(j->n, p->block_cols);
    p->n_row_blocks = (int)qkvi_ceil_div(j->m, p->block_rows);
    p->n_lanes = p->n_row_blocks == 1 ? p->n_threads : p->n_row_blocks;
    if (p->n_lanes > LANES) p->n_lanes = LANES;
    for (int l = 0; l < p->n_lanes; l++) atomic_init(&p->next[l], lane_at(p, l));
}

size_t qkvi_bf16_input_elems(int64_t m, int64_t k) {
    size_t elems;
    if (m > INT64_MAX - 16 || k > INT64_MAX - 2 * QKVI_BF16_STEP ||
        !qkvi_mul_size((size_t)qkvi_round_up(m, 16), (size_t)half_row_of(k), &elems))
        return SIZE_MAX;
    return elems;
}

size_t qkvi_bf16_sums_elems(const qkvi_pool *pool) {
    return (size_t)qkvi_pool_threads(pool) * SUMS;
}

void qkvi_gemm_bf16(qkvi_pool *pool, const qkvi_gemm_bf16_job *job) {
    if (job->m == 0 || job->n == 0) return;
    product p = { .job = *job, .depth = depth_of(job->k), .half_row = half_row_of(job->k) };
    p.by_tiles = job->class == QKVI_CLASS_AMX_TILES && job->half;
    p.n_threads = qkvi_pool_threads(pool);
    choose_blocks(&p);
    if (job->half && !job->half_filled)
        qkvi_pool_run(job->m > 64 ? pool : NULL, p.n_threads, round_share, &p);
    const int64_t n_blocks = p.n_row_blocks * p.n_col_blocks;
    qkvi_pool_run(pool, (int)qkvi_min_i64(n_blocks, p.n_threads), draw_blocks, &p);
}
