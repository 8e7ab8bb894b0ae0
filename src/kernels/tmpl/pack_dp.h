/*
 * Packing for class dp: panels of pairs of bf16 (kernels/attend.h), the first element of a pair in
 * the lower half of its word. Reads nothing but the rows and channels it is told of; everything
 * else in a panel is zero, the second half of a last odd pair too.
 */
#ifndef QKVI_TMPL_PACK_DP_H
#define QKVI_TMPL_PACK_DP_H

#include <string.h>

#include "kernels/tmpl/dp.h"
#include "kernels/tmpl/pack.h"

/* 16 channels of a row as the upper halves of words; zeros where there is no row or channel. */
V_INLINE vf pack_dp_row(const uint16_t *x, bool there, int64_t left) {
    return there ? pack_load(QKV_BF16, x, pack_left(left)) : vf_set1(0);
}

/* table.h */
static bool pack_channel_pairs(const uint16_t *x, int64_t x_stride, int64_t n, int64_t dim,
                               int64_t rows, const uint32_t *see, uint32_t *y) {
    vf sum = vf_set1(0); /* of 0 x: NaN if any x is not finite */
    for (int64_t i = 0; i < n; i += 2, x += 2 * x_stride) {
        const bool first = pack_sees(see, i), second = i + 1 < n && pack_sees(see, i + 1);
        for (int64_t d = 0; d < dim; d += 16) {
            const vf a = pack_dp_row(x + d, first, dim - d);
            const vf b = pack_dp_row(second ? x + x_stride + d : x, second, dim - d);
            float *to = (float *)y + d / 32 * rows * 16 + i * 16 + d % 32;
            sum = vf_fma(a, vf_set1(0), vf_fma(b, vf_set1(0), sum));
            vf_store(to, vi_as_vf(vi_or(vi_shr(vf_as_vi(a), 16), vf_as_vi(b))));
            if (dim - d <= 16 && d % 32 == 0) vf_store(to + 16, vf_set1(0));
        }
    }
    return vm_to_bits(vm_ne(sum, sum)) == 0;
}

/*
 * 16 rows of x, of which those of `see` exist, and at most 16 pairs of `left` channels, by words.
 */
static void pack_dp_corner(const uint16_t *x, int64_t x_stride, uint32_t see, int64_t left,
                           void *panel) {
    _Alignas(64) float from[16 * 16], to[16 * 16];
    float *const y = panel; /* words */
    const int n = left < 32 ? (int)(left + 1) / 2 : 16;
    for (int r = 0; r < 16; r++) {
        vf_store(from + 16 * r, vf_set1(0));
        if (!(see >> r & 1)) continue;
        if (left >= 32)
            vf_store(from + 16 * r, vi_as_vf(dp_load(x + r * x_stride)));
        else
            memcpy(from + 16 * r, x + r * x_stride, (size_t)left * sizeof *x);
    }
    if (n == 16) {
        v_transpose(from, 16, y, 32);
        return;
    }
    v_transpose(from, 16, to, 16);
    for (int c = 0; c < n; c++) vf_store(y + 32 * c, vf_load(to + 16 * c));
}

/* table.h */
static void pack_key_pairs(const uint16_t *x, int64_t x_stride, int64_t n, int64_t dim,
                           int64_t depth, const uint32_t *see, uint32_t *y) {
    for (int64_t j = 0; j < (n + 31) / 32 * 32; j += 16) {
        const uint32_t within = n - j >= 16 ? 0xFFFF : n > j ? (1u << (n - j)) - 1 : 0;
        const uint32_t bits = within & (see ? see[j / 32] >> j % 32 : UINT32_MAX);
        for (int64_t d = 0; d < dim; d += 32)
            pack_dp_corner(bits ? x + j * x_stride + d : x, x_stride, bits, dim - d,
                           y + j / 32 * depth * 32 + d * 16 + j % 32);
        for (int64_t c = (dim + 1) / 2; c < depth; c++)
            vf_store((float *)y + (j / 32 * depth + c) * 32 + j % 32, vf_set1(0));
    }
}

#endif
