/* Rounding to 8-bit integers, and the tile of their products: kernels/int8.h. */
#ifndef QKVI_TMPL_INT8_H
#define QKVI_TMPL_INT8_H

#include <math.h>
#include <string.h>

#include "kernels/int8.h"
#include "kernels/tmpl/gemm_tile.h"
#include "kernels/tmpl/vmath.h"

/* ---- Rounding -------------------------------------------------------------------------------- */

enum { INT8_VECTORS = QKVI_INT8_GROUP / 16 };

/* The greatest |x|, or NaN if one of them is not finite. */
V_INLINE float int8_greatest(const vf x[INT8_VECTORS]) {
    float lanes[16], greatest = 0;
    uint32_t odd = 0;
    vf top = vf_set1(0.0f);
    V_UNROLL(4) for (int v = 0; v < INT8_VECTORS; v++) {
        odd |= vm_to_bits(vm_nlt(vf_abs(x[v]), vf_set1(INFINITY)));
        top = vf_max(vf_abs(x[v]), top);
    }
    vf_storeu(lanes, top);
    for (int e = 0; e < 16; e++) greatest = lanes[e] > greatest ? lanes[e] : greatest;
    return odd ? NAN : greatest;
}

V_INLINE void int8_round_group(const vf x[INT8_VECTORS], qkvi_int8_group *y) {
    const float greatest = int8_greatest(x);
    float lanes[16];
    int32_t sum = 0;
    memset(y, 0, sizeof *y);
    if (!(greatest >= QKVI_INT8_LEAST)) {
        y->scale = greatest >= 0 ? 0 : greatest;
        return;
    }
    const vf inverse = vf_set1(127.0f / greatest);
    vi total = vi_set1(0);
    V_UNROLL(4) for (int v = 0; v < INT8_VECTORS; v++) {
        const vf moved = vf_add(vf_mul(x[v], inverse), vf_set1(QKVI_INT8_MAGIC));
        const vi q = vi_sub(vf_as_vi(moved), vf_as_vi(vf_set1(QKVI_INT8_MAGIC)));
        vi_storeu_i8(y->q + 16 * v, q);
        total = vi_add(total, q);
    }
    vf_storeu(lanes, vi_as_vf(total));
    for (int e = 0; e < 16; e++) {
        int32_t lane;
        memcpy(&lane, &lanes[e], sizeof lane);
        sum += lane;
    }
    y->scale = greatest / 127.0f;
    y->start = -128 * sum;
}

/* table.h */
static void int8_round(int64_t n_rows, int64_t n, const float *x, int64_t x_row, qkvi_int8_group *y,
                       int64_t y_row) {
    for (int64_t i = 0; i < n_rows; i++)
        for (int64_t c = 0; c < n; c += QKVI_INT8_GROUP) {
            vf v[INT8_VECTORS];
            for (int e = 0; e < INT8_VECTORS; e++) {
                const int64_t left = n - c - 16 * e;
                const float *const from = x + i * x_row + c + 16 * e;
                v[e] = left >= 16 ? vf_loadu(from)
                       : left > 0 ? vf_load_n(from, (int)left)
                                  : vf_set1(0.0f);
            }
            int8_round_group(v, y + i * y_row + c / QKVI_INT8_GROUP);
        }
}

/* ---- The tile -------------------------------------------------------------------------------- */

V_INLINE vi int8_quad(const int8_t *q) {
    int32_t quad;
    memcpy(&quad, q, sizeof quad);
    return vi_set1(quad);
}

/*
 * Sums of a group, for R rows and V_NV vectors of columns from column j on: s. ahead: a group whose
 * same columns are announced, or NULL.
 */
