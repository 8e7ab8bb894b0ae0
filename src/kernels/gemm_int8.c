/*
 * Matrix products of 8-bit integers: packing of B, and the loops over blocks. See gemm_int8.h.
 *
 * A is rounded once, by all threads. Blocks of rows x panels are tasks; in one, each panel of B
 * meets all tiles of rows, and the next panel is announced meanwhile. Where a block has one tile of
 * rows (a token) B is read once and from end to end.
 */
#include "kernels/gemm_int8.h"

#include <string.h>

#include "core/alloc.h"
#include "core/ints.h"
#include "kernels/table.h"

enum {
    ROWS_MOST = 96,         /* of a block: a multiple of every kernel's mr */
    STREAM_AHEAD = 8 << 10, /* bytes */
    TASKS_PER_THREAD = 8,
    WORTH_A_TASK = 1 << 18, /* multiplications: gemm.c */
    WAIT_ROWS = 8,          /* fewer wait for B as long */
    PACK_COLUMNS = 16,      /* gathered at once: 4 KiB */
    GROUPS_AT_ONCE = 8,     /* without memory for A: 7 KiB of 12 rows */
    ROWS_AT_ONCE = 12,
    ROUND_AT_ONCE = 16 /* rows */
};

/* ---- Packing --------------------------------------------------------------------------------- */

static size_t count(int64_t rows, int64_t k, size_t bytes) {
    size_t n;
    if (rows < 0 || k < 0 || k > INT64_MAX - QKVI_INT8_GROUP ||
        !qkvi_mul_size((size_t)rows, (size_t)qkvi_ceil_div(k, QKVI_INT8_GROUP), &n) ||
        n > PTRDIFF_MAX / bytes)
        return SIZE_MAX;
    return n;
}

size_t qkvi_int8_packed_panels(int64_t k, int64_t n) {
    if (n > INT64_MAX - QKVI_INT8_COLUMNS) return SIZE_MAX;
    return count(qkvi_ceil_div(n, QKVI_INT8_COLUMNS), k, sizeof(qkvi_int8_panel));
}

size_t qkvi_int8_groups(int64_t m, int64_t k) { return count(m, k, sizeof(qkvi_int8_group)); }

/* Columns j … of a panel's group, n_c deep, from the piece's row c on. */
static void pack_columns(const qkvi_kernels *kernels, const qkvi_gemm_piece *p, int64_t c,
                         int64_t j, int col, qkvi_int8_panel *panel) {
    float columns[PACK_COLUMNS * QKVI_INT8_GROUP];
    qkvi_int8_group groups[PACK_COLUMNS];
    const int n_cols = (int)qkvi_min_i64(PACK_COLUMNS, p->n_j - j);
    const int64_t n_c = qkvi_min_i64(QKVI_INT8_GROUP, p->n_c - c);
    if (n_cols <= 0) return;
    memset(columns, 0, sizeof columns);
    for (int i = 0; i < n_cols; i++) {
        const float *const from = p->b + c * p->row_stride + (j + i) * p->col_stride;
        for (int64_t e = 0; e < n_c; e++)
            columns[i * QKVI_INT8_GROUP + e] = from[e * p->row_stride];
    }
    kernels->gemm->int8_round(n_cols, QKVI_INT8_GROUP, columns, QKVI_INT8_GROUP, groups, 1);
    for (int i = 0; i < n_cols; i++) {
        panel->scale[col + i] = groups[i].scale;
        for (int e = 0; e < QKVI_INT8_GROUP; e++)
            panel->q[e / 4][col + i][e % 4] = (uint8_t)(groups[i].q[e] + 128);
    }
}

void qkvi_int8_pack_piece(const qkvi_kernels *kernels, int64_t k, const qkvi_gemm_piece *piece,
                          qkvi_int8_panel *packed) {
    const int64_t n_groups = qkvi_ceil_div(k, QKVI_INT8_GROUP);
    for (int64_t j = 0; j < piece->n_j; j += QKVI_INT8_COLUMNS) {
        qkvi_int8_panel *const panel =
            packed + (piece->j0 + j) / QKVI_INT8_COLUMNS * n_groups + piece->c0 / QKVI_INT8_GROUP;
        for (int64_t c = 0; c < piece->n_c; c += QKVI_INT8_GROUP) {
            qkvi_int8_panel *const group = panel + c / QKVI_INT8_GROUP;
            if (piece->n_j - j < QKVI_INT8_COLUMNS) { /* columns of zeros */
                memset(group->scale, 0, sizeof group->scale);
                memset(group->q, 128, sizeof group->q);
            }
            for (int col = 0; col < QKVI_INT8_COLUMNS; col += PACK_COLUMNS)
                pack_columns(kernels, piece, c, j + col, col, group);
        }
    }
}

