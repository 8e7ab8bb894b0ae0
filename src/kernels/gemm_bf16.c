/*
 * Matrix products in bf16: packing, the loops over blocks, and class amx for processors without
 * its instruction. See gemm_bf16.h.
 *
 * A is rounded to bf16 once, [m rounded up to 16][k rounded up to 32] or as tiles of AMX, and every
 * block of rows x panels reads it from there. With AMX a block is a product of the whole depth, panel by panel: its
 * rows of A stay in the second-level cache, and the next panel of B is fetched during this one.
 */
#include "kernels/gemm_bf16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/cpu.h"
#include "core/half.h"
#include "core/ints.h"

enum {
    STEP = 32,               /* of k: what a tile of AMX is deep */
    BLOCK_BYTES = 768 << 10, /* of A, at most, in half a second-level cache of 2 MiB */
    STREAM_AHEAD = 8 << 10,  /* bytes of B, where a block has one tile of rows */
    ROWS_AT_ONCE = 12,       /* without memory for A */
    K_AT_ONCE = 256,         /* and then rows of so many of k: 6 KiB */
    WORTH_A_TASK = 1 << 21,  /* multiplications */
    TASKS_PER_THREAD = 8
};

#define LEAST_NORMAL 0x1p-126f

static int64_t round_up(int64_t x, int64_t to) { return qkvi_ceil_div(x, to) * to; }

/* ---- Packing --------------------------------------------------------------------------------- */

size_t qkvi_bf16_packed_words(int64_t k, int64_t n) {
    if (k < 0 || k > INT64_MAX - STEP) return SIZE_MAX;
    return qkvi_gemm_packed_elems(round_up(k, STEP) / 2, n);
}

typedef struct pack_job {
    int64_t k, n, row_stride, col_stride;
    const float *b;
    uint32_t *packed;
} pack_job;

static uint32_t pair(float below, float above) {
    return qkvi_bf16_of_f32(below) | (uint32_t)qkvi_bf16_of_f32(above) << 16;
}

/* Rows of B lie in order: n_c of them, from an even one on, n_cols columns of a panel. */
static void pack_rows(int64_t n_c, int64_t n_cols, const float *restrict b, int64_t row_stride,
                      uint32_t *restrict panel) {
    for (int64_t c = 0; c < n_c; c += 2, panel += QKVI_PANEL) {
        const float *const below = b + c * row_stride, *const above = below + row_stride;
        if (c + 1 < n_c)
            for (int64_t j = 0; j < n_cols; j++) panel[j] = pair(below[j], above[j]);
        else
            for (int64_t j = 0; j < n_cols; j++) panel[j] = pair(below[j], 0);
    }
}

/* Columns of B lie in order, or neither do: transposed in squares, as in gemm.c. */
static void pack_columns(int64_t n_c, int64_t n_cols, const float *restrict b, int64_t row_stride,
                         int64_t col_stride, uint32_t *restrict panel) {
    for (int64_t c0 = 0; c0 < n_c; c0 += STEP, panel += STEP / 2 * QKVI_PANEL) {
        const int64_t n = qkvi_min_i64(STEP, n_c - c0);
        for (int64_t j = 0; j < n_cols; j++) {
            const float *const column = b + j * col_stride + c0 * row_stride;
            for (int64_t c = 0; c < n / 2; c++)
                panel[c * QKVI_PANEL + j] =
                    pair(column[2 * c * row_stride], column[(2 * c + 1) * row_stride]);
            if (n % 2) panel[n / 2 * QKVI_PANEL + j] = pair(column[(n - 1) * row_stride], 0);
        }
    }
}

void qkvi_bf16_pack_piece(int64_t k, int64_t n, const qkvi_gemm_piece *piece, uint32_t *packed) {
    const int64_t depth = round_up(k, STEP), n_words = round_up(piece->n_c, STEP) / 2;
    for (int64_t j = 0; j < piece->n_j; j += QKVI_PANEL) {
        const int64_t n_cols = qkvi_min_i64(QKVI_PANEL, n - piece->j0 - j);
        const float *const b = piece->b + j * piece->col_stride;
        uint32_t *const panel = packed + (piece->j0 + j) * (depth / 2) + piece->c0 / 2 * QKVI_PANEL;
        if (n_cols < QKVI_PANEL || piece->n_c % STEP)
            memset(panel, 0, (size_t)(n_words * QKVI_PANEL) * sizeof *panel);
        if (piece->col_stride == 1)
            pack_rows(piece->n_c, n_cols, b, piece->row_stride, panel);
        else
            pack_columns(piece->n_c, n_cols, b, piece->row_stride, piece->col_stride, panel);
    }
}

