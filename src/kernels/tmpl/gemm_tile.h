/*
 * The matrix kernel: C[rows][32] (+)= A[rows][k] B[k][32], B a packed panel.
 *
 * Every element of the product is one fmaf chain from 0 in the order of k, whatever the tile: so tiles may differ between
 * instruction sets and the bits do not. A is only ever broadcast, so it may lie by rows or by columns.
 */
#ifndef QKVI_TMPL_GEMM_TILE_H
#define QKVI_TMPL_GEMM_TILE_H

/* R rows x V_NV vectors of columns: all of B's row in registers, one element of A broadcast at a time. */
V_INLINE void tile_product(int R, int64_t k, const float *restrict a, int64_t a_row, int64_t a_col,
                           const float *restrict b, vf acc[V_MR][V_NV]) {
    _Pragma("GCC unroll 12") for (int i = 0; i < R; i++)
        _Pragma("GCC unroll 2") for (int v = 0; v < V_NV; v++) acc[i][v] = vf_set1(0.0f);
    for (int64_t c = 0; c < k; c++) {
        vf row[V_NV];
        _Pragma("GCC unroll 2") for (int v = 0; v < V_NV; v++) row[v] =
            vf_load(b + 32 * c + 16 * v);
        _Pragma("GCC unroll 12") for (int i = 0; i < R; i++) {
            const vf x = vf_set1(a[i * a_row + c * a_col]);
            _Pragma("GCC unroll 2") for (int v = 0; v < V_NV; v++) acc[i][v] =
                vf_fma(x, row[v], acc[i][v]);
        }
    }
}

V_INLINE void tile_rows(int R, int n_cols, int64_t k, const float *restrict a, int64_t a_row,
                        int64_t a_col, const float *restrict b, float *restrict c, int64_t c_row,
                        int add) {
    for (int j = 0; j < n_cols; j += 16 * V_NV) {
        vf acc[V_MR][V_NV];
        tile_product(R, k, a, a_row, a_col, b + j, acc);
        _Pragma("GCC unroll 12") for (int i = 0; i < R; i++)
            _Pragma("GCC unroll 2") for (int v = 0; v < V_NV; v++) {
            const int at = j + 16 * v, left = n_cols - at;
            float *out = c + i * c_row + at;
            if (left >= 16)
                vf_storeu(out, add ? vf_add(vf_loadu(out), acc[i][v]) : acc[i][v]);
            else if (left > 0)
                vf_store_n(out, add ? vf_add(vf_load_n(out, left), acc[i][v]) : acc[i][v], left);
        }
    }
}

static void gemm_tile(int n_rows, int n_cols, int64_t k, const float *a, int64_t a_row,
                      int64_t a_col, const float *b, float *c, int64_t c_row, int add) {
    switch (n_rows) {
#define TILE_CASE(R)                                                                               \
    case R: tile_rows(R, n_cols, k, a, a_row, a_col, b, c, c_row, add); return
        TILE_CASE(1);
        TILE_CASE(2);
        TILE_CASE(3);
        TILE_CASE(4);
        TILE_CASE(5);
        TILE_CASE(6);
#if V_MR > 6
        TILE_CASE(7);
        TILE_CASE(8);
        TILE_CASE(9);
        TILE_CASE(10);
        TILE_CASE(11);
        TILE_CASE(12);
#endif
#undef TILE_CASE
    default: return;
    }
}

#endif
