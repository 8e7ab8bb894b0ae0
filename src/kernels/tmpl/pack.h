/*
 * Packing: the only place where rows and columns end in the middle of a vector, and the only one
 * that could read too far. Reads nothing but the rows and channels it is told of; everything else
 * in a panel is zero.
 */
#ifndef QKVI_TMPL_PACK_H
#define QKVI_TMPL_PACK_H

#include <stdbool.h>

V_INLINE bool pack_sees(const uint32_t *see, int64_t i) {
    return !see || see[i / 32] >> i % 32 & 1;
}

/* table.h */
static bool pack_channels(const float *x, int64_t x_stride, int64_t n, int64_t dim, int64_t rows,
                          const uint32_t *see, float *y) {
    vf sum = vf_set1(0); /* of 0 x: NaN if any x is not finite */
    for (int64_t i = 0; i < n; i++, x += x_stride) {
        const bool seen = pack_sees(see, i);
        for (int64_t d = 0; d < dim; d += 16) {
            const int left = !seen ? 0 : dim - d < 16 ? (int)(dim - d) : 16;
            const vf v = left == 16 ? vf_loadu(x + d) : left ? vf_load_n(x + d, left) : vf_set1(0);
            float *to = y + d / 32 * rows * 32 + i * 32 + d % 32;
            sum = vf_fma(v, vf_set1(0), sum);
            vf_store(to, v);
            if (dim - d <= 16 && d % 32 == 0) vf_store(to + 16, vf_set1(0));
        }
    }
    return vm_to_bits(vm_ne(sum, sum)) == 0;
}

/*
 * 16 rows of x, of which those of `see` exist, and 16 channels, of which `dims` exist. y: rows of 32 keys.
 */
static void pack_corner(const float *x, int64_t x_stride, uint32_t see, int dims, float *y) {
    _Alignas(64) float from[16 * 16], to[16 * 16];
    if (see == 0) {
        for (int c = 0; c < dims; c++) vf_store(y + 32 * c, vf_set1(0));
        return;
    }
    for (int r = 0; r < 16; r++)
        vf_store(from + 16 * r, see >> r & 1 ? vf_load_n(x + r * x_stride, dims) : vf_set1(0));
    v_transpose(from, 16, to, 16);
    for (int c = 0; c < dims; c++) vf_store(y + 32 * c, vf_load(to + 16 * c));
}

/* table.h */
static void pack_keys(const float *x, int64_t x_stride, int64_t n, int64_t dim, const uint32_t *see,
                      float *y) {
    for (int64_t j = 0; j < (n + 31) / 32 * 32; j += 16) {
        const uint32_t within = n - j >= 16 ? 0xFFFF : n > j ? (1u << (n - j)) - 1 : 0;
        const uint32_t bits = within & (see ? see[j / 32] >> j % 32 : UINT32_MAX);
        for (int64_t d = 0; d < dim; d += 16) {
            const int dims = dim - d < 16 ? (int)(dim - d) : 16;
            const float *from = bits ? x + j * x_stride + d : x;
            float *to = y + j / 32 * dim * 32 + d * 32 + j % 32;
            if (bits == 0xFFFF && dims == 16)
                v_transpose(from, x_stride, to, 32);
            else
                pack_corner(from, x_stride, bits, dims, to);
        }
    }
}

#endif