static void pack_panel(void *argument, int index) {
    const pack_job *j = argument;
    const int64_t j0 = (int64_t)index * QKVI_PANEL;
    const qkvi_gemm_piece piece = { 0,
                                    j->k,
                                    j0,
                                    qkvi_min_i64(QKVI_PANEL, j->n - j0),
                                    j->b + j0 * j->col_stride,
                                    j->row_stride,
                                    j->col_stride };
    qkvi_bf16_pack_piece(j->k, j->n, &piece, j->packed);
}

void qkvi_bf16_pack_b(qkvi_pool *pool, int64_t k, int64_t n, const float *b, int64_t row_stride,
                      int64_t col_stride, uint32_t *packed) {
    pack_job j = { k, n, row_stride, col_stride, b, packed };
    qkvi_pool_run(pool, (int)qkvi_ceil_div(n, QKVI_PANEL), pack_panel, &j);
}

/* ---- Class amx without AMX ------------------------------------------------------------------- */

static float flushed(float x) { return fabsf(x) < LEAST_NORMAL ? copysignf(0, x) : x; }

/*
 * fma of numbers that are not subnormal, 0 where it is below 2^-126 after rounding to 24 bits:
 * tmpl/dp.h says why exactly 2^-126 must be formed again.
 */
static float fma_flushed(float a, float b, float c) {
    const float sum = fmaf(a, b, c);
    if (fabsf(sum) != LEAST_NORMAL) return flushed(sum);
    const float larger = fmaf(a * 0x1p50f, b * 0x1p50f, c * 0x1p100f);
    return fabsf(larger) < LEAST_NORMAL * 0x1p100f ? copysignf(0, sum) : sum;
}

static float factor(uint32_t bits) { return flushed(qkvi_float_of_bits(bits & 0xFFFF0000)); }

/* C continues by k of A B, a multiple of 32. */
static void amx_model(int n_rows, int n_cols, int64_t k, const uint16_t *a, int64_t a_row,
                      const uint32_t *b, float *c, int64_t c_row) {
    for (int i = 0; i < n_rows; i++)
        for (int64_t step = 0; step < k; step += STEP)
            for (int j = 0; j < n_cols; j++) {
                float sums[2] = { 0, 0 };
                for (int64_t x = step; x < step + STEP; x++) {
                    const uint32_t two = b[x / 2 * QKVI_PANEL + j];
                    const float left = factor((uint32_t)a[i * a_row + x] << 16);
                    sums[x % 2] = fma_flushed(left, factor(x % 2 ? two : two << 16), sums[x % 2]);
                }
                float *const to = c + i * c_row + j;
                *to = flushed(*to + flushed(sums[0] + sums[1]));
            }
}

/* ---- The product ----------------------------------------------------------------------------- */

typedef struct product {
    qkvi_gemm_bf16_job job;
    int64_t depth; /* k rounded up to 32 */
    int64_t block_rows, block_cols, n_col_blocks;
    bool amx;
} product;

/* Rows of A, and zeros up to what a tile has. */
static void round_rows(void *argument, int index) {
    const product *p = argument;
    const qkvi_gemm_bf16_job *j = &p->job;
    const int64_t first = 16 * (int64_t)index;
    if (p->amx) {
        qkvi_amx_round((int)qkvi_min_i64(16, j->m - first), j->k, j->a + first * j->a_row, j->a_row,
                       p->job.half + first * p->depth);
        return;
    }
    for (int64_t i = first; i < first + 16; i++) {
        uint16_t *const to = p->job.half + i * p->depth;
        if (i < j->m)
            j->kernels->store_rows[QKV_BF16](j->a + i * j->a_row, j->k, 1, j->k, 1, to, j->k);
        const int64_t from = i < j->m ? j->k : 0;
        memset(to + from, 0, (size_t)(p->depth - from) * sizeof *to);
    }
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
    if (j->class == QKVI_BF16_DP)
        j->kernels->dp_tile(n_rows, n_cols, k, a, a_row, b, c, j->c_row);
    else
        amx_model(n_rows, n_cols, k, a, a_row, b, c, j->c_row);
}

/* The same from floats, a piece at a time. */
static void continue_floats(const product *p, int n_rows, int64_t i, int64_t j0) {
    _Alignas(64) uint16_t half[ROWS_AT_ONCE * K_AT_ONCE];
    const qkvi_gemm_bf16_job *const j = &p->job;
    for (int64_t k0 = 0; k0 < p->depth; k0 += K_AT_ONCE) {
        const int64_t k = qkvi_min_i64(K_AT_ONCE, p->depth - k0);
        memset(half, 0, sizeof half);
        j->kernels->store_rows[QKV_BF16](j->a + i * j->a_row + k0, j->a_row, n_rows,
                                         qkvi_min_i64(k, j->k - k0), 1, half, K_AT_ONCE);
        continue_tile(p, n_rows, k0, k, half, K_AT_ONCE, i, j0);
    }
}

