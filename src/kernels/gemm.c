/*
 * Matrix products: packing of B, and the loops that keep the register tile fed.
 *
 * C is cut into blocks of rows x panels, one task each. Within a block:
 *
 *     for every 768 of k        295 KiB of A, in the second-level cache
 *         for each panel        96 KiB of packed B, of which 32 KiB at a time are in the first
 *             for every 256 of k
 *                 for each tile     6 or 12 rows of A
 *
 * What is read next of B is announced while a tile is computed. Where a block has a tile or two (a
 * sentence, or one token) all of k is taken at once, so that B is read once and from end to end.
 *
 * Blocks do not change the order of any sum (gemm.h), so they are free to follow the shape and the
 * number of threads.
 *
 * A of dense columns is copied block by block. A of dense rows is read where it lies, but where a
 * tile's rows lie multiples of 4 KiB apart: then the lines that a step reads share one set of the
 * first-level cache, and 12 of them push each other out of 8 ways. On Zen 4 copying raised
 * m = 1024, n = 768, k = 3072 from 87 to 93 % of the peak, n = 1024, k = 4096 with 12, 64 and 512
 * rows from 74, 85 and 85 to 93, 91 and 90 %. With tiles of six rows (AVX2) each gained 1 to 3 %.
 * Other strides lost 1 to 2 %. With 12 ways (Zen 5) every shape lost: m = 4096, n = k = 768, by
 * tiles, 86 to 68 %.
 */
#include "kernels/gemm.h"

#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"
#include "core/cpu.h"
#include "core/ints.h"

enum {
    /*
     * of a block. In an Intel Xeon with AMX (2 MiB of second-level cache), m = 1024, 768 x
     * 3072: 73 % of the peak, not 65 % with 192 rows, 12 panels and 256 of k
     */
    ROWS_MOST = 96,
    PANELS_MOST = 24,
    K_STEP = 3 * QKVI_GEMM_K_BLOCK,
    TILES_STREAMED = 2,   /* a block of so many reads B once */
    STREAM_ROWS = 64,     /* of B, 8 KiB, that are on their way */
    TASKS_PER_THREAD = 8, /* so that uneven threads end together */
    PANELS_TRIED = 3,
    COPIED_AHEAD = 8, /* rows of A that are on their way while others are copied */
    FEW_WAYS = 8      /* of the first-level cache */
};
#define WORTH_A_TASK (1 << 18) /* multiplications, some 2…4 µs: less is not worth waking a thread */
#define WAIT_ROWS    8         /* fewer rows wait for B as long as so many compute */

/* ---- Packing --------------------------------------------------------------------------------- */

size_t qkvi_gemm_packed_elems(int64_t k, int64_t n) {
    int64_t padded;
    size_t elems;
    if (k < 0 || n < 0 || !qkvi_mul_i64(qkvi_ceil_div(n, QKVI_PANEL), QKVI_PANEL, &padded) ||
        !qkvi_mul_size((size_t)k, (size_t)padded, &elems) || elems > PTRDIFF_MAX / sizeof(float))
        return SIZE_MAX;
    return elems;
}

struct pack_job {
    const qkvi_kernels *kernels;
    int64_t k, n, row_stride, col_stride, k_step, n_k_steps;
    const float *b;
    float *packed;
};

/* Rows of B lie in order: copy. n_cols = 32 is spelt out so that it becomes a few vector moves. */
static void pack_rows(int64_t n_rows, int n_cols, const float *restrict b, int64_t row_stride,
                      float *restrict panel) {
    for (int64_t c = 0; c < n_rows; c++) {
        float *const to = panel + c * QKVI_PANEL;
        if (n_cols == QKVI_PANEL) {
            memcpy(to, b + c * row_stride, QKVI_PANEL * sizeof *to);
            continue;
        }
        memcpy(to, b + c * row_stride, (size_t)n_cols * sizeof *to);
        memset(to + n_cols, 0, (size_t)(QKVI_PANEL - n_cols) * sizeof *to);
    }
}

/*
 * Columns of B lie in order (or neither do): transpose, in squares that use whole cache lines on
 * both sides.
 */
