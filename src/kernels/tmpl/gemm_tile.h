/*
 * The matrix kernel: C[rows][32] (+)= A[rows][k] B[k][32], B a packed panel.
 *
 * Every element of the product is one fmaf chain from 0 in the order of k, whatever the tile: so
 * tiles may differ between instruction sets and the bits do not. A is only ever broadcast, so it
 * may lie by rows or by columns.
 */
#ifndef QKVI_TMPL_GEMM_TILE_H
#define QKVI_TMPL_GEMM_TILE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/ahead.h"

/* X(R) for every number of rows that a tile may have. */
#if V_MR == 12
#define TILE_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#else
#define TILE_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif

/*
 * All rows, or compilers fear for those that a smaller tile does not use; they cost nothing there.
 */
V_INLINE void tile_zero(vf c[V_MR][V_NV]) {
    V_UNROLL(12) for (int i = 0; i < V_MR; i++) {
        V_UNROLL(2) for (int v = 0; v < V_NV; v++) c[i][v] = vf_set1(0.0f);
    }
}

/* Four of R rows; the others are reached from them, see tile_product. */
typedef struct tile_third {
    const float *at[4];
} tile_third;

V_INLINE tile_third tile_thirds(const float *a, int64_t a_row) {
    return (tile_third){ { a, a + 3 * a_row, a + 6 * a_row, a + 9 * a_row } };
}

/* c += A B of one k. */
V_INLINE void tile_step(const int R, const tile_third *a, int64_t a_row, const float *b,
                        vf c[V_MR][V_NV]) {
    vf row[V_NV];
    V_UNROLL(2) for (int v = 0; v < V_NV; v++) row[v] = vf_load(b + 16 * v);
    V_UNROLL(12) for (int i = 0; i < R; i++) {
        const vf x = vf_set1(a->at[i / 3][i % 3 * a_row]);
        V_UNROLL(2) for (int v = 0; v < V_NV; v++) c[i][v] = vf_fma(x, row[v], c[i][v]);
    }
}

/* On to the next k. */
V_INLINE void tile_next(tile_third *a, int64_t a_col, const float **b) {
    V_UNROLL(4) for (int n = 0; n < 4; n++) a->at[n] += a_col;
    *b += 32;
}

/*
 * c += A B, n deep, for R rows and V_NV vectors of columns. Element (row i, depth k) of A is a[i *
 * a_row + k * a_col]; row k of B is b[32 * k ...]. Every third row has a pointer of its own, so
 * that x86 reaches the other two with an index register and twelve rows take four pointers. They
 * are looked up: of a choice by i < 6 clang makes a second end of a loop of seven rows, which it
 * then unrolls too late to keep c in registers.
 */
V_INLINE void tile_product(const int R, int64_t n, const float *a, int64_t a_row, int64_t a_col,
                           const float *b, vf c[V_MR][V_NV]) {
#ifdef V_TILE
    V_TILE(R, n, a, a_row, a_col, b, c);
#else
    tile_third rows = tile_thirds(a, a_row);
    V_UNROLL_BY(2) for (int64_t k = 0; k < n; k++) {
        tile_step(R, &rows, a_row, b, c);
        tile_next(&rows, a_col, &b);
    }
#endif
}

/*
 * The same, and announces lines of one stretch meanwhile, each with those beside it: `wide`. All is
 * in one loop: steps of two in a loop of their own would have no register left for what is loaded.
 */
V_INLINE void tile_product_ahead(const int R, int64_t n, const float *a, int64_t a_row,
                                 int64_t a_col, const float *b, vf c[V_MR][V_NV], const int wide,
                                 qkvi_ahead *ahead) {
#ifdef V_SILENT
    (void)wide, (void)ahead;
    tile_product(R, n, a, a_row, a_col, b, c);
#else
    tile_third rows = tile_thirds(a, a_row);
    const char *at = ahead->at;
    int64_t left = ahead->left, next = left > 0 ? 0 : n;
    const int64_t step = ahead->step, every = ahead->every;
    V_UNROLL_BRANCHED(2) for (int64_t k = 0; k < n; k++) {
        if (k == next) {
            V_UNROLL(2) for (int v = 0; v < wide; v++) v_prefetch(at + QKVI_LINE * v);
            at += step;
            next = --left > 0 ? k + every : n;
        }
        tile_step(R, &rows, a_row, b, c);
        tile_next(&rows, a_col, &b);
    }
    ahead->at = at;
    ahead->left = left;
    qkvi_ahead_turn(ahead);
#endif
}

/*
 * The vectors of a row are the first and the last. Of a loop over them clang makes a memcpy, and
 * then keeps c in memory from the first product on.
 */
V_INLINE void tile_store_row(const vf c[V_NV], float *s) {
    vf_store(s, c[0]);
    vf_store(s + 16 * (V_NV - 1), c[V_NV - 1]);
}

V_INLINE void tile_store(int n_cols, vf x, float *c, int add) {
    if (n_cols >= 16)
        vf_storeu(c, add ? vf_add(vf_loadu(c), x) : x);
    else if (n_cols > 0)
        vf_store_n(c, add ? vf_add(vf_load_n(c, n_cols), x) : x, n_cols);
}