static void block_by_tiles(const product *p, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    const qkvi_gemm_bf16_job *const j = &p->job;
    const int mr = j->kernels->mr;
    for (int64_t i = i0; i < i1; i += mr) {
        const int n_rows = (int)qkvi_min_i64(mr, i1 - i);
        for (int64_t r = i; r < i + n_rows; r++)
            memset(j->c + r * j->c_row + j0, 0, (size_t)(j1 - j0) * sizeof *j->c);
        for (int64_t at = j0; at < j1; at += QKVI_PANEL)
            if (p->job.half)
                continue_tile(p, n_rows, 0, p->depth, p->job.half + i * p->depth, p->depth, i, at);
            else
                continue_floats(p, n_rows, i, at);
        for (int64_t r = i; j->bias && r < i + n_rows; r++)
            for (int64_t at = j0; at < j1; at++) j->c[r * j->c_row + at] += j->bias[at];
    }
}

static void block_by_amx(const product *p, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    const qkvi_gemm_bf16_job *const j = &p->job;
    const int64_t n_tiles = qkvi_ceil_div(i1 - i0, 32);
    const int lines = (int)qkvi_ceil_div(32, n_tiles);
    qkvi_amx_begin();
    for (int64_t at = j0; at < j1; at += QKVI_PANEL) {
        const char *const ahead =
            n_tiles == 1 ? (const char *)panel_at(p, at) + STREAM_AHEAD
                         : (const char *)panel_at(p, at + QKVI_PANEL < j1 ? at + QKVI_PANEL : j0);
        qkvi_amx_panel(i1 - i0, (int)qkvi_min_i64(QKVI_PANEL, j->n - at), p->depth,
                       p->job.half + i0 * p->depth, panel_at(p, at), j->c + i0 * j->c_row + at,
                       j->c_row, j->bias ? j->bias + at : NULL, ahead, lines);
    }
    qkvi_amx_end();
}

static void block_task(void *argument, int index) {
    const product *p = argument;
    const qkvi_gemm_bf16_job *const j = &p->job;
    const int64_t i0 = index / p->n_col_blocks * p->block_rows;
    const int64_t j0 = index % p->n_col_blocks * p->block_cols;
    const int64_t i1 = qkvi_min_i64(i0 + p->block_rows, j->m);
    const int64_t j1 = qkvi_min_i64(j0 + p->block_cols, j->n);
    (p->amx ? block_by_amx : block_by_tiles)(p, i0, i1, j0, j1);
    for (int64_t i = i0; j->map && i < i1; i++)
        j->map(j1 - j0, j->c + i * j->c_row + j0, j->mapped + i * j->c_row + j0);
}

static int choose_blocks(product *p, int n_threads) {
    const qkvi_gemm_bf16_job *const j = &p->job;
    const int64_t fit = BLOCK_BYTES / (2 * p->depth) / 32 * 32;
    const int64_t rows_most = fit < 32 ? 32 : fit;
    const int64_t n_panels = qkvi_ceil_div(j->n, QKVI_PANEL);
    const int64_t rows = j->m > 32 ? j->m : 32; /* fewer wait for B as long */
    const int64_t work = rows * j->n * j->k / WORTH_A_TASK;
    const int64_t n_wanted =
        n_threads == 1 ? 1 : qkvi_min_i64((int64_t)n_threads * TASKS_PER_THREAD, work);
    const int64_t n_row_blocks = qkvi_ceil_div(j->m, rows_most);
    int64_t n_col_blocks = 1;
    if (n_row_blocks < n_wanted)
        n_col_blocks = qkvi_min_i64(n_panels, qkvi_ceil_div(n_wanted, n_row_blocks));
    p->block_rows = round_up(qkvi_ceil_div(j->m, n_row_blocks), 32);
    p->block_cols = qkvi_ceil_div(n_panels, n_col_blocks) * QKVI_PANEL;
    p->n_col_blocks = qkvi_ceil_div(j->n, p->block_cols);
    return (int)(qkvi_ceil_div(j->m, p->block_rows) * p->n_col_blocks);
}

size_t qkvi_bf16_input_elems(int64_t m, int64_t k) {
    size_t elems;
    if (m > INT64_MAX - 16 || k > INT64_MAX - STEP ||
        !qkvi_mul_size((size_t)round_up(m, 16), (size_t)round_up(k, STEP), &elems))
        return SIZE_MAX;
    return elems;
}

void qkvi_gemm_bf16(qkvi_pool *pool, const qkvi_gemm_bf16_job *job) {
    if (job->m == 0 || job->n == 0) return;
    product p = { .job = *job, .depth = round_up(job->k, STEP) };
    p.amx = job->class == QKVI_BF16_AMX && job->has_amx && job->half &&
            (job->kernels->need & QKVI_CPU_AVX512BF16);
    if (job->half)
        qkvi_pool_run(job->m > 64 ? pool : NULL, (int)qkvi_ceil_div(job->m, 16), round_rows, &p);
    qkvi_pool_run(pool, choose_blocks(&p, qkvi_pool_threads(pool)), block_task, &p);
}
