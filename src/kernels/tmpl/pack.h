/*
 * Packing: the only place where rows and columns end in the middle of a vector, and the only one that could read too far.
 * Reads nothing but the rows and channels it is told of; everything else in a panel is zero.
 */
#ifndef QKVI_TMPL_PACK_H
#define QKVI_TMPL_PACK_H

#include <stdbool.h>

/* Rows of x as channel panels [ceil(dim / 32)][rows][32], zeros in the columns beyond dim. Is all of it finite? */
static bool pack_channels(const float *x, int64_t x_stride, int64_t n, int64_t dim, int64_t rows,
                          float *y) {
    vf sum = vf_set1(0); /* of 0 x: NaN if any x is not finite */
    for (int64_t i = 0; i < n; i++, x += x_stride)
        for (int64_t d = 0; d < dim; d += 16) {
            const int64_t left = dim - d;
            const vf v = left >= 16 ? vf_loadu(x + d) : vf_load_n(x + d, (int)left);
            float *to = y + d / 32 * rows * 32 + i * 32 + d % 32;
            sum = vf_fma(v, vf_set1(0), sum);
            vf_store(to, v);
            if (left <= 16 && d % 32 == 0) vf_store(to + 16, vf_set1(0));
        }
    return vm_to_bits(vm_ne(sum, sum)) == 0;
}

/* 16 rows of x, of which [first, end) exist, and 16 channels, of which `dims` exist. y: rows of 32 keys. */
static void pack_corner(const float *x, int64_t x_stride, int first, int end, int dims, float *y) {
    _Alignas(64) float from[16 * 16], to[16 * 16];
    for (int r = 0; r < 16; r++)
        vf_store(from + 16 * r,
                 r >= first && r < end ? vf_load_n(x + r * x_stride, dims) : vf_set1(0));
    v_transpose(from, 16, to, 16);
    for (int c = 0; c < dims; c++) vf_store(y + 32 * c, vf_load(to + 16 * c));
}

V_INLINE int pack_clamp(int64_t x) { return x < 0 ? 0 : x > 16 ? 16 : (int)x; }

/*
 * Rows [first, end) of x, transposed, as key panels [ceil(end / 32)][dim][32], zeros in the other columns. Panels that lie
 * wholly below first are left alone.
 */
static void pack_keys(const float *x, int64_t x_stride, int64_t first, int64_t end, int64_t dim,
                      float *y) {
    for (int64_t j = first / 32 * 32; j < (end + 31) / 32 * 32; j += 16) {
        const int from = pack_clamp(first - j), to = pack_clamp(end - j);
        const float *row = from < to ? x + j * x_stride : x;
        for (int64_t d = 0; d < dim; d += 16) {
            const int dims = dim - d < 16 ? (int)(dim - d) : 16;
            float *at = y + j / 32 * dim * 32 + d * 32 + j % 32;
            if (from == 0 && to == 16 && dims == 16)
                v_transpose(row + d, x_stride, at, 32);
            else
                pack_corner(row + d, x_stride, from, to, dims, at);
        }
    }
}

#endif