typedef struct pack_job {
    const qkvi_kernels *kernels;
    int64_t k, n, row_stride, col_stride;
    const float *b;
    qkvi_int8_panel *packed;
} pack_job;

static void pack_panel(void *argument, int index) {
    const pack_job *const job = argument;
    const int64_t j0 = (int64_t)index * QKVI_INT8_COLUMNS;
    const qkvi_gemm_piece piece = { 0,
                                    job->k,
                                    j0,
                                    qkvi_min_i64(QKVI_INT8_COLUMNS, job->n - j0),
                                    job->b + j0 * job->col_stride,
                                    job->row_stride,
                                    job->col_stride };
    qkvi_int8_pack_piece(job->kernels, job->k, &piece, job->packed);
}

void qkvi_int8_pack_b(const qkvi_kernels *kernels, qkvi_pool *pool, int64_t k, int64_t n,
                      const float *b, int64_t row_stride, int64_t col_stride,
                      qkvi_int8_panel *packed) {
    pack_job job = {
        kernels ? kernels : qkvi_kernels_best(), k, n, row_stride, col_stride, b, packed
    };
    qkvi_pool_run(pool, (int)qkvi_ceil_div(n, QKVI_INT8_COLUMNS), pack_panel, &job);
}

/* ---- The product ----------------------------------------------------------------------------- */

typedef struct product {
    qkvi_gemm_int8_job job;
    int64_t n_groups, block_rows, block_cols, n_col_blocks;
} product;

static void round_rows(void *argument, int index) {
    const product *const p = argument;
    const qkvi_gemm_int8_job *const j = &p->job;
    const int64_t first = (int64_t)index * ROUND_AT_ONCE;
    j->kernels->gemm->int8_round(qkvi_min_i64(ROUND_AT_ONCE, j->m - first), j->k,
                                 j->a + first * j->k, j->k, j->rows + first * p->n_groups,
                                 p->n_groups);
}

/* A tile whose rows of A are rounded on the way. */
static void tile_of_floats(const product *p, int n_rows, int n_cols, int64_t i,
                           const qkvi_int8_panel *panel, float *c, const float *bias) {
    qkvi_int8_group groups[ROWS_AT_ONCE * GROUPS_AT_ONCE];
    const qkvi_gemm_int8_job *const j = &p->job;
    int64_t g = 0;
    do { /* once even if k = 0 */
        const int64_t n = qkvi_min_i64(GROUPS_AT_ONCE, p->n_groups - g), at = g * QKVI_INT8_GROUP;
        j->kernels->gemm->int8_round(n_rows, qkvi_min_i64(n * QKVI_INT8_GROUP, j->k - at),
                                     j->a + i * j->k + at, j->k, groups, GROUPS_AT_ONCE);
        g += n;
        j->kernels->gemm->int8_tile(n_rows, n_cols, n, groups, GROUPS_AT_ONCE, panel + (g - n), c,
                                    j->n, g > n, g == p->n_groups ? bias : NULL, panel, 0);
    } while (g < p->n_groups);
}

/* Groups of packed B, one after the other. */
typedef struct groups {
    const qkvi_int8_panel *at;
    int64_t n;
} groups;

/* Up to `most` groups from number `first` of the product on, as far as B goes. */
static groups groups_from(const product *p, int64_t first, int64_t most) {
    const int64_t all = qkvi_ceil_div(p->job.n, QKVI_INT8_COLUMNS) * p->n_groups;
    return (groups){ p->job.packed_b + first, qkvi_max_i64(0, qkvi_min_i64(most, all - first)) };
}

/*
 * What is read after the panel of column j0, or, where B is read from end to end, STREAM_AHEAD
 * further on.
 */
static groups groups_after(const product *p, int64_t i1, int64_t j0, bool stream) {
    const int64_t first = j0 / QKVI_INT8_COLUMNS * p->n_groups;
    const int64_t ahead = qkvi_ceil_div(STREAM_AHEAD, (int64_t)sizeof(qkvi_int8_panel));
    if (stream) return groups_from(p, first + ahead, p->n_groups);
    const groups next = groups_from(p, first + p->n_groups, p->n_groups);
    return next.n == 0 && i1 < p->job.m ? groups_from(p, 0, p->n_groups) : next;
}

