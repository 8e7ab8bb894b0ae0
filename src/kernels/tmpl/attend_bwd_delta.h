/*
 * Attention, backward: delta_i = <d_o_i, o_i>, which dS needs, and the gradient of a sink, which
 * needs delta.
 */
#ifndef QKVI_TMPL_ATTEND_BWD_DELTA_H
#define QKVI_TMPL_ATTEND_BWD_DELTA_H

#include "core/fma.h"
#include "kernels/tmpl/attend_bwd_scores.h"
#include "kernels/tmpl/pack_dp.h"

enum { BWD_DELTA_CHANNELS = 64 }; /* of 16 bits that are converted at a time */

/* n elements of a row as floats: where they lie, or in `to`. */
V_INLINE const float *bwd_floats(const qkv_dtype type, const void *x, int64_t n, float *to) {
    if (type == QKV_F32) return x;
    load_rows_of(type, x, 0, 1, n, to, 0);
    return to;
}

/*
 * delta_i = <d_o_i, o_i>: one fmaf chain from 0 in channel order, like dP, so that a query that
 * sees a single key (o = v) gets exactly no gradient. Eight rows at a time, because a chain alone
 * would wait for itself.
 */
V_INLINE void bwd_delta_of(const qkv_dtype type, const void *o, int64_t o_stride, const void *d_o,
                           int64_t d_o_stride, int64_t n, int64_t dim, float *delta) {
    float converted[2][8][BWD_DELTA_CHANNELS];
    const int64_t step = type == QKV_F32 ? dim : BWD_DELTA_CHANNELS;
    for (int64_t i = 0; i < n; i += 8) {
        float sum[8] = { 0 };
        for (int64_t d = 0; d < dim; d += step) {
            const int64_t channels = dim - d < step ? dim - d : step;
            const float *x[8], *y[8];
            for (int r = 0; r < 8; r++) {
                const int64_t row = i + r < n ? i + r : n - 1;
                x[r] = bwd_floats(type, pack_at(type, o, row * o_stride + d), channels,
                                  converted[0][r]);
                y[r] = bwd_floats(type, pack_at(type, d_o, row * d_o_stride + d), channels,
                                  converted[1][r]);
            }
            for (int64_t c = 0; c < channels; c++) V_UNROLL(8)
            for (int r = 0; r < 8; r++) sum[r] = qkvi_fmaf(y[r][c], x[r][c], sum[r]);
        }
        for (int r = 0; r < 8 && i + r < n; r++) delta[i + r] = sum[r];
    }
}

#define BWD_DELTA(name, type)                                                                      \
    static void bwd_delta_##name(const void *o, int64_t o_stride, const void *d_o,                 \
                                 int64_t d_o_stride, int64_t n, int64_t dim, float *delta) {       \
        bwd_delta_of(type, o, o_stride, d_o, d_o_stride, n, dim, delta);                           \
    }
PACK_EACH_TYPE(BWD_DELTA)

/* In class dp: a chain of steps over pairs of channels, like dP there; 16 rows at a time. */
static void bwd_delta_pairs(const uint16_t *o, int64_t o_stride, const uint16_t *d_o,
                            int64_t d_o_stride, int64_t n, int64_t dim, float *delta) {
    _Alignas(64) uint32_t x[16 * 32], y[16 * 32];
    for (int64_t i = 0; i < n; i += 16) {
        const uint32_t rows = n - i < 16 ? (1u << (n - i)) - 1 : 0xFFFF;
        vf sum = vf_set1(0);
        for (int64_t d = 0; d < dim; d += 32) {
            const int64_t pairs = dim - d < 32 ? (dim - d + 1) / 2 : 16;
            pack_dp_corner(d_o + i * d_o_stride + d, d_o_stride, rows, dim - d, x);
            pack_dp_corner(o + i * o_stride + d, o_stride, rows, dim - d, y);
            for (int64_t c = 0; c < pairs; c++)
                sum = v_dp(sum, dp_load(x + 32 * c), dp_load(y + 32 * c));
        }
        vf_store_n(delta + i, sum, n - i < 16 ? (int)(n - i) : 16);
    }
}

static float bwd_sink(int n, float sink, const float *lse, const float *delta) {
    float p[16], sum = 0;
    for (int i = 0; i < n; i += 16) {
        const vf x = vf_mul(vf_sub(vf_set1(sink), vf_load(lse + i)), vf_set1(BWD_LOG2E));
        vf_storeu(p, vf_exp2(x));
        for (int r = 0; r < 16 && i + r < n; r++) sum = qkvi_fmaf(-p[r], delta[i + r], sum);
    }
    return sum;
}

#endif