/* C += bias, which comes after what was there: once the sums have left their registers. */
V_INLINE void tile_add_bias(const int R, int n_cols, const float *bias, float *c, int64_t c_row) {
    for (int j = 0; j < n_cols; j += 16) {
        const int left = n_cols - j;
        const vf x = left >= 16 ? vf_loadu(bias + j) : vf_load_n(bias + j, left);
        for (int i = 0; i < R; i++) tile_store(left, x, c + i * c_row + j, 1);
    }
}

V_INLINE void tile_put(const int R, int n_cols, vf x[V_MR][V_NV], float *c, int64_t c_row,
                       int add) {
    V_UNROLL(12) for (int i = 0; i < R; i++) {
        V_UNROLL(2)
        for (int v = 0; v < V_NV; v++)
            tile_store(n_cols - 16 * v, x[i][v], c + i * c_row + 16 * v, add);
    }
}

/*
 * The product where as much is ahead as is read, so that each step announces a row of it. n_passes:
 * over the columns, at once; c: of each.
 */
V_INLINE void tile_product_stream(const int R, const int n_passes, int64_t n, const float *a,
                                  int64_t a_row, int64_t a_col, const float *b, vf c[][V_MR][V_NV],
                                  const float *ahead) {
#ifdef V_TILE
    (void)ahead;
    for (int p = 0; p < n_passes; p++) tile_product(R, n, a, a_row, a_col, b + 16 * V_NV * p, c[p]);
#else
    tile_third rows = tile_thirds(a, a_row);
    V_UNROLL_BY(2) for (int64_t k = 0; k < n; k++, ahead += 32) {
        v_prefetch(ahead + 16); /* first: 0.97 of the time the other way round, from memory */
        v_prefetch(ahead);
        V_UNROLL(2)
        for (int p = 0; p < n_passes; p++) tile_step(R, &rows, a_row, b + 16 * V_NV * p, c[p]);
        tile_next(&rows, a_col, &b);
    }
#endif
}

/* All columns in one pass, so that rows of B are read whole: registers suffice for half a tile. */
V_INLINE void tile_rows_at_once(const int R, int n_cols, int64_t k, const float *a, int64_t a_row,
                                int64_t a_col, const float *b, float *c, int64_t c_row, int add,
                                const float *ahead) {
    enum { PASSES = 2 / V_NV };
    vf x[PASSES][V_MR][V_NV];
    V_UNROLL(2) for (int p = 0; p < PASSES; p++) tile_zero(x[p]);
    tile_product_stream(R, PASSES, k, a, a_row, a_col, b, x, ahead);
    V_UNROLL(2)
    for (int p = 0; p < PASSES; p++)
        tile_put(R, n_cols - 16 * V_NV * p, x[p], c + 16 * V_NV * p, c_row, add);
}

/*
 * Each pass over the panel announces what the same pass will read of the rows ahead; of a stream
 * both announce all. Where memory is the limit a processor drops prefetches: six rows from memory
 * took 1.1 times as long without the second time.
 */
V_INLINE void tile_rows(const int R, int n_cols, int64_t k, const float *a, int64_t a_row,
                        int64_t a_col, const float *b, float *c, int64_t c_row, int add,
                        const float *bias, const float *ahead, int64_t ahead_rows) {
    const bool stream = ahead_rows == k && k > 0;
    if (n_cols == 32) { /* rows of fewer columns may share lines */
        V_UNROLL(12) for (int i = 0; i < R; i++) {
            v_prefetch(c + i * c_row);
            v_prefetch(c + i * c_row + 16);
        }
    }
    if (R <= V_MR / 3 && stream) {
        tile_rows_at_once(R, n_cols, k, a, a_row, a_col, b, c, c_row, add, ahead);
        if (bias) tile_add_bias(R, n_cols, bias, c, c_row);
        return;
    }
    for (int j = 0; j < n_cols; j += 16 * V_NV) {
        vf x[1][V_MR][V_NV];
        tile_zero(x[0]);
        if (stream) {
            tile_product_stream(R, 1, k, a, a_row, a_col, b + j, x, ahead);
        } else {
            qkvi_ahead rows = { .at = (const char *)(ahead + j),
                                .left = ahead_rows,
                                .step = 32 * sizeof *ahead };
            qkvi_ahead_spread(&rows, ahead_rows, k);
            tile_product_ahead(R, k, a, a_row, a_col, b + j, x[0], V_NV, &rows);
        }
        tile_put(R, n_cols - j, x[0], c + j, c_row, add);
    }
    if (bias) tile_add_bias(R, n_cols, bias, c, c_row);
}

static void gemm_tile(int n_rows, int n_cols, int64_t k, const float *a, int64_t a_row,
                      int64_t a_col, const float *b, float *c, int64_t c_row, int add,
                      const float *bias, const float *ahead, int64_t ahead_rows) {
    switch (n_rows) {
#define TILE_CASE(R)                                                                               \
    case R:                                                                                        \
        tile_rows(R, n_cols, k, a, a_row, a_col, b, c, c_row, add, bias, ahead, ahead_rows);       \
        return;
        TILE_EACH(TILE_CASE)
#undef TILE_CASE
    default: return;
    }
}

#endif
