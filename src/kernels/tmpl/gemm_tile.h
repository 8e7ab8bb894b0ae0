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

/*
 * Memory that will be needed soon, fetched into L2 a few bytes per step of a product, by one or two
 * lines at a step. step 0: nothing.
 */
typedef struct tile_ahead {
    const char *at;
    int64_t step; /* bytes */
} tile_ahead;

/*
 * c += A B, n deep, for R rows and V_NV vectors of columns. Element (row i, depth k) of A is a[i *
 * a_row + k * a_col]; row k of B is b[32 * k ...]. Every third row has a pointer of its own, so
 * that x86 reaches the other two with an index register and twelve rows take four pointers. They
 * are looked up: of a choice by i < 6 clang makes a second end of a loop of seven rows, which it
 * then unrolls too late to keep c in registers.
 */
V_INLINE void tile_product_ahead(const int R, int64_t n, const float *a, int64_t a_row,
                                 int64_t a_col, const float *b, vf c[V_MR][V_NV], const int fetch,
                                 tile_ahead ahead) {
    const float *a0 = a, *a3 = a + 3 * a_row, *a6 = a + 6 * a_row, *a9 = a + 9 * a_row;
    V_UNROLL_BY(2) for (int64_t k = 0; k < n; k++) {
        const float *const third[4] = { a0, a3, a6, a9 };
        vf row[V_NV];
        V_UNROLL(2) for (int v = 0; v < V_NV; v++) row[v] = vf_load(b + 16 * v);
        if (fetch > 1) v_prefetch(ahead.at + 64);
        if (fetch > 0) v_prefetch(ahead.at), ahead.at += ahead.step;
        V_UNROLL(12) for (int i = 0; i < R; i++) {
            const vf x = vf_set1(third[i / 3][i % 3 * a_row]);
            V_UNROLL(2) for (int v = 0; v < V_NV; v++) c[i][v] = vf_fma(x, row[v], c[i][v]);
        }
        a0 += a_col, a3 += a_col, a6 += a_col, a9 += a_col, b += 32;
    }
}

V_INLINE void tile_product(const int R, int64_t n, const float *a, int64_t a_row, int64_t a_col,
                           const float *b, vf c[V_MR][V_NV]) {
    tile_product_ahead(R, n, a, a_row, a_col, b, c, 0, (tile_ahead){ NULL, 0 });
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

V_INLINE void tile_rows(const int R, int n_cols, int64_t k, const float *a, int64_t a_row,
                        int64_t a_col, const float *b, float *c, int64_t c_row, int add,
                        const float *bias, tile_ahead ahead) {
    V_UNROLL(12) for (int i = 0; i < R; i++) {
        v_prefetch(c + i * c_row);
        v_prefetch(c + i * c_row + 16);
    }
    for (int j = 0; j < n_cols; j += 16 * V_NV) {
        vf x[V_MR][V_NV];
        tile_zero(x);
        tile_product_ahead(R, k, a, a_row, a_col, b + j, x, 2, ahead);
        V_UNROLL(12) for (int i = 0; i < R; i++) {
            V_UNROLL(2)
            for (int v = 0; v < V_NV; v++)
                tile_store(n_cols - j - 16 * v, x[i][v], c + i * c_row + j + 16 * v, add);
        }
    }
    if (bias) tile_add_bias(R, n_cols, bias, c, c_row);
}

static void gemm_tile(int n_rows, int n_cols, int64_t k, const float *a, int64_t a_row,
                      int64_t a_col, const float *b, float *c, int64_t c_row, int add,
                      const float *bias, const void *ahead, int64_t ahead_step) {
    const tile_ahead fetch = { ahead, ahead_step };
    switch (n_rows) {
#define TILE_CASE(R)                                                                               \
    case R: tile_rows(R, n_cols, k, a, a_row, a_col, b, c, c_row, add, bias, fetch); return;
        TILE_EACH(TILE_CASE)
#undef TILE_CASE
    default: return;
    }
}

#endif