/* Rows i0 … i1 - 1 by the panel of column j0; after: announced by the tiles in equal parts. */
static void multiply_panel(const product *p, int64_t i0, int64_t i1, int64_t j0,
                           const qkvi_int8_panel *panel, groups after) {
    const qkvi_gemm_int8_job *const j = &p->job;
    const int mr = j->kernels->mr, n_cols = (int)qkvi_min_i64(QKVI_INT8_COLUMNS, j->n - j0);
    const int64_t share = qkvi_ceil_div(after.n, qkvi_ceil_div(i1 - i0, mr));
    const float *const bias = j->bias ? j->bias + j0 : NULL;
    for (int64_t i = i0; i < i1; i += mr) {
        const int n_rows = (int)qkvi_min_i64(mr, i1 - i);
        const int64_t n = qkvi_min_i64(share, after.n);
        float *const c = j->c + i * j->n + j0;
        if (j->rows)
            j->kernels->gemm->int8_tile(n_rows, n_cols, p->n_groups, j->rows + i * p->n_groups,
                                        p->n_groups, panel, c, j->n, 0, bias, after.at, n);
        else
            tile_of_floats(p, n_rows, n_cols, i, panel, c, bias);
        after.at += n, after.n -= n;
    }
}

static void do_block(void *argument, int index) {
    const product *const p = argument;
    const qkvi_gemm_int8_job *const j = &p->job;
    const int64_t i0 = index / p->n_col_blocks * p->block_rows;
    const int64_t j0 = index % p->n_col_blocks * p->block_cols;
    const int64_t i1 = qkvi_min_i64(i0 + p->block_rows, j->m);
    const int64_t j1 = qkvi_min_i64(j0 + p->block_cols, j->n);
    const bool stream = i1 - i0 <= j->kernels->mr;
    for (int64_t at = j0; at < j1; at += QKVI_INT8_COLUMNS) {
        const qkvi_int8_panel *const panel = j->packed_b + at / QKVI_INT8_COLUMNS * p->n_groups;
        multiply_panel(p, i0, i1, at, panel, groups_after(p, i1, at, stream));
    }
    for (int64_t i = i0; j->map && i < i1; i++)
        j->map(j1 - j0, j->c + i * j->n + j0, j->mapped + i * j->n + j0);
}

/* Fewer columns in each block if those of all are too few for the threads: as in gemm.c. */
static int choose_blocks(product *p, int n_threads) {
    const qkvi_gemm_int8_job *const j = &p->job;
    const int64_t n_panels = qkvi_ceil_div(j->n, QKVI_INT8_COLUMNS);
    const int64_t work = qkvi_max_i64(j->m, WAIT_ROWS) * j->n * j->k / WORTH_A_TASK;
    const int64_t n_wanted =
        n_threads == 1 ? 1 : qkvi_min_i64((int64_t)n_threads * TASKS_PER_THREAD, work);
    const int64_t n_row_blocks = qkvi_ceil_div(j->m, ROWS_MOST);
    int64_t n_col_blocks = 1;
    if (n_row_blocks < n_wanted)
        n_col_blocks = qkvi_min_i64(n_panels, qkvi_ceil_div(n_wanted, n_row_blocks));
    p->block_rows = qkvi_round_up(qkvi_ceil_div(j->m, n_row_blocks), j->kernels->mr);
    p->block_cols =
        qkvi_gemm_panels(n_panels, n_row_blocks, n_col_blocks, n_threads) * QKVI_INT8_COLUMNS;
    p->n_col_blocks = qkvi_ceil_div(j->n, p->block_cols);
    return (int)(qkvi_ceil_div(j->m, p->block_rows) * p->n_col_blocks);
}

/*
 * Products side by side: task number `end` and the next ones are not the product's, but those
 * behind it.
 */
typedef struct side {
    product *products;
    int *ends;
} side;

static void do_side(void *argument, int index) {
    const side *const s = argument;
    int nth = 0;
    while (index >= s->ends[nth]) nth++;
    do_block(&s->products[nth], index - (nth ? s->ends[nth - 1] : 0));
}

void qkvi_gemm_int8(qkvi_pool *pool, int n_jobs, const qkvi_gemm_int8_job *jobs) {
    product products[QKVI_GEMM_INT8_JOBS];
    int ends[QKVI_GEMM_INT8_JOBS], n_tasks = 0;
    for (int n = 0; n < n_jobs; n++) {
        product *const p = &products[n];
        *p = (product){ .job = jobs[n], .n_groups = qkvi_ceil_div(jobs[n].k, QKVI_INT8_GROUP) };
        if (jobs[n].m > 0 && jobs[n].n > 0) n_tasks += choose_blocks(p, qkvi_pool_threads(pool));
        ends[n] = n_tasks;
    }
    if (n_tasks == 0) return;
    if (jobs->rows)
        qkvi_pool_run(pool, (int)qkvi_ceil_div(jobs->m, ROUND_AT_ONCE), round_rows, products);
    side s = { products, ends };
    if (jobs->m <= jobs->kernels->mr)
        qkvi_pool_run_ranges(pool, n_tasks, do_side, &s);
    else
        qkvi_pool_run(pool, n_tasks, do_side, &s);
}