static void pack_columns(int64_t n_rows, int n_cols, const float *restrict b, int64_t row_stride,
                         int64_t col_stride, float *restrict panel) {
    enum { SQUARE = 16 };
    for (int64_t c0 = 0; c0 < n_rows; c0 += SQUARE) {
        const int64_t c1 = qkvi_min_i64(c0 + SQUARE, n_rows);
        for (int j = 0; j < n_cols; j++)
            for (int64_t c = c0; c < c1; c++)
                panel[c * QKVI_PANEL + j] = b[c * row_stride + j * col_stride];
        for (int64_t c = c0; c < c1; c++)
            for (int j = n_cols; j < QKVI_PANEL; j++) panel[c * QKVI_PANEL + j] = 0.0f;
    }
}

void qkvi_gemm_pack_piece(int64_t k, int64_t n, const qkvi_gemm_piece *piece, float *packed) {
    for (int64_t j = 0; j < piece->n_j; j += QKVI_PANEL) {
        const int n_cols = (int)qkvi_min_i64(QKVI_PANEL, n - piece->j0 - j);
        const float *const b = piece->b + j * piece->col_stride;
        float *const panel = packed + (piece->j0 + j) * k + piece->c0 * QKVI_PANEL;
        if (piece->col_stride == 1)
            pack_rows(piece->n_c, n_cols, b, piece->row_stride, panel);
        else
            pack_columns(piece->n_c, n_cols, b, piece->row_stride, piece->col_stride, panel);
    }
}

static void pack_task(void *argument, int index) {
    const struct pack_job *job = argument;
    const int64_t j0 = index / job->n_k_steps * QKVI_PANEL,
                  c0 = index % job->n_k_steps * job->k_step;
    const qkvi_gemm_piece piece = { c0,
                                    qkvi_min_i64(job->k_step, job->k - c0),
                                    j0,
                                    qkvi_min_i64(QKVI_PANEL, job->n - j0),
                                    job->b + c0 * job->row_stride + j0 * job->col_stride,
                                    job->row_stride,
                                    job->col_stride };
    if (job->kernels && job->row_stride == 1) /* columns are keys: dense, and rows of a panel */
        job->kernels->rows->pack_keys[QKV_F32](piece.b, piece.col_stride, piece.n_j, piece.n_c,
                                               NULL, job->packed + j0 * job->k + c0 * QKVI_PANEL);
    else
        qkvi_gemm_pack_piece(job->k, job->n, &piece, job->packed);
}

void qkvi_gemm_pack_b(qkvi_pool *pool, const qkvi_kernels *kernels, int64_t k, int64_t n,
                      const float *b, int64_t row_stride, int64_t col_stride, float *packed) {
    if (k == 0 || n == 0) return;
    struct pack_job job = { kernels, k, n, row_stride, col_stride, k, 1, b, packed };
    const int64_t n_panels = qkvi_ceil_div(n, QKVI_PANEL);
    job.k_step = k > 4096 ? 4096 : k; /* 512 KiB of a panel */
    job.n_k_steps = qkvi_ceil_div(k, job.k_step);
    const int n_tasks = (int)(n_panels * job.n_k_steps);
    if (k * n < 1 << 15) pool = NULL; /* 128 KiB are copied sooner than a thread wakes */
    qkvi_pool_run(pool, n_tasks, pack_task, &job);
}

/* ---- The product ----------------------------------------------------------------------------- */

/* A job, and the blocks into which C is cut. */
struct product {
    qkvi_gemm_job job;
    int64_t block_rows, block_cols, n_col_blocks;
    int n_blocks;
    atomic_int next; /* of those that threads draw */
};

struct block {
    int64_t i0, i1, j0, j1;
};

/* A of a block, from some k on: rows of a tile, and where the next tile begins. */
struct left {
    const float *at;
    int64_t tile, row, col;
};

/* Rows of packed B, of a panel or of several that follow each other. */
struct rows {
    const float *at;
    int64_t n;
};

static const float *packed_at(const qkvi_gemm_job *job, int64_t c, int64_t j0) {
    return job->packed_b + j0 * job->k + c * QKVI_PANEL;
}

/* At most n rows of B from row c of the panel of column j0 on. */
static struct rows rows_of_panel(const qkvi_gemm_job *job, int64_t c, int64_t j0, int64_t n) {
    return (struct rows){ packed_at(job, c, j0), qkvi_min_i64(n, job->k - c) };
}

