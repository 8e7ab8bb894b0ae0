/*
 * Right factors of products in bf16, rounded and packed: see gemm_bf16.h. Both ways that a matrix
 * can lie are read in order and go through a few KiB of bf16 in the first-level cache.
 */
#include <assert.h>
#include <string.h>

#include "core/ints.h"
#include "kernels/gemm_bf16.h"
#include "kernels/table.h"

enum {
    PACK_ROWS = 16,  /* of B rounded at once, where they are dense, */
    PACK_PANELS = 4, /* of so many panels: 4 KiB of bf16; */
    PACK_DEPTH = 64  /* of columns, where those are: 4 KiB */
};

size_t qkvi_bf16_packed_words(int64_t k, int64_t n) {
    if (k < 0 || k > INT64_MAX - QKVI_BF16_STEP) return SIZE_MAX;
    return qkvi_gemm_packed_elems(qkvi_round_up(k, QKVI_BF16_STEP) / 2, n);
}

typedef struct pack_job {
    const qkvi_kernels *kernels;
    int64_t k, n, row_stride, col_stride;
    const float *b;
    uint32_t *packed;
} pack_job;

/* A piece whose rows are dense, of some panels that are depth / 2 rows apart. */
static void pack_rows(const qkvi_kernels *kernels, const qkvi_gemm_piece *p, int64_t depth,
                      uint32_t *panel) {
    _Alignas(64) uint16_t half[PACK_ROWS * PACK_PANELS * QKVI_PANEL];
    for (int64_t c = 0; c < p->n_c; c += PACK_ROWS) {
        const int64_t n = qkvi_min_i64(PACK_ROWS, p->n_c - c);
        const float *const b = p->b + c * p->row_stride;
        qkvi_fetch_rows(b + n * p->row_stride, p->row_stride,
                        qkvi_min_i64(PACK_ROWS, p->n_c - c - n), p->n_j);
        kernels->rows->store[QKV_BF16](b, p->row_stride, n, p->n_j, 1, half,
                                       PACK_PANELS * QKVI_PANEL);
        kernels->rows->pack_channel_pairs(half, PACK_PANELS * QKVI_PANEL, n, p->n_j, depth, NULL,
                                          panel + c / 2 * QKVI_PANEL);
    }
}

/* One panel of a piece whose columns are dense. */
static void pack_columns(const qkvi_kernels *kernels, const qkvi_gemm_piece *p, uint32_t *panel) {
    _Alignas(64) uint16_t half[QKVI_PANEL * PACK_DEPTH];
    for (int64_t c = 0; c < p->n_c; c += PACK_DEPTH) {
        const int64_t n = qkvi_min_i64(PACK_DEPTH, p->n_c - c);
        const float *const b = p->b + c;
        qkvi_fetch_rows(b + n, p->col_stride, p->n_j, qkvi_min_i64(PACK_DEPTH, p->n_c - c - n));
        kernels->rows->store[QKV_BF16](b, p->col_stride, p->n_j, n, 1, half, PACK_DEPTH);
        kernels->rows->pack_key_pairs(half, PACK_DEPTH, p->n_j, n, qkvi_ceil_div(n, 2), NULL,
                                      panel + c / 2 * QKVI_PANEL);
    }
}

/* Columns j … j + n - 1 of a piece. */
static qkvi_gemm_piece columns_of(const qkvi_gemm_piece *p, int64_t j, int64_t n) {
    return (qkvi_gemm_piece){ .c0 = p->c0,
                              .n_c = p->n_c,
                              .j0 = p->j0 + j,
                              .n_j = qkvi_min_i64(n, p->n_j - j),
                              .b = p->b + j * p->col_stride,
                              .row_stride = p->row_stride,
                              .col_stride = p->col_stride };
}

void qkvi_bf16_pack_piece(const qkvi_kernels *kernels, int64_t k, const qkvi_gemm_piece *piece,
                          uint32_t *packed) {
    enum { SOME = PACK_PANELS * QKVI_PANEL };
    const int64_t depth = qkvi_round_up(k, QKVI_BF16_STEP), filled = qkvi_ceil_div(piece->n_c, 2);
    const size_t zeros =
        (size_t)((qkvi_round_up(piece->n_c, QKVI_BF16_STEP) / 2 - filled) * QKVI_PANEL);
    uint32_t *const first = packed + piece->j0 * (depth / 2) + piece->c0 / 2 * QKVI_PANEL;
    assert(piece->row_stride == 1 || piece->col_stride == 1);
    for (int64_t j = 0; piece->col_stride == 1 && j < piece->n_j; j += SOME) {
        const qkvi_gemm_piece some = columns_of(piece, j, SOME);
        pack_rows(kernels, &some, depth, first + j * (depth / 2));
    }
    for (int64_t j = 0; j < piece->n_j; j += QKVI_PANEL) {
        const qkvi_gemm_piece one = columns_of(piece, j, QKVI_PANEL);
        uint32_t *const panel = first + j * (depth / 2);
        if (piece->col_stride != 1) pack_columns(kernels, &one, panel);
        memset(panel + filled * QKVI_PANEL, 0, zeros * sizeof *panel);
    }
}

static void pack_panels(void *argument, int index) {
    const pack_job *j = argument;
    const qkvi_gemm_piece all = { 0, j->k, 0, j->n, j->b, j->row_stride, j->col_stride };
    const qkvi_gemm_piece piece =
        columns_of(&all, (int64_t)index * PACK_PANELS * QKVI_PANEL, PACK_PANELS * QKVI_PANEL);
    qkvi_bf16_pack_piece(j->kernels, j->k, &piece, j->packed);
}

void qkvi_bf16_pack_b(qkvi_pool *pool, int64_t k, int64_t n, const float *b, int64_t row_stride,
                      int64_t col_stride, uint32_t *packed) {
    qkvi_bf16_pack_b_by(qkvi_kernels_best(), pool, k, n, b, row_stride, col_stride, packed);
}

void qkvi_bf16_pack_b_by(const qkvi_kernels *kernels, qkvi_pool *pool, int64_t k, int64_t n,
                         const float *b, int64_t row_stride, int64_t col_stride, uint32_t *packed) {
    pack_job j = { kernels, k, n, row_stride, col_stride, b, packed };
    assert(row_stride == 1 || col_stride == 1);
    qkvi_pool_run(pool, (int)qkvi_ceil_div(n, PACK_PANELS * QKVI_PANEL), pack_panels, &j);
}