V_INLINE void int8_sums(const int R, const qkvi_int8_group *a, int64_t a_row,
                        const qkvi_int8_panel *b, int j, vi s[V_MR][V_NV],
                        const qkvi_int8_panel *ahead) {
    V_UNROLL(12) for (int i = 0; i < R; i++) {
        V_UNROLL(2) for (int v = 0; v < V_NV; v++) s[i][v] = vi_set1(a[i * a_row].start);
    }
    const qkvi_int8_group *const third[4] = { a, a + 3 * a_row, a + 6 * a_row, a + 9 * a_row };
    V_UNROLL_BY(2) for (int k = 0; k < QKVI_INT8_GROUP; k += 4) {
        vi row[V_NV];
        V_UNROLL(2)
        for (int v = 0; v < V_NV; v++)
            row[v] = vf_as_vi(vf_load((const float *)b->q[k / 4][j + 16 * v]));
        if (ahead) {
            V_UNROLL(2)
            for (int v = 0; v < V_NV; v++) v_prefetch(ahead->q[k / 4][j + 16 * v]);
        }
        V_UNROLL(12) for (int i = 0; i < R; i++) {
            const vi x = int8_quad(third[i / 3][i % 3 * a_row].q + k);
            V_UNROLL(2) for (int v = 0; v < V_NV; v++) s[i][v] = v_dot4(s[i][v], row[v], x);
        }
    }
}

/*
 * The sums in floats do not fit into registers beside those of a group: c, in the first-level
 * cache.
 */
V_INLINE void int8_rows(const int R, int64_t n_groups, const qkvi_int8_group *a, int64_t a_row,
                        const qkvi_int8_panel *b, float *c, const qkvi_int8_panel *ahead,
                        int64_t ahead_groups) {
    const int64_t every = ahead_groups > 0 ? n_groups / ahead_groups : 0;
    int64_t next = ahead_groups > 0 ? 0 : -1; /* where a group is announced */
    for (int64_t g = 0; g < n_groups; g++) {
        const qkvi_int8_panel *const soon = g == next ? ahead++ : NULL;
        if (soon) next = --ahead_groups > 0 ? next + every : -1;
        for (int j = 0; j < QKVI_INT8_COLUMNS; j += 16 * V_NV) {
            vi s[V_MR][V_NV];
            int8_sums(R, a + g, a_row, b + g, j, s, soon);
            if (soon) {
                V_UNROLL(2) for (int v = 0; v < V_NV; v++) v_prefetch(soon->scale + j + 16 * v);
            }
            V_UNROLL(12) for (int i = 0; i < R; i++) {
                const vf scale = vf_set1(a[g + i * a_row].scale);
                V_UNROLL(2) for (int v = 0; v < V_NV; v++) {
                    float *const at = c + i * QKVI_INT8_COLUMNS + j + 16 * v;
                    const vf both = vf_mul(vf_load(b[g].scale + j + 16 * v), scale);
                    vf_store(at, vf_fma(vi_to_vf(s[i][v]), both, vf_load(at)));
                }
            }
        }
    }
}

/* table.h */
static void int8_tile(int n_rows, int n_cols, int64_t n_groups, const qkvi_int8_group *a,
                      int64_t a_row, const qkvi_int8_panel *b, float *c, int64_t c_row, int add,
                      const float *bias, const qkvi_int8_panel *ahead, int64_t ahead_groups) {
    _Alignas(64) float sums[V_MR * QKVI_INT8_COLUMNS];
    const size_t bytes = (size_t)n_cols * sizeof *c;
    memset(sums, 0, (size_t)n_rows * QKVI_INT8_COLUMNS * sizeof *sums);
    for (int i = 0; add && i < n_rows; i++)
        memcpy(sums + i * QKVI_INT8_COLUMNS, c + i * c_row, bytes);
    switch (n_rows) {
#define INT8_CASE(R)                                                                               \
    case R: int8_rows(R, n_groups, a, a_row, b, sums, ahead, ahead_groups); break;
        TILE_EACH(INT8_CASE)
#undef INT8_CASE
    default: break;
    }
    for (int i = 0; i < n_rows; i++) memcpy(c + i * c_row, sums + i * QKVI_INT8_COLUMNS, bytes);
    if (bias)
        for (int i = 0; i < n_rows; i++)
            for (int j = 0; j < n_cols; j++) c[i * c_row + j] += bias[j];
}

#endif