/*
 * n rows of B, which is read from end to end, but further on than row c of the panel; fewer at its
 * end. One tile meets the rows that it announces; of two tiles the first would meet those that the
 * second one has yet to announce, so theirs belong to the next chain.
 */
static struct rows rows_of_stream(const qkvi_gemm_job *job, const struct block *block, int64_t c,
                                  int64_t j0, int64_t n) {
    const bool one_tile = block->i1 - block->i0 <= job->kernels->mr;
    const int64_t row = c + (one_tile ? STREAM_ROWS : QKVI_GEMM_K_BLOCK);
    const int64_t left = qkvi_ceil_div(job->n - j0, QKVI_PANEL) * job->k - row;
    return left <= 0 ? (struct rows){ job->packed_b, 0 }
                     : (struct rows){ packed_at(job, row, j0), qkvi_min_i64(n, left) };
}

/* What is read after the last chain below k1 of the panel of column j0: n rows at most. */
static struct rows rows_after(const qkvi_gemm_job *job, const struct block *block, int64_t j0,
                              int64_t k0, int64_t k1, int64_t n) {
    if (j0 + QKVI_PANEL < block->j1) return rows_of_panel(job, k0, j0 + QKVI_PANEL, n);
    if (k1 < job->k) return rows_of_panel(job, k1, block->j0, n);
    if (block->j1 < job->n) return rows_of_panel(job, 0, block->j1, n);
    return block->i1 < job->m ? rows_of_panel(job, 0, 0, n) : (struct rows){ job->packed_b, 0 };
}

/* A panel's rows k0 … k0 + k_len - 1. Each tile announces its share of what is next. */
static void multiply_panel(const qkvi_gemm_job *job, const struct block *block, struct left a,
                           int64_t j0, int64_t k0, int64_t k_len, struct rows next) {
    const int n_cols = (int)qkvi_min_i64(QKVI_PANEL, job->n - j0), mr = job->kernels->mr;
    const float *panel = packed_at(job, k0, j0);
    const float *bias = job->bias && k0 + k_len == job->k ? job->bias + j0 : NULL;
    const int64_t share = qkvi_ceil_div(next.n, qkvi_ceil_div(block->i1 - block->i0, mr));
    for (int64_t i = block->i0; i < block->i1; i += mr) {
        const int n_rows = (int)qkvi_min_i64(mr, block->i1 - i);
        const int64_t n = qkvi_min_i64(share, next.n);
        job->kernels->gemm->tile(n_rows, n_cols, k_len, a.at, a.row, a.col, panel,
                                 job->c + i * job->c_row + j0, job->c_row,
                                 k0 > 0 || job->accumulate, bias, next.at, n);
        next.at += n * QKVI_PANEL, next.n -= n;
        a.at += a.tile;
    }
}

enum {
    COPIED_ROW = QKVI_GEMM_K_BLOCK + 16, /* floats, so that rows of a tile lie in different sets */
    COPY_ELEMS = ROWS_MOST * COPIED_ROW  /* ROWS_MOST is a multiple of each mr */
};

/* As it lies, or as it was copied: columns by tiles [k][mr], rows beside each other. */
static struct left left_of(const qkvi_gemm_job *job, const struct block *block, int64_t k0,
                           const float *copy) {
    const int mr = job->kernels->mr;
    if (copy && job->a_col == 1) return (struct left){ copy, mr * COPIED_ROW, COPIED_ROW, 1 };
    if (copy) return (struct left){ copy, mr * QKVI_GEMM_K_BLOCK, 1, mr };
    return (struct left){ job->a + block->i0 * job->a_row + k0 * job->a_col, mr * job->a_row,
                          job->a_row, job->a_col };
}

/*
 * Columns j0 … of a block, for the chains of k from k0 on and below k1; once even if there are
 * none.
 */
static void multiply_chains(const qkvi_gemm_job *job, const struct block *block, int64_t j0,
                            int64_t k0, int64_t k1, bool stream, const float *copy) {
    const int64_t begin = k0;
    do {
        const int64_t k_len = qkvi_min_i64(QKVI_GEMM_K_BLOCK, k1 - k0), end = k0 + k_len;
        const struct rows next = stream     ? rows_of_stream(job, block, k0, j0, k_len)
                                 : end < k1 ? rows_of_panel(job, end, j0, k_len)
                                            : rows_after(job, block, j0, begin, k1, k_len);
        multiply_panel(job, block, left_of(job, block, k0, copy), j0, k0, k_len, next);
        k0 = end;
    } while (k0 < k1);
}

/* What follows the product, while the block is in the second-level cache. */
static void map_block(const qkvi_gemm_job *job, const struct block *block) {
    for (int64_t i = block->i0; i < block->i1; i++) {
        const int64_t at = i * job->c_row + block->j0;
        job->map(block->j1 - block->j0, job->c + at, job->mapped + at);
    }
}

/* n rows of A, of one k, to tiles: tile[k][mr]. Sizes spelt out become a few moves. */
static void copy_row(int64_t n, int mr, const float *a, float *tile) {
    for (; n >= mr; n -= mr, a += mr, tile += mr * QKVI_GEMM_K_BLOCK)
        memcpy(tile, a, (size_t)mr * sizeof *a);
    memcpy(tile, a, (size_t)n * sizeof *a);
}

static void copy_rows(const qkvi_gemm_job *job, const struct block *block, int64_t k0,
                      int64_t k_len, float *copy) {
    const float *a = job->a + block->i0 * job->a_row + k0;
    for (int64_t i = block->i0; i < block->i1; i++, a += job->a_row, copy += COPIED_ROW)
        memcpy(copy, a, (size_t)k_len * sizeof *a);
}

/* A row of all tiles at once, which is all that is read of a page. */
static void copy_columns(const qkvi_gemm_job *job, const struct block *block, int64_t k0,
                         int64_t k_len, float *copy) {
    const int64_t n = block->i1 - block->i0;
    const float *a = job->a + block->i0 + k0 * job->a_col;
    const int mr = job->kernels->mr;
    for (int64_t c = 0; c < k_len; c++, a += job->a_col) {
        if (c + COPIED_AHEAD < k_len) qkvi_fetch_rows(a + COPIED_AHEAD * job->a_col, 0, 1, n);
        float *const to = copy + c * mr;
        if (mr == 12)
            copy_row(n, 12, a, to);
        else if (mr == 6)
            copy_row(n, 6, a, to);
        else
            copy_row(n, mr, a, to);
    }
}

/* A of a block for one chain. */
static void copy_left(const qkvi_gemm_job *job, const struct block *block, int64_t k0,
                      float *copy) {
    const int64_t k_len = qkvi_min_i64(QKVI_GEMM_K_BLOCK, job->k - k0);
    if (job->a_col == 1)
        copy_rows(job, block, k0, k_len, copy);
    else
        copy_columns(job, block, k0, k_len, copy);
}

static bool is_stream(int64_t n_rows, const qkvi_kernels *kernels) {
    return n_rows <= TILES_STREAMED * kernels->mr;
}

/* copy: room for A of a block and a chain; NULL: A is read where it lies. */
static void multiply_block(const struct product *product, int index, float *copy) {
    const qkvi_gemm_job *const job = &product->job;
    const int64_t i0 = index / product->n_col_blocks * product->block_rows;
    const int64_t j0 = index % product->n_col_blocks * product->block_cols;
    const struct block block = { i0, qkvi_min_i64(i0 + product->block_rows, job->m), j0,
                                 qkvi_min_i64(j0 + product->block_cols, job->n) };
    const bool stream = !copy && is_stream(block.i1 - block.i0, job->kernels);
    const int64_t k_step = copy ? QKVI_GEMM_K_BLOCK : stream ? job->k : K_STEP;
    int64_t k0 = 0;
    do { /* once even if k = 0: C becomes zeros */
        const int64_t k1 = qkvi_min_i64(k0 + k_step, job->k);
        if (copy) copy_left(job, &block, k0, copy);
        for (int64_t j = block.j0; j < block.j1; j += QKVI_PANEL)
            multiply_chains(job, &block, j, k0, k1, stream, copy);
        k0 = k1;
    } while (k0 < job->k);
    if (job->map) map_block(job, &block);
}

static void block_task(void *argument, int index) { multiply_block(argument, index, NULL); }

/* One for each thread, with space of its own. */
static void copying_task(void *argument, int slot) {
    struct product *const product = argument;
    float *const copy = product->job.space + (int64_t)slot * COPY_ELEMS;
    int index;
    while ((index = atomic_fetch_add(&product->next, 1)) < product->n_blocks)
        multiply_block(product, index, copy);
}

int64_t qkvi_gemm_panels(int64_t n_panels, int64_t n_row_blocks, int64_t n_blocks, int n_threads) {
    const int64_t wanted = qkvi_ceil_div(n_panels, n_blocks);
    int64_t best = wanted, least = INT64_MAX; /* panels of the busiest thread */
    if (n_row_blocks > 1 || n_blocks == 1) return wanted;
    for (int64_t size = wanted + 1; size > 0 && size >= wanted - PANELS_TRIED; size--) {
        const int64_t n = qkvi_ceil_div(qkvi_ceil_div(n_panels, size), n_threads) * size;
        if (n < least) best = size, least = n;
    }
    return best;
}

/* Blocks that suit the cache; fewer columns in each if those are too few for the threads. */
static void choose_blocks(struct product *product, int n_threads) {
    const qkvi_gemm_job *const job = &product->job;
    const int64_t n_panels = qkvi_ceil_div(job->n, QKVI_PANEL), mr = job->kernels->mr;
    const int64_t rows = qkvi_max_i64(job->m, WAIT_ROWS);
    const int64_t work = rows * job->n * job->k / WORTH_A_TASK;
    const int64_t n_wanted = n_threads == 1 ? 1 : qkvi_min_i64(n_threads * TASKS_PER_THREAD, work);
    const int64_t n_row_blocks = qkvi_ceil_div(job->m, ROWS_MOST);
    int64_t n_col_blocks = qkvi_ceil_div(n_panels, PANELS_MOST);
    if (n_row_blocks * n_col_blocks < n_wanted)
        n_col_blocks = qkvi_min_i64(n_panels, qkvi_ceil_div(n_wanted, n_row_blocks));
    product->block_rows = qkvi_ceil_div(qkvi_ceil_div(job->m, n_row_blocks), mr) * mr;
    product->block_cols =
        qkvi_gemm_panels(n_panels, n_row_blocks, n_col_blocks, n_threads) * QKVI_PANEL;
    product->n_col_blocks = qkvi_ceil_div(job->n, product->block_cols);
    product->n_blocks = (int)(qkvi_ceil_div(job->m, product->block_rows) * product->n_col_blocks);
}

/* Floats from a row of A to the next where all of them are copied: not again a row to a set. */
static int64_t whole_row(int64_t k) {
    return k + (qkvi_rows_meet(k + 16, sizeof(float)) ? 32 : 16);
}

/* A few rows that are read from end to end for each panel, all at once. */
static void copy_whole(qkvi_gemm_job *job) {
    const int64_t to_row = whole_row(job->k);
    for (int64_t i = 0; i < job->m; i++)
        memcpy(job->space + i * to_row, job->a + i * job->a_row, (size_t)job->k * sizeof *job->a);
    job->a = job->space, job->a_row = to_row;
}

size_t qkvi_gemm_copy_elems(const qkvi_pool *pool, const qkvi_gemm_job *job, int l1_ways) {
    const bool stream = is_stream(job->m, job->kernels);
    const size_t of_blocks = (size_t)qkvi_pool_threads(pool) * COPY_ELEMS;
    if (job->a_col != 1) return stream ? 0 : of_blocks;
    const bool few_ways = l1_ways > 0 && l1_ways <= FEW_WAYS;
    const bool meet = qkvi_rows_meet(job->a_row, sizeof *job->a);
    if (!few_ways || !meet || job->m <= 1) return 0;
    return stream ? (size_t)(job->m * whole_row(job->k)) : of_blocks;
}

void qkvi_gemm(qkvi_pool *pool, const qkvi_gemm_job *job) {
    const int n_threads = qkvi_pool_threads(pool);
    if (job->m == 0 || job->n == 0) return;
    struct product product = { .job = *job };
    choose_blocks(&product, n_threads);
    if (is_stream(job->m, job->kernels)) {
        if (job->space && job->a_col == 1) copy_whole(&product.job);
        qkvi_pool_run_ranges(pool, product.n_blocks, block_task, &product);
    } else if (job->space) {
        const int64_t n_slots = qkvi_min_i64(n_threads, product.n_blocks);
        qkvi_pool_run(pool, (int)n_slots, copying_task, &product);
    } else {
        qkvi_pool_run(pool, product.n_blocks, block_task, &product);
    }
}
